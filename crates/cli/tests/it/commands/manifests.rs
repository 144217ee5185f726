//! Wrong manifests, and the errors of `check`, `rehearse` and `simulate` for them.

use std::fs::File;

use crate::muster::{empty_dir, muster, muster_in, write};

/// The commands that read manifests.
const READERS: [&[&str]; 3] = [&["check"], &["rehearse"], &["simulate", "--nodes", "4"]];

/// A file and its first error, as `line:column: field: reason`.
struct Bad {
    name: &'static str,
    text: &'static str,
    error: &'static str,
}

const BAD: &[Bad] = &[
    Bad {
        name: "unknown-field",
        text: "kind: Gang\nmetadata: {name: a}\nspec:\n  priorty: 100\n  roles: [{name: w, min: 2}]\n",
        error: "4:3: spec.priorty: unknown field; did you mean `priority`?",
    },
    Bad {
        name: "negative-count",
        text: "kind: Gang\nmetadata: {name: a}\nspec:\n  roles:\n  - name: w\n    min: -3\n",
        error: "6:10: spec.roles[0].min: must be at least 1, not -3",
    },
    Bad {
        name: "min-above-max",
        text: "kind: Gang\nmetadata: {name: a}\nspec:\n  roles:\n  - {name: w, min: 16, max: 8}\n",
        error: "5:20: spec.roles[0].min: min 16 is above max 8",
    },
    Bad {
        name: "unknown-queue",
        text: "kind: Queue\nmetadata: {name: research}\nspec: {}\n---\nkind: Gang\nmetadata: {name: a}\n\
               spec:\n  queue: reserch\n  roles: [{name: w, min: 2}]\n",
        error: "8:10: spec.queue: there is no Queue named `reserch`; did you mean `research`?",
    },
    Bad {
        name: "queue-cycle",
        text: "kind: Queue\nmetadata: {name: org}\nspec: {parent: team}\n---\n\
               kind: Queue\nmetadata: {name: team}\nspec: {parent: org}\n",
        error: "3:16: spec.parent: queues form a cycle: org -> team -> org",
    },
    Bad {
        name: "impossible-topology",
        text: "kind: Gang\nmetadata: {name: a}\nspec:\n  topology: {required: shelf}\n  \
               roles: [{name: w, min: 2}]\n",
        error: "4:24: spec.topology.required: `shelf` is none of the levels `region`, `zone`, `block`, `rack`, \
                `nvlink`, `node`",
    },
    Bad {
        name: "malformed-quantity",
        text: "kind: Gang\nmetadata: {name: a}\nspec:\n  roles:\n  - name: w\n    min: 1\n    \
               resources: {memory: 1000GB}\n",
        error: "7:25: spec.roles[0].resources.memory: `1000GB` is not a quantity: write a number with an \
                optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi",
    },
    Bad {
        name: "empty",
        text: "",
        error: "1:1: (file): no objects: the file is empty or holds only comments",
    },
    Bad {
        name: "binary",
        text: "kind: Gang\n\0\u{1}\u{2}",
        error: "2:1: (file): is a binary file, not YAML: there is a NUL byte here",
    },
    Bad {
        name: "bad-yaml",
        text: "kind: Queue\nmetadata:\n  name: research: yes\n",
        error: "3:17: (file): not valid YAML: mapping values are not allowed in this context",
    },
];

/// Every command refuses `file` with exactly this error and does nothing else.
#[track_caller]
fn refused(dir: &std::path::Path, file: &str, error: &str) {
    for reader in READERS {
        let refused = muster_in(dir, &[reader, &[file]].concat()).exits(2);
        assert_eq!(refused.out, "", "{reader:?}");
        let expected = format!("error: {file}:{error}\n1 error, nothing was run\n");
        assert_eq!(refused.err, expected, "{reader:?}");
    }
}

#[test]
fn bad_manifest_is_refused_with_position_field_and_reason() {
    let dir = empty_dir("bad-manifests");
    for Bad { name, text, error } in BAD {
        let file = format!("{name}.yaml");
        write(&dir, &file, text);
        refused(&dir, &file, error);
    }
}

#[test]
fn missing_file_and_directory_are_refused() {
    let dir = empty_dir("no-file");
    refused(&dir, "missing.yaml", "1:1: (file): there is no such file");
    std::fs::create_dir(dir.join("jobs.yaml")).expect("it can be made");
    refused(&dir, "jobs.yaml", "1:1: (file): is a directory: name the files in it");
}

#[test]
fn huge_file_is_refused_unread() {
    let dir = empty_dir("huge");
    // Sparse: it takes no disk space.
    let file = File::create(dir.join("huge.yaml")).expect("it can be made");
    file.set_len(100 << 20).expect("it can be long");
    let error = "1:1: (file): is 104857600 bytes, and at most 16777216 bytes (16 MiB) are read";
    refused(&dir, "huge.yaml", error);
}

#[test]
fn every_bad_example_is_refused_by_every_reader() {
    let bad = crate::muster::root().join("examples/bad");
    let mut files = 0;
    for entry in std::fs::read_dir(bad).expect("it is there") {
        let path = entry.expect("readable").path();
        let file = path.to_str().expect("text");
        for reader in READERS {
            let refused = muster(&[reader, &[file]].concat()).exits(2);
            assert_eq!(refused.out, "", "{reader:?} {file}");
            let first = refused.err.lines().next().unwrap_or_default();
            let begins = ["error: ", "warning: "].map(|word| format!("{word}{file}:"));
            assert!(begins.iter().any(|b| first.starts_with(b)), "{reader:?}: {}", refused.err);
            assert!(refused.err.ends_with(", nothing was run\n"), "{}", refused.err);
        }
        files += 1;
    }
    assert!(files > 20, "{files} bad examples");
}

#[test]
fn all_errors_are_reported_and_one_bad_file_stops_all() {
    let dir = empty_dir("several");
    write(
        &dir,
        "good.yaml",
        "kind: Gang\nmetadata: {name: a}\nspec: {roles: [{name: w, min: 1}]}\n",
    );
    write(&dir, "bad.yaml", "kind: Gang\nmetadata: {name: b}\nspec: {user: 1, roles: []}\n");
    for reader in READERS {
        let refused = muster_in(&dir, &[reader, &["good.yaml", "bad.yaml"]].concat()).exits(2);
        assert_eq!(refused.out, "");
        assert_eq!(
            refused.err,
            "error: bad.yaml:3:14: spec.user: must be text, and YAML reads `1` as a number: write \"1\"\n\
             error: bad.yaml:3:17: spec.roles: must name at least one role\n\
             2 errors, nothing was run\n"
        );
    }
}

/// A deadline without an expected duration, which is a warning.
const WARNED: &str = "\
kind: Gang
metadata: {name: a}
spec:
  deadline: 2026-12-01T08:00:00Z
  roles: [{name: w, min: 1}]
";

#[test]
fn warnings_are_not_errors() {
    let dir = empty_dir("warnings");
    write(&dir, "job.yaml", WARNED);
    let fine = muster_in(&dir, &["check", "job.yaml"]).exits(0);
    assert_eq!(fine.out, "ok: 1 gang, 1 queue (with the default one), 0 pools, 0 nodes\n");
    assert_eq!(
        fine.err,
        "warning: job.yaml:4:13: spec.deadline: without `expectedDuration` it is taken to run for one hour\n"
    );
    write(&dir, "job.yaml", WARNED.replace("min: 1", "min: 0"));
    let refused = muster_in(&dir, &["check", "job.yaml"]).exits(2);
    assert_eq!(
        refused.err,
        "warning: job.yaml:4:13: spec.deadline: without `expectedDuration` it is taken to run for one hour\n\
         error: job.yaml:5:26: spec.roles[0].min: must be at least 1, not 0\n\
         1 error, nothing was run\n"
    );
}

#[test]
fn check_counts_the_objects_of_a_good_manifest() {
    let checked = muster(&["check", "examples/quickstart.yaml"]).exits(0);
    assert_eq!(checked.out, "ok: 3 gangs, 2 queues (with the default one), 1 pool, 1 node\n");
    assert_eq!(checked.err, "");
}

#[test]
fn check_json_is_one_object_with_all_findings() {
    let good = muster(&["check", "--json", "examples/quickstart.yaml"]).exits(0);
    assert_eq!(good.json(), [serde_json::json!({ "valid": true, "findings": [] })]);
    let dir = empty_dir("check-json");
    write(&dir, "job.yaml", WARNED.replace("min: 1", "min: 0"));
    let bad = muster_in(&dir, &["check", "--json", "job.yaml"]).exits(2);
    assert_eq!(bad.err, "");
    let finding = |severity: &str, line: u32, column: u32, field: &str, reason: &str| {
        serde_json::json!({
            "file": "job.yaml", "line": line, "column": column, "field": field, "reason": reason,
            "severity": severity,
        })
    };
    let expected = serde_json::json!({ "valid": false, "findings": [
        finding("warning", 4, 13, "spec.deadline", "without `expectedDuration` it is taken to run for one hour"),
        finding("error", 5, 26, "spec.roles[0].min", "must be at least 1, not 0"),
    ] });
    assert_eq!(bad.json(), [expected]);
}
