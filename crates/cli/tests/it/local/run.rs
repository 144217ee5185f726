//! `muster run`: manifests in, real processes out.

use std::path::Path;

use serde_json::Value;

use super::control_plane::TestDir;
use crate::muster::{command, finish, root};

/// The output of every member of a run, by rank.
pub(super) fn printed(data: &Path, run: u64) -> Vec<String> {
    let logs = data.join("runs").join(run.to_string()).join("logs");
    let mut files: Vec<_> = std::fs::read_dir(logs).expect("logs").flatten().collect();
    files.retain(|file| file.path().extension().is_some_and(|end| end == "out"));
    files.sort_by_key(std::fs::DirEntry::file_name);
    files.iter().map(|file| std::fs::read_to_string(file.path()).expect("text")).collect()
}

#[test]
fn eight_processes_start_when_eight_nodes_are_ready() {
    let place = TestDir::new("ring");
    let quickstart = std::fs::read_to_string(root().join("examples/quickstart.yaml"));
    let text =
        quickstart.expect("an example").replace("TRAIN_SECONDS: \"6\"", "TRAIN_SECONDS: \"0\"");
    let file = place.0.join("quickstart.yaml");
    std::fs::write(&file, text).expect("written");
    let (file, data) = (file.to_string_lossy().into_owned(), place.data());
    let args = ["run", "--json", "--speed", "300", &file, "--data", &data.to_string_lossy()];
    let outcome = finish(command().args(args)).exits(0);
    let facts = outcome.json();
    let (last, facts) = facts.split_last().expect("facts");
    let fact = |line: &Value, kind: &str| line["fact"].get(kind).cloned();
    let mut gangs: Vec<(u64, String)> = Vec::new();
    for line in facts {
        if let Some(submitted) = fact(line, "GangSubmitted") {
            let name = submitted["spec"]["name"].as_str().expect("a name").to_owned();
            gangs.push((submitted["gang"].as_u64().expect("a number"), name));
        }
    }
    let llama = gangs.iter().find(|(_, name)| name == "research/llama-ddp").expect("it").0;
    let first = facts.iter().position(|line| {
        fact(line, "MembersStarted").is_some_and(|started| started["gang"] == llama)
    });
    let before = &facts[..first.expect("it started")];
    let rolled_back = before.iter().rposition(|line| fact(line, "OrderRolledBack").is_some());
    let ready = before[rolled_back.expect("the first zone fails")..].iter().filter(|line| {
        fact(line, "NodeSeen").is_some_and(|node| node["ready"] == true && node["gpus"] == 8)
    });
    assert_eq!(ready.count(), 8, "nodes that were ready before the first member started");
    for gang in last["gangs"].as_array().expect("gangs") {
        assert_eq!(gang["status"]["phase"], "Succeeded", "{gang}");
        let spread = gang["status"]["startSpreadMicros"].as_u64().expect("a spread");
        let name = &gang["metadata"]["name"];
        eprintln!("{name}: all started within {:.1} ms", spread as f64 / 1e3);
        // Milliseconds where there is a core for each; on a busy machine they share the cores.
        assert!(spread < 250_000, "{name} took {spread} us from the first start to the last");
    }
    let all: Vec<String> = (1..=3).flat_map(|run| printed(&data, run)).collect();
    let right = all.iter().filter(|text| text.contains("numbers is right")).count();
    assert_eq!(right, 18, "eight and ten members have the sum: {all:?}");
}

#[test]
fn kubernetes_job_runs_as_processes() {
    let place = TestDir::new("job");
    let data = place.data().to_string_lossy().into_owned();
    let args = ["run", "examples/workloads/job.yaml", "--data", &data];
    let outcome = finish(command().args(args)).exits(0);
    assert!(outcome.err.contains("image `busybox` is not pulled"), "{}", outcome.err);
    let said = printed(&place.data(), 1);
    assert_eq!(said, ["index 0 of 2\n", "index 1 of 2\n"]);
}

#[test]
fn foreign_workloads_run_as_processes_of_one_gang() {
    let all = [
        ("pytorchjob", 4, "rank 3 of 4"),
        ("jobset", 3, "worker 2 of 3"),
        ("trainjob", 3, "rank 2 of 3"),
    ];
    for (kind, members, last) in all {
        let place = TestDir::new(kind);
        let data = place.data().to_string_lossy().into_owned();
        let file = format!("examples/workloads/{kind}.yaml");
        let outcome = finish(command().args(["run", &file, "--data", &data])).exits(0);
        assert!(outcome.err.contains("is not pulled"), "{}", outcome.err);
        let said = printed(&place.data(), 1);
        assert_eq!(said.len(), members, "{said:?}");
        assert!(said[members - 1].contains(last), "{said:?}");
    }
}

#[test]
fn worker_output_is_printed_live_and_once() {
    let args = ["run", "--logs", "examples/workloads/pytorchjob.yaml"];
    let outcome = finish(command().args(args)).exits(0);
    let table = outcome.out.find("start spread").expect("a table");
    for rank in 0..4 {
        let line = format!("rank {rank} of 4");
        let at = outcome.out.find(&line).expect("what it printed");
        assert!(at < table, "before the end: {}", outcome.out);
        assert_eq!(outcome.out.matches(&line).count(), 1, "{}", outcome.out);
    }
}

#[test]
fn restarted_gang_succeeds_as_one_gang() {
    let place = TestDir::new("starts-over");
    let text = "
kind: Gang
metadata: {name: second-try}
spec:
  retries: 1
  roles: [{name: w, min: 2, resources: {cpu: 10m}, run: {command: [sh, -c, 'test $MUSTER_RUN -gt 1']}}]
";
    let file = place.0.join("gang.yaml");
    std::fs::write(&file, text).expect("written");
    let outcome = finish(command().arg("run").arg(file)).exits(0);
    assert_eq!(outcome.out.matches("all 2 members started together").count(), 2, "{}", outcome.out);
    assert!(outcome.out.contains("Succeeded"), "{}", outcome.out);
}

#[test]
fn ddp_runs_where_torch_is_installed() {
    let there = std::process::Command::new("python3").args(["-c", "import torch"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: python3 has no torch here (pip install torch)");
        return;
    }
    for example in ["ddp", "torchrun"] {
        let place = TestDir::new(example);
        let data = place.data().to_string_lossy().into_owned();
        let file = format!("examples/{example}.yaml");
        let outcome = finish(command().args(["run", &file, "--data", &data])).exits(0);
        let said = printed(&place.data(), 1);
        assert!(said[0].contains("4 workers, loss 0.00"), "{said:?}\n{}", outcome.err);
    }
}
