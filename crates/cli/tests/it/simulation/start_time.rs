//! Deadlines are dates in manifests and instants in a simulation.

use std::path::Path;

use crate::muster::{Outcome, empty_dir, muster_in, write};

/// A node, and a gang with a deadline on the first of December at eight, UTC.
const JOB: &str = "\
kind: Node
metadata: {name: n}
spec: {allocatable: {cpu: 8}}
---
kind: Gang
metadata: {name: a}
spec:
  expectedDuration: 1m
  deadline: 2026-12-01T08:00:00Z
  costOfWaiting: 2.5
  roles: [{name: w, min: 1}]
";

/// The deadline of the first gang in a recording, in milliseconds.
fn deadline(dir: &Path, record: &str) -> Option<i64> {
    let recording = std::fs::read_to_string(dir.join(record)).expect("it was written");
    let line = recording.lines().find(|line| line.contains("GangSubmitted")).expect("a gang");
    let (_, rest) = line.split_once("\"deadline\":")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).expect("an end");
    rest[..digits].parse().ok()
}

fn simulate(dir: &Path, args: &[&str]) -> Outcome {
    muster_in(dir, &[&["simulate", "--record", "run.jsonl", "--json"], args].concat()).exits(0)
}

#[test]
fn deadlines_are_counted_from_begin() {
    let dir = empty_dir("begin");
    write(&dir, "job.yaml", JOB);
    for (begin, expected) in [
        ("2026-11-30T08:00:00Z", 86_400_000),
        ("2026-12-01T08:59:59+01:00", 1_000),
        ("2026-12-01T08:00:00Z", 0),
        // Past at the beginning: due at once, and so missed.
        ("2027-01-01T00:00:00Z", 0),
    ] {
        let run = simulate(&dir, &["--begin", begin, "job.yaml"]);
        assert_eq!((deadline(&dir, "run.jsonl"), &*run.err), (Some(expected), ""), "{begin}");
        let run = ["rehearse", "--speed", "100000", "--json", "--begin", begin, "job.yaml"];
        let run = muster_in(&dir, &run).exits(0);
        let said = format!("\"deadline\":{expected},");
        assert!(run.out.contains(&said) && run.err.is_empty(), "{said} in {} {}", run.out, run.err);
    }
}

#[test]
fn without_begin_the_current_minute_is_used_and_reported_once() {
    let dir = empty_dir("begin-now");
    write(&dir, "job.yaml", JOB.replace("2026-12-01", "9000-12-01"));
    let simulated = simulate(&dir, &["job.yaml", "--policy", "fifo", "--policy", "easy"]);
    let run = muster_in(&dir, &["rehearse", "--speed", "100000", "job.yaml"]).exits(0);
    for err in [simulated.err, run.err] {
        let date = err.strip_prefix("deadlines are counted from ").expect("it is said");
        let (date, rest) = date.split_once(", ").expect("a date");
        assert_eq!(rest, "which is now; --begin sets another time\n");
        assert!(date.len() == "2026-11-30T08:00:00Z".len() && date.ends_with(":00Z"), "{date}");
    }
    assert_eq!(deadline(&dir, "run.jsonl").expect("a deadline") % 60_000, 0, "to the minute");
}

#[test]
fn without_deadlines_nothing_is_reported() {
    let dir = empty_dir("begin-none");
    write(&dir, "job.yaml", JOB.replace("  deadline: 2026-12-01T08:00:00Z\n", ""));
    assert_eq!(simulate(&dir, &["job.yaml"]).err, "");
    assert_eq!(deadline(&dir, "run.jsonl"), None);
}

#[test]
fn deadlines_of_a_table_are_relative_to_its_rows() {
    let dir = empty_dir("begin-table");
    write(&dir, "jobs.csv", "submit_s,run_s,members,deadline_s\n90,1,1,30.5\n");
    let args = ["--nodes", "1", "--csv", "jobs.csv", "--begin", "2026-11-30T08:00:00Z"];
    assert_eq!(simulate(&dir, &args).err, "");
    assert_eq!(deadline(&dir, "run.jsonl"), Some(120_500));
}
