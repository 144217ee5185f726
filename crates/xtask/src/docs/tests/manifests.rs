//! Quoted manifests: those that `muster check` reads must pass it.
//!
//! A block marked `yaml` whose documents have a `kind` is a manifest. Documents of kinds that Muster does not read from
//! files, such as a ClusterRole, are left out; a block marked `yaml part` is a part of a document.

use std::process::Command;
use std::{env, fs};

use super::super::programs;
use super::pages;

/// Kinds that `muster check` reads.
const READ: [&str; 16] = [
    "Gang",
    "Queue",
    "Pool",
    "Node",
    "Topology",
    "Job",
    "JobSet",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "XGBoostJob",
    "PaddleJob",
    "JAXJob",
    "TrainJob",
    "RayCluster",
    "LeaderWorkerSet",
];

#[test]
fn every_quoted_manifest_passes_the_check() {
    let muster = programs::muster().expect("the command");
    let folder = env::temp_dir().join(format!("muster-docs-manifests-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in page.blocks().into_iter().filter(|block| block.mark == "yaml") {
            let read: Vec<&str> = block.text.split("---\n").filter(|text| is_read(text)).collect();
            if read.is_empty() {
                continue;
            }
            count += 1;
            let file = folder.join(format!("{count}.yaml"));
            fs::write(&file, read.join("---\n")).expect("a file");
            let output =
                Command::new(&muster).arg("check").arg(&file).output().expect("muster check");
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr)
                    .replace(&file.display().to_string(), "");
                wrong.push(format!("{}:{}\n{said}", page.path, block.line));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the folder is there");
    assert!(count >= 10, "only {count} manifests were found");
    assert!(wrong.is_empty(), "quoted manifests that do not pass:\n{}", wrong.join("\n"));
}

fn is_read(document: &str) -> bool {
    let kind = document.lines().find_map(|line| line.strip_prefix("kind: "));
    kind.is_some_and(|kind| READ.contains(&kind.split_whitespace().next().unwrap_or_default()))
}
