//! Every file in `examples/bad` gets the errors that its own comments announce.
//!
//! A line that ends in `# error: FIELD` must get an error about that field on that line, and no other line must get
//! one. A file without such a comment must be rejected as a whole.

use std::collections::BTreeSet;
use std::path::Path;

use muster_api::{Severity, read_files};

#[test]
fn every_bad_example_is_rejected_at_the_marked_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bad");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            check(&path);
            files += 1;
        }
    }
    assert!(files >= 10, "only {files} examples found");
}

fn check(path: &Path) {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let promised = text.lines().enumerate().filter_map(|(index, line)| {
        let (_, field) = line.split_once("# error: ")?;
        Some((index + 1, field.trim().to_owned()))
    });
    let promised: BTreeSet<(usize, String)> = promised.collect();
    let findings = read_files(&[path.to_owned()]).expect_err(&path.display().to_string());
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let found: BTreeSet<(usize, String)> =
        errors.map(|finding| (finding.line, finding.field.clone())).collect();
    if promised.is_empty() {
        assert_eq!(found, [(1, "(file)".to_owned())].into(), "{}", path.display());
    } else {
        assert_eq!(found, promised, "{}", path.display());
    }
}
