//! `muster crds`, and the chart that ships its output.

use std::fs;
use std::path::Path;

use crate::muster::{empty_dir, muster, muster_in, root};

const FILES: [&str; 5] = ["topologies", "queues", "pools", "gangs", "orders"];
const CHART: &str = "charts/muster/crds";

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn chart_ships_the_printed_crds() {
    let printed = muster(&["crds"]).exits(0).out;
    let shipped: String = FILES
        .iter()
        .map(|name| format!("---\n{}", text(&root().join(CHART).join(format!("{name}.yaml")))))
        .collect();
    assert!(
        printed == shipped,
        "{CHART} is out of date: run `cargo run -p muster-cli -- crds --dir {CHART}` and commit what changes"
    );
    let files = fs::read_dir(root().join(CHART)).expect("the chart").count();
    assert_eq!(files, FILES.len(), "{CHART} holds a file that nothing writes");
}

#[test]
fn json_output_is_one_list() {
    let out = muster(&["crds", "-o", "json"]).exits(0).out;
    let list: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(list["kind"], "List");
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    let expected: Vec<String> = FILES.iter().map(|name| format!("{name}.muster.sh")).collect();
    assert_eq!(names, expected);
}

#[test]
fn dir_option_writes_one_file_per_kind() {
    let dir = empty_dir("crds");
    let said = muster_in(&dir, &["crds", "--dir", "here/and/there"]).exits(0).out;
    assert_eq!(said, "5 files written to here/and/there\n");
    let gang = text(&dir.join("here/and/there/gangs.yaml"));
    assert!(
        gang.starts_with("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"),
        "{gang}"
    );
    muster_in(&dir, &["crds", "-o", "json", "--dir", "json"]).exits(0);
    let pool = text(&dir.join("json/pools.json"));
    let pool: serde_json::Value = serde_json::from_str(&pool).expect("JSON");
    assert_eq!(pool["spec"]["names"]["shortNames"], serde_json::json!(["mpool"]));
}

#[test]
fn directory_that_cannot_be_made_is_an_error() {
    let dir = empty_dir("crds-blocked");
    fs::write(dir.join("file"), "").unwrap();
    let failed = muster_in(&dir, &["crds", "--dir", "file/below"]).exits(1);
    assert!(failed.err.starts_with("error: file/below cannot be made: "), "{}", failed.err);
}
