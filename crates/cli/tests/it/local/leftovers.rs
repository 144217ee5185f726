//! What remains of gangs: processes, directories, usage records.

use std::process::Command;

use serde_json::Value;

use super::control_plane::{ControlPlane, TestDir};

fn gang(name: &str, script: &str) -> String {
    format!(
        "
kind: Gang
metadata: {{name: {name}}}
spec:
  roles:
  - {{name: worker, min: 1, resources: {{cpu: 100m}}, run: {{command: [sh, -c, '{script}']}}}}
"
    )
}

fn submit(up: &ControlPlane, text: &str) {
    let (code, answer) = up.apply(text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
}

fn sleepers(place: &TestDir, what: &str) -> Vec<u32> {
    let all = place.processes().into_iter();
    all.filter(|(_, command)| command.contains(what)).map(|(pid, _)| pid).collect()
}

#[test]
fn child_in_its_own_session_does_not_outlive_its_gang() {
    let place = TestDir::new("setsid");
    let up = ControlPlane::start(&place.data(), &[]);
    let seen = place.0.join("seen");
    let script =
        format!("setsid sleep 7171 & while ! [ -e {} ]; do sleep 0.05; done", seen.display());
    submit(&up, &gang("leaves", &script));
    up.until("the child is there", |_| (!sleepers(&place, "7171").is_empty()).then_some(()));
    std::fs::write(seen, "").expect("written");
    assert_eq!(up.until_over("leaves")["status"]["phase"], "Succeeded");
    assert_eq!(sleepers(&place, "7171"), [0u32; 0], "it is over only when nothing is left");
}

#[test]
fn killed_keeper_leaves_no_process_behind() {
    let place = TestDir::new("setsid-kill");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("leaves", "setsid sleep 7272 & sleep 7272"));
    up.until("both are there", |_| (sleepers(&place, " 7272").len() >= 2).then_some(()));
    let keeper = place.processes().into_iter().find(|(_, command)| command.contains(" keep "));
    let (pid, _) = keeper.expect("a keeper");
    // The death is not noticed until the control plane is back.
    up.kill();
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
    let before = std::time::SystemTime::now();
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let up = ControlPlane::start(&place.data(), &[]);
    let over = up.until_over("leaves");
    assert!(
        over["status"]["message"].as_str().is_some_and(|why| why.contains("is gone")),
        "{over}"
    );
    assert_eq!(sleepers(&place, " 7272"), [0u32; 0]);
    // Usage is counted until the run was last known to live, not until the control plane was back.
    let began = place.data().join("runs/1/run.json").metadata().and_then(|about| about.modified());
    let most = before.duration_since(began.expect("a plan")).expect("earlier").as_secs_f64() * 0.1;
    let used = used(&up, "gang");
    assert!(used[0]["cpuSeconds"].as_f64().expect("a sum") <= most + 0.001, "{used:?}, {most}");
}

fn used(up: &ControlPlane, by: &str) -> Vec<Value> {
    up.get(&format!("/v1/usage?by={by}"))["items"].as_array().expect("items").clone()
}

#[test]
fn deleted_gang_keeps_its_usage_and_no_older_one_returns() {
    let place = TestDir::new("accounts");
    let up = ControlPlane::start(&place.data(), &[]);
    for text in ["sleep 0.2; echo first", "sleep 0.3; echo second"] {
        submit(&up, &gang("twice", text));
        up.until_over("twice");
    }
    let before = used(&up, "gang");
    assert_eq!((before.len(), &before[0]["gangs"]), (1, &2.into()), "{before:?}");
    assert_eq!(up.delete("/v1/namespaces/default/gangs/twice"), 204);
    assert_eq!(used(&up, "gang"), before, "its accounts are gone");
    up.kill();
    let up = ControlPlane::start(&place.data(), &[]);
    let gangs = up.get("/v1/gangs");
    assert_eq!(gangs["items"].as_array().map(Vec::len), Some(0), "an older one is back: {gangs}");
    assert_eq!(used(&up, "gang"), before);
    up.until("its directories are gone", |_| {
        let runs = std::fs::read_dir(place.data().join("runs")).expect("runs").count();
        (runs == 0).then_some(())
    });
}

#[test]
fn new_gang_ignores_run_directories_of_deleted_gangs() {
    let place = TestDir::new("reuse");
    let up = ControlPlane::start(&place.data(), &[]);
    let log = place.0.join("ran");
    let script = format!("echo $MUSTER_RUN >> {}", log.display());
    for _ in 0..2 {
        submit(&up, &gang("again", &script));
        up.until_over("again");
        assert_eq!(up.delete("/v1/namespaces/default/gangs/again"), 204);
    }
    up.kill();
    // A directory is in the place of the next run; it belongs to no run.
    let stray = place.data().join("runs/3");
    std::fs::create_dir_all(&stray).expect("a directory");
    std::fs::write(
        stray.join("journal.jsonl"),
        "{\"ended\":{\"at\":1,\"ending\":\"succeeded\"}}\n",
    )
    .expect("written");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("again", &script));
    assert_eq!(up.until_over("again")["status"]["phase"], "Succeeded");
    let ran = std::fs::read_to_string(log).expect("a log");
    assert_eq!(
        ran.lines().collect::<Vec<_>>(),
        ["1", "2", "3"],
        "each ran once, by its own number"
    );
}

#[test]
fn gangs_on_one_node_share_its_cost_by_gpus() {
    let place = TestDir::new("shares");
    let up = ControlPlane::start(&place.data(), &["--no-local", "--speed", "600"]);
    let pool = "
kind: Pool
metadata: {name: cloud}
spec:
  tier: on-demand
  provider: {simulated: {boot: {launch: 10s, register: 5s, gpus: 5s, sigma: 0}}}
  offerings:
  - {instanceType: big, zone: a, price: 3600, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 64, memory: 512Gi}, bootTime: 20s}
  limits: {nodes: 1}
";
    submit(&up, pool);
    for (name, gpus) in [("small", 2), ("large", 6)] {
        let text = gang(name, "sleep 1").replace("cpu: 100m", &format!("nvidia.com/gpu: {gpus}"));
        submit(&up, &text);
    }
    up.until_over("small");
    up.until_over("large");
    for sum in used(&up, "gang") {
        let number = |field: &str| sum[field].as_f64().expect("a number");
        // One unit of cost a second for all eight GPUs.
        let share = number("gpuSeconds") / 8.0;
        assert!((number("cost") - share).abs() < 0.01 * share, "{sum}");
    }
}
