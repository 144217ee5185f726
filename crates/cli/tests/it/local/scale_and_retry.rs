//! Gangs that are scaled while they run, retried, and submitted again under the same name.

use serde_json::Value;

use super::control_plane::{ControlPlane, TestDir};

const NODE: &str = "
kind: Node
metadata: {name: box}
spec: {allocatable: {cpu: 8, memory: 8Gi}, gpu: {model: H100, memory: 80Gi, count: 4}}
";

fn gang(name: &str, bounds: &str, request: &str, script: &str, more: &str) -> String {
    format!(
        "
kind: Gang
metadata: {{name: {name}}}
spec:
  roles:
  - name: worker
    {bounds}
    resources: {{{request}}}
    run: {{command: [sh, -c, '{script}']}}
{more}"
    )
}

fn submit(up: &ControlPlane, text: &str) -> Value {
    let (code, answer) = up.apply(text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    answer
}

fn scale(up: &ControlPlane, name: &str, body: &str) -> (u16, String) {
    let (code, answer) = up.post(&format!("/v1/namespaces/default/gangs/{name}/scale"), body);
    (code, answer.to_string())
}

fn runs_with(up: &ControlPlane, name: &str, members: u32) {
    let wanted = format!("{members}/{members}");
    up.until(&format!("it runs with {members}"), |up| {
        let gang = up.gang(name);
        let is = gang["status"]["phase"] == "Running" && gang["status"]["progress"] == *wanted;
        is.then_some(())
    });
}

#[test]
fn running_elastic_gang_is_shrunk_and_stays_within_its_bounds() {
    let place = TestDir::new("shrink");
    let up = ControlPlane::start(&place.data(), &["--no-local", "--speed", "60"]);
    submit(&up, NODE);
    let bounds = "min: 2\n    max: 4";
    submit(&up, &gang("train", bounds, "nvidia.com/gpu: 1", "sleep 9401", ""));
    runs_with(&up, "train", 4);
    let (code, answer) = scale(&up, "train", "{\"max\": 2}");
    assert_eq!(code, 200, "{answer}");
    runs_with(&up, "train", 2);
    let (code, answer) = scale(&up, "train", "{\"min\": 3, \"max\": 3}");
    assert_eq!(code, 200, "{answer}");
    runs_with(&up, "train", 3);
    let role = up.gang("train")["spec"]["roles"][0].clone();
    assert_eq!((&role["min"], &role["max"]), (&3.into(), &3.into()));
    let (code, answer) = scale(&up, "train", "{\"max\": 1}");
    assert!(code == 422 && answer.contains("max 1 is below min 3"), "{code}: {answer}");
    up.kill();
    let up = ControlPlane::start(&place.data(), &["--no-local", "--speed", "60"]);
    runs_with(&up, "train", 3);
}

#[test]
fn gang_on_one_node_is_shrunk_by_a_restart() {
    let place = TestDir::new("shrink-cpu");
    let up = ControlPlane::start(&place.data(), &["--no-local", "--speed", "60"]);
    submit(&up, &NODE.replace("cpu: 8", "cpu: 4"));
    submit(&up, &gang("train", "min: 4", "cpu: 1", "sleep 9501", ""));
    runs_with(&up, "train", 4);
    let (code, answer) = scale(&up, "train", "{\"min\": 3, \"max\": 3}");
    assert_eq!(code, 200, "{answer}");
    runs_with(&up, "train", 3);
}

#[test]
fn retried_run_is_reported_as_failed_and_counted() {
    let place = TestDir::new("retry-reported");
    let log = place.0.join("output");
    let manifest = place.0.join("crash.yaml");
    let text = gang("crash", "min: 1", "cpu: 10m", "sleep 0.2; exit 3", "  retries: 2\n");
    std::fs::write(&manifest, text).expect("written");
    let out = std::fs::File::create(&log).expect("a log");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_muster"))
        .arg("run")
        .arg(&manifest)
        .stdout(out.try_clone().expect("a log"))
        .stderr(out)
        .status();
    assert!(!status.expect("muster").success());
    let printed = std::fs::read_to_string(log).expect("a timeline");
    for line in ["failed", "retry 1 of 2: member 0", "retry 2 of 2: member 0", "returned 3"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(!printed.contains(" done "), "{printed}");
}

#[test]
fn resubmitted_gang_keeps_the_output_of_earlier_runs() {
    let place = TestDir::new("resubmit");
    let up = ControlPlane::start(&place.data(), &[]);
    let first = submit(&up, &gang("job", "min: 1", "cpu: 10m", "echo first", ""));
    assert_eq!(first["items"][0]["effect"], "created");
    let over = up.until_over("job");
    assert_eq!(over["status"]["progress"], "1/1", "all of it has done its work");
    let second = submit(&up, &gang("job", "min: 1", "cpu: 10m", "echo second", ""));
    assert_eq!(second["items"][0]["effect"], "replaced", "{second}");
    let gang = up.until_over("job");
    assert_eq!(gang["status"]["run"], 2, "{gang}");
    assert_eq!(gang["status"]["earlierRuns"], serde_json::json!([1]), "{gang}");
    let logs = |more: &[&str]| {
        let mut muster = std::process::Command::new(env!("CARGO_BIN_EXE_muster"));
        muster.args(["logs", "job"]).args(more).env("MUSTER_DATA", place.data());
        muster.env_remove("MUSTER_SERVER").env_remove("MUSTER_CONTEXT");
        let output = muster.output().expect("muster");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(logs(&[]).contains("second"), "{}", logs(&[]));
    assert_eq!(logs(&["--run", "1"]), "first\n");
    let answer = logs(&["--run", "7"]);
    assert!(answer.contains("those that are kept: 1, 2"), "{answer}");
}
