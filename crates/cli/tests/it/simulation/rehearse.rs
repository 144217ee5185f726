//! `muster rehearse`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use snapbox::{assert_data_eq, file};

use crate::muster::{Outcome, command, empty_dir, muster, muster_in, write};

const QUICKSTART: &str = "examples/quickstart.yaml";

fn quickstart(more: &[&str]) -> Outcome {
    muster(&[&["rehearse", "--speed", "100000", QUICKSTART], more].concat()).exits(0)
}

/// The index of the line that contains all of these words; fails if there is none.
#[track_caller]
fn line_with(text: &str, words: &[&str]) -> usize {
    let found = text.lines().position(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("no line with {words:?} in\n{text}"))
}

#[test]
fn quickstart_prints_its_timeline() {
    let timeline = quickstart(&[]);
    assert_eq!(timeline.err, "");
    assert_data_eq!(timeline.out, file!["snapshots/quickstart.txt"].raw());
}

#[test]
fn quickstart_timeline_has_every_step_in_order() {
    let timeline = quickstart(&[]).out;
    let first = line_with(&timeline, &["order", "llama-ddp", "8 x p5.48xlarge in us-east-1a"]);
    let waits = line_with(&timeline, &["wait", "mixtral-ft", "#1 in line", "7 of 10 x worker fit"]);
    let alone = line_with(&timeline, &["START", "tokenize"]);
    let top_up = line_with(&timeline, &["top-up", "llama-ddp", "7/8 ready and one failed"]);
    let rollback = line_with(
        &timeline,
        &["rollback", "llama-ddp", "nodes in us-east-1a are out of stock", "nothing starts"],
    );
    let kept = line_with(&timeline, &["7 ready nodes kept for other gangs, 1 released"]);
    let failover = line_with(&timeline, &["order", "llama-ddp", "8 x p5.48xlarge in us-east-1b"]);
    let whole = line_with(&timeline, &["ready", "llama-ddp", "8/8 nodes ready with every GPU"]);
    let start = line_with(
        &timeline,
        &["START", "llama-ddp", "all 8 members started together (spread 0 ms)"],
    );
    let done = line_with(&timeline, &["done", "llama-ddp", "ran for 4m00s"]);
    let second = line_with(
        &timeline,
        &["START", "mixtral-ft", "all 10 members started together (spread 0 ms)"],
    );
    let order = [first, alone, top_up, rollback, kept, failover, waits, whole, start, done, second];
    assert!(order.is_sorted(), "printed in another order: {order:?}\n{timeline}");
    line_with(&timeline, &["promises checked", ": 0 broken"]);
}

#[test]
fn comparison_shows_the_waste_of_starting_one_by_one() {
    let last = quickstart(&["--json"]).json().pop().expect("a result");
    let (summary, comparison) = (&last["summary"], &last["comparison"]);
    assert_eq!(summary["violations"], 0);
    assert_eq!(summary["ended"], 3);
    assert_eq!(summary["rollbacks"], 1);
    assert_eq!(summary["partial_gpu_hours"], 0.0);
    let gangs = comparison["gangs"].as_array().expect("gangs");
    let named = |name: &str| gangs.iter().find(|row| row["gang"] == name).expect("it is there");
    for name in ["research/llama-ddp", "research/mixtral-ft"] {
        let row = named(name);
        assert_eq!(row["spread_ms"], 0, "{row}");
        assert_eq!(row["wasted_gpu_s"], 0.0, "{row}");
        assert!(row["naive_spread_s"].as_f64() > Some(0.0), "{row}");
        assert!(row["naive_wasted_gpu_s"].as_f64() > Some(0.0), "{row}");
    }
    assert!(comparison["cost"].as_f64() < comparison["naive_cost"].as_f64(), "{comparison}");
}

#[test]
fn json_output_is_one_fact_per_line_and_the_result_last() {
    let run = quickstart(&["--json"]);
    assert_eq!(run.err, "");
    let mut lines = run.json();
    let result = lines.pop().expect("a result");
    assert!(result["summary"].is_object() && result["comparison"].is_object(), "{result}");
    assert!(!lines.is_empty());
    let mut before = 0.0;
    for line in &lines {
        let keys: Vec<&String> = line.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["at_s", "fact"]);
        let at = line["at_s"].as_f64().expect("a number");
        assert!(at >= before, "time runs backwards at {line}");
        before = at;
    }
}

#[test]
fn same_seed_gives_the_same_facts_at_any_speed() {
    let seeded = |speed: &str, seed: &str| {
        muster(&["rehearse", "--json", "--speed", speed, "--seed", seed, QUICKSTART]).exits(0).out
    };
    assert_eq!(seeded("100000", "7"), seeded("50000", "7"));
    assert_ne!(seeded("100000", "7"), seeded("100000", "8"));
}

#[test]
fn no_compare_leaves_the_comparison_out() {
    let run = quickstart(&["--no-compare"]).out;
    assert!(!run.contains("one by one"), "{run}");
    line_with(&run, &["START", "mixtral-ft"]);
    line_with(&run, &["promises checked", ": 0 broken"]);
    let result = quickstart(&["--no-compare", "--json"]).json().pop().expect("a result");
    assert_eq!(result["comparison"], Value::Null);
    assert_eq!(result["summary"]["jobs"], 3);
}

#[test]
fn elastic_example_breaks_no_promise() {
    let run = muster(&["rehearse", "--speed", "1000000", "--no-compare", "examples/elastic.yaml"]);
    let run = run.exits(0);
    assert_eq!(run.err, "");
    for gang in ["lab/pretrain", "lab/sweep", "product/release", "lab/hotfix"] {
        line_with(&run.out, &["START", gang]);
        line_with(&run.out, &["done", gang]);
    }
    line_with(&run.out, &["promises checked", ": 0 broken"]);
}

#[test]
fn speed_must_be_a_number_above_zero() {
    for speed in ["0", "abc", "-1", "inf", "nan", ""] {
        let refused = muster(&["rehearse", "--speed", speed, QUICKSTART]).exits(2);
        assert_eq!(refused.out, "");
        let reason =
            format!("invalid value '{speed}' for '--speed <SPEED>': a number above zero is needed");
        assert!(refused.err.contains(&reason), "{}", refused.err);
    }
}

const TOO_WIDE: &str = "\
kind: Node
metadata: {name: small}
spec: {allocatable: {cpu: 8}}
---
kind: Gang
metadata: {name: fits}
spec: {roles: [{name: worker, min: 1, resources: {cpu: 1}}]}
---
kind: Gang
metadata: {name: too-wide}
spec: {roles: [{name: worker, min: 2, resources: {cpu: 6}}]}
---
kind: Gang
metadata: {name: too-big}
spec: {roles: [{name: worker, min: 1, resources: {cpu: 16}}]}
";

#[test]
fn infeasible_gang_fails_the_run_with_its_reason() {
    let dir = empty_dir("never");
    write(&dir, "job.yaml", TOO_WIDE);
    let run =
        muster_in(&dir, &["rehearse", "--speed", "1000000", "--no-compare", "job.yaml"]).exits(1);
    line_with(&run.out, &["START", "default/fits"]);
    line_with(&run.out, &["never", "default/too-wide", "can never run"]);
    assert_eq!(
        run.err,
        "error: the simulation is over with 2 gangs unfinished:\n  \
         default/too-wide: can never run: at most 1 of 2 x worker could ever run at once\n  \
         default/too-big: can never run: worker fits on no node and no offering, not even an empty one\n"
    );
}

#[test]
fn manifests_without_gangs_are_refused() {
    let dir = empty_dir("no-gang");
    write(&dir, "queue.yaml", "kind: Queue\nmetadata: {name: research}\nspec: {}\n");
    let run = muster_in(&dir, &["rehearse", "queue.yaml"]).exits(2);
    assert_eq!(run.out, "");
    assert_eq!(run.err, "error: nothing to run: there is no gang in these manifests\n");
}

/// A run that is too slow to end by itself, after its first order.
fn slow_run() -> (Child, BufReader<impl Read>) {
    let mut child = command()
        .args(["rehearse", "--speed", "0.001", QUICKSTART])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("order") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("text"), 0, "it ended by itself");
    }
    (child, out)
}

#[cfg(unix)]
#[test]
fn interrupted_run_ends_at_once_and_lists_unfinished_gangs() {
    let (child, mut out) = slow_run();
    let interrupted = Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill command").success());
    let output = child.wait_with_output().expect("it ends");
    // Its next step is due in hours; seconds allow for a busy machine.
    assert!(interrupted.elapsed() < Duration::from_secs(10), "{:?}", interrupted.elapsed());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).expect("text"),
        "error: interrupted after 0s of simulated time, 3 gangs unfinished:\n  \
         research/llama-ddp: 0/8 nodes ready\n  \
         research/mixtral-ft: was not submitted yet\n  \
         research/tokenize: was not submitted yet\n"
    );
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "", "nothing more is printed");
}

#[cfg(unix)]
#[test]
fn closed_pipe_ends_the_run_quietly() {
    let mut child = command()
        .args(["rehearse", "--json", "--speed", "100000", QUICKSTART])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(141), "as for any program whose reader left");
}
