//! Errors of whole files, before their documents are read.

use std::path::PathBuf;

use muster_api::{Finding, MAX_FILE_BYTES, Severity, read_files, read_texts};

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn only_error(path: PathBuf) -> Finding {
    let mut findings = read_files(&[path]).unwrap_err();
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

#[test]
fn missing_path_and_directory_are_reported() {
    let missing = only_error(scratch("nowhere.yaml"));
    assert_eq!((&*missing.field, &*missing.reason), ("(file)", "there is no such file"));
    assert!(missing.file.ends_with("nowhere.yaml"));
    let folder = only_error(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    assert_eq!(folder.reason, "is a directory: name the files in it");
}

#[test]
fn file_above_the_size_limit_is_rejected() {
    let path = scratch("huge.yaml");
    // A sparse file: its zeros are neither written nor read.
    std::fs::File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    let finding = only_error(path);
    assert_eq!(finding.reason, "is 16777217 bytes, and at most 16777216 bytes (16 MiB) are read");
}

#[test]
fn binary_file_is_reported_with_its_position() {
    for (bytes, line, column, reason) in [
        (&b"kind: Gang\nab\0"[..], 2, 3, "is a binary file, not YAML: there is a NUL byte here"),
        (&b"kind: \xff"[..], 1, 7, "is not UTF-8 text"),
    ] {
        let findings = read_texts(&[("a.yaml", bytes)]).unwrap_err();
        assert_eq!((findings[0].line, findings[0].column), (line, column));
        assert_eq!((&*findings[0].field, &*findings[0].reason), ("(file)", reason));
    }
}

#[test]
fn file_without_objects_is_an_error() {
    for text in ["", "\n\n", "# nothing\n", "---\n---\n", "~"] {
        let findings = read_texts(&[("a.yaml", text)]).unwrap_err();
        assert_eq!(
            findings[0].to_string(),
            "a.yaml:1:1: (file): no objects: the file is empty or holds only comments"
        );
    }
}

#[test]
fn every_problem_of_every_file_is_reported_by_file_and_line() {
    let bad_queue = "kind: Queue\nmetadata: {name: q}\nspec:\n  weight: 0\n  wieght: 1\n";
    let bad_gang = "kind: Gang\nmetadata: {name: g}\nspec: {}\n---\nkind: Gnag\n";
    let findings = read_texts(&[("b.yaml", bad_queue), ("a.yaml", bad_gang)]).unwrap_err();
    let printed: Vec<String> = findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(printed.join("\n"), @"
    a.yaml:3:1: spec.roles: is missing
    a.yaml:5:7: kind: `Gnag` is no kind Muster reads: it reads `Gang`, `Queue`, `Pool`, `Topology`, `Node`; did you mean `Gang`?
    b.yaml:4:11: spec.weight: must be at least 1, not 0
    b.yaml:5:3: spec.wieght: unknown field; did you mean `weight`?
    ");
}

#[test]
fn findings_serialize_for_machines() {
    let findings = read_texts(&[("a.yaml", "kind: Queue\nspec: {}")]).unwrap_err();
    assert_eq!(findings[0].severity, Severity::Error);
    insta::assert_snapshot!(serde_json::to_string(&findings[0]).unwrap(), @r#"{"file":"a.yaml","line":1,"column":1,"field":"metadata","reason":"is missing","severity":"error"}"#);
}

#[test]
fn a_hundred_thousand_documents_are_read() {
    let document =
        |i| format!("---\n{{kind: Node, metadata: {{name: n{i}}}, spec: {{allocatable: {{}}}}}}\n");
    let text: String = (0..100_001).map(document).collect();
    assert_eq!(crate::good(&text).nodes.len(), 100_001);
}

#[test]
fn deep_nesting_and_alias_bombs_are_rejected_quickly() {
    let deep = "[".repeat(1 << 20);
    assert!(crate::errors(&deep)[0].contains("not valid YAML"));
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (one, next) in ('a'..='y').zip('b'..='z') {
        bomb += &format!("{next}: &{next} [{}]\n", vec![format!("*{one}"); 9].join(", "));
    }
    assert_eq!(
        crate::errors(&bomb),
        ["a.yaml:2:8: (file): aliases (`*name`) are not read: write the value out"]
    );
}

#[test]
fn findings_stay_short_for_any_input() {
    let long = "x".repeat(1 << 20);
    let findings = read_texts(&[("a.yaml", format!("kind: {long}\n"))]).unwrap_err();
    assert!(findings[0].to_string().len() < 1_000);
}
