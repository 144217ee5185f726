//! Gangs that are cancelled, deleted or interrupted while their nodes boot.

use super::control_plane::{ControlPlane, TestDir};

/// Nodes that boot for longer than any test.
const SLOW: &str = "
kind: Pool
metadata: {name: cloud}
spec:
  tier: on-demand
  provider: {simulated: {boot: {launch: 10h, register: 5s, gpus: 5s, sigma: 0}}}
  offerings:
  - {instanceType: big, zone: a, price: 10, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 64, memory: 512Gi}, bootTime: 10h}
  limits: {nodes: 6}
---
kind: Gang
metadata: {name: boots}
spec:
  provisioning: {timeout: 20h}
  roles:
  - {name: worker, min: 2, resources: {nvidia.com/gpu: 8}, run: {command: ['true']}}
";

const GANG: &str = "/v1/namespaces/default/gangs/boots";

fn provisioning(place: &TestDir) -> ControlPlane {
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let (code, answer) = up.apply(SLOW, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    up.until("its nodes are on their way", |up| {
        (up.gang("boots")["status"]["phase"] == "Provisioning").then_some(())
    });
    up
}

#[test]
fn gang_cancelled_while_its_nodes_boot_stays_cancelled() {
    let place = TestDir::new("boot-cancel");
    let up = provisioning(&place);
    let (code, answer) = up.post(&format!("{GANG}/cancel"), "");
    assert_eq!(code, 200, "{answer}");
    let over = up.until_over("boots");
    assert_eq!(over["status"]["reason"], "Cancelled", "{over}");
    up.kill();
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    assert_eq!(up.gang("boots")["status"]["reason"], "Cancelled");
    let orders = up.get("/v1/orders");
    assert_eq!(orders["items"].as_array().map(Vec::len), Some(0), "{orders}");
    // The name is free again.
    let (code, answer) = up.apply(SLOW, None).expect("an answer");
    assert_eq!((code, &answer["items"][1]["effect"]), (200, &"replaced".into()), "{answer}");
}

#[test]
fn gang_deleted_while_its_nodes_boot_does_not_return() {
    let place = TestDir::new("boot-delete");
    let up = provisioning(&place);
    assert_eq!(up.delete(GANG), 204);
    let is_gone =
        |up: &ControlPlane| up.get("/v1/gangs")["items"].as_array().is_some_and(Vec::is_empty);
    up.until("it is gone", |up| is_gone(up).then_some(()));
    up.kill();
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    assert!(is_gone(&up), "it is back");
}

#[test]
fn provisioning_continues_after_a_kill_of_the_control_plane() {
    let place = TestDir::new("boot-kill");
    provisioning(&place).kill();
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let gang = up.until("it is looked at", |up| {
        let gang = up.gang("boots");
        (gang["status"]["phase"] == "Provisioning").then_some(gang)
    });
    assert_eq!(gang["metadata"]["uid"], "1", "{gang}");
    assert_eq!(up.get("/v1/orders")["items"].as_array().map(Vec::len), Some(1));
    let (code, answer) = up.post(&format!("{GANG}/cancel"), "");
    assert_eq!(code, 200, "{answer}");
    up.until_over("boots");
}

#[test]
fn signals_end_muster_run_while_nodes_boot() {
    let place = TestDir::new("boot-run");
    let file = place.0.join("slow.yaml");
    std::fs::write(&file, SLOW).expect("written");
    for signal in ["INT", "TERM", "HUP"] {
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_muster"))
            .args(["run", "--json", "--data"])
            .arg(place.0.join(signal))
            .arg(&file)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("muster");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(
            run.stdout.take().expect("its output"),
        ));
        let ordered = lines.any(|line| line.is_ok_and(|line| line.contains("OrderPlaced")));
        assert!(ordered, "it never ordered nodes");
        let pid = run.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.expect("kill").success());
        lines.for_each(drop);
        let output = run.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{signal}: {said}");
        assert!(said.contains("every gang was stopped"), "{signal}: {said}");
    }
}
