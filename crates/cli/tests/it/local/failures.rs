//! Failures of processes, disks and databases end in a clear message and a defined state.

use std::process::Command;

use super::control_plane::{ControlPlane, TestDir};

fn gang(name: &str, members: u32, run: &str, more: &str) -> String {
    format!(
        "
kind: Gang
metadata: {{name: {name}}}
spec:
  roles:
  - name: worker
    min: {members}
    resources: {{cpu: 10m, memory: 64Mi}}
    run: {{command: {run}}}
{more}"
    )
}

fn outcome(up: &ControlPlane, name: &str) -> (String, String) {
    let gang = up.until_over(name);
    let text = |field: &str| gang["status"][field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn submit(up: &ControlPlane, text: &str) {
    let (code, answer) = up.apply(text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn failed_member_ends_the_run_and_the_whole_gang_is_retried() {
    let place = TestDir::new("crash");
    let up = ControlPlane::start(&place.data(), &[]);
    let log = place.0.join("tries");
    let script = format!(
        "[sh, -c, 'echo $RANK >> {}; if [ $RANK = 1 ]; then sleep 1; exit 3; fi; sleep 60']",
        log.display()
    );
    submit(&up, &gang("crash", 3, &script, "  retries: 2\n"));
    let (reason, message) = outcome(&up, "crash");
    assert_eq!(reason, "Failed");
    assert!(message.contains("member 1 (worker on") && message.contains("returned 3"), "{message}");
    let tries = std::fs::read_to_string(log).expect("tries");
    let mut ranks: Vec<&str> = tries.lines().collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["0", "0", "0", "1", "1", "1", "2", "2", "2"], "three whole tries");
    assert_eq!(up.gang("crash")["status"]["restarts"], 2);
}

#[test]
fn missing_command_starts_no_member() {
    let place = TestDir::new("missing");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("missing", 2, "[no-such-command, --now]", ""));
    let (reason, message) = outcome(&up, "missing");
    assert_eq!(reason, "Failed");
    assert!(message.contains("there is no command `no-such-command`"), "{message}");
}

#[test]
fn member_over_its_memory_request_is_killed_with_a_reason() {
    let place = TestDir::new("memory");
    let up = ControlPlane::start(&place.data(), &[]);
    let script = "[python3, -c, 'x = bytearray(512 << 20); import time; time.sleep(60)']";
    // The member gets enough of the machine to reach its limit, whatever else runs.
    let greedy = gang("greedy", 1, script, "  timeLimit: 60s\n").replace("cpu: 10m", "cpu: 1");
    submit(&up, &greedy);
    let (reason, message) = outcome(&up, "greedy");
    if reason == "TimeLimit" {
        // Where control groups cannot be created, the journal says that limits are not enforced.
        let journal = std::fs::read_to_string(place.data().join("runs/1/journal.jsonl"));
        let journal = journal.expect("a journal");
        assert!(journal.contains("limits are not enforced"), "{journal}");
        return;
    }
    assert!(message.contains("used more memory than it asked for"), "{message}");
}

#[test]
fn time_limit_and_cancel_end_all_members_and_children() {
    let place = TestDir::new("limit");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("slow", 2, "[sh, -c, 'sleep 61 & wait']", "  timeLimit: 1s\n"));
    submit(&up, &gang("unwanted", 2, "[sh, -c, 'trap \"\" TERM; sleep 62 & wait; sleep 62']", ""));
    up.until("it runs", |up| (up.gang("unwanted")["status"]["phase"] == "Running").then_some(()));
    let (code, answer) = up.post("/v1/namespaces/default/gangs/unwanted/cancel", "");
    assert_eq!(code, 200, "{answer}");
    assert_eq!(outcome(&up, "slow").0, "TimeLimit");
    assert_eq!(outcome(&up, "unwanted").0, "Cancelled");
    up.until("no process is left", |_| {
        let left = place.processes();
        left.iter().all(|(_, command)| command.contains(" up ")).then_some(())
    });
}

#[test]
fn second_control_plane_on_the_same_directory_is_refused() {
    let place = TestDir::new("second");
    let _up = ControlPlane::start(&place.data(), &[]);
    let second = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.data())
        .output()
        .expect("muster");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains("another muster (process") && said.contains("uses this directory"),
        "{said}"
    );
}

#[test]
fn damaged_database_is_reported_and_left_unchanged() {
    let place = TestDir::new("damage");
    let up = ControlPlane::start(&place.data(), &[]);
    for number in 0..15 {
        submit(&up, &gang(&format!("g{number}"), 1, "['true']", ""));
    }
    up.until_over("g14");
    up.end();
    let database = place.data().join("muster.db");
    let mut bytes = std::fs::read(&database).expect("a database");
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0x5a);
    std::fs::write(&database, &bytes).expect("damaged");
    let started = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.data())
        .output()
        .expect("muster");
    let said = String::from_utf8_lossy(&started.stderr);
    assert_eq!(started.status.code(), Some(1), "{said}");
    assert!(said.contains("the database is damaged"), "{said}");
    assert_eq!(std::fs::read(&database).expect("a database"), bytes, "it was touched");
}

#[test]
fn output_that_cannot_be_stored_is_reported_and_blocks_no_member() {
    let place = TestDir::new("full");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("held", 1, "[sh, -c, 'sleep 0.3; yes | head -c 3000000; echo done']", ""));
    // The output of the first run goes to a device that is always full.
    let logs = place.data().join("runs/1/logs");
    up.until("its directory is there", |_| logs.is_dir().then_some(()));
    std::os::unix::fs::symlink("/dev/full", logs.join("0.out")).expect("a full device");
    assert_eq!(outcome(&up, "held").0, "Succeeded");
    let journal =
        std::fs::read_to_string(place.data().join("runs/1/journal.jsonl")).expect("a journal");
    assert_eq!(journal.matches("what is printed is not kept").count(), 1, "{journal}");
}

#[test]
fn killed_keeper_ends_its_members_and_the_gang_restarts() {
    let place = TestDir::new("keeper");
    let up = ControlPlane::start(&place.data(), &[]);
    let log = place.0.join("tries");
    let script = format!("[sh, -c, 'echo $MUSTER_RUN >> {}; sleep 2']", log.display());
    submit(&up, &gang("kept", 2, &script, "  retries: 1\n"));
    up.until("both began", |_| {
        let tries = std::fs::read_to_string(&log).unwrap_or_default();
        (tries.lines().count() == 2).then_some(())
    });
    let keeper = place.processes().into_iter().find(|(_, command)| command.contains(" keep "));
    let (pid, _) = keeper.expect("a keeper");
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
    assert_eq!(outcome(&up, "kept").0, "Succeeded");
    let tries = std::fs::read_to_string(&log).expect("tries");
    assert_eq!(tries.lines().collect::<Vec<_>>(), ["1", "1", "2", "2"]);
}

#[test]
fn gang_fails_with_a_reason_when_its_keeper_cannot_start() {
    let place = TestDir::new("no-keeper");
    let up = ControlPlane::start(&place.data(), &[]);
    // A file is in the place of the first run's directory.
    std::fs::write(place.data().join("runs/1"), "in the way").expect("written");
    submit(&up, &gang("stuck", 1, "['true']", ""));
    let (reason, message) = outcome(&up, "stuck");
    assert_eq!(reason, "Failed");
    assert!(message.contains("could not be started in 3 tries"), "{message}");
    submit(&up, &gang("free", 1, "['true']", ""));
    assert_eq!(outcome(&up, "free").0, "Succeeded", "others go on");
}

#[test]
fn control_plane_starts_gangs_after_its_binary_was_replaced() {
    let place = TestDir::new("replaced");
    let program = place.0.join("muster");
    std::fs::copy(env!("CARGO_BIN_EXE_muster"), &program).expect("a copy");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    std::fs::remove_file(&program).expect("removed");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").expect("replaced");
    submit(&up, &gang("goes", 2, "['true']", ""));
    assert_eq!(outcome(&up, "goes").0, "Succeeded");
}
