//! Malicious jobs: their processes hide, their keeper is stopped, their files are forged. None of their processes
//! outlives them, and other gangs are not affected.

use super::super::control_plane::{ControlPlane, TestDir};
use super::processes::{
    cancel, gang, grants_groups, groups, keeper, running, send, status, submit, until_runs, wrapped,
};

const GPU: &str = "
kind: Node
metadata: {name: box}
spec: {allocatable: {cpu: 8, memory: 8Gi}, gpu: {model: H100, memory: 80Gi, count: 1}}
";

fn on_gpu(name: &str, script: &str) -> String {
    gang(name, 1, script, "").replace("cpu: 10m, memory: 256Mi", "nvidia.com/gpu: 1")
}

#[test]
fn escaped_worker_is_killed_before_its_gpu_is_reused() {
    if !grants_groups("escaped_worker_is_killed_before_its_gpu_is_reused") {
        return;
    }
    let place = TestDir::new("escape-gpu");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let seen = place.0.join("seen");
    submit(&up, GPU);
    submit(&up, &on_gpu("hides", "env -i setsid sleep 8101 & sleep 8102"));
    up.until("it hides", |_| (!running("sleep 8101").is_empty()).then_some(()));
    let next = format!("pgrep -x -f 'sleep 8101' > {0}; echo looked >> {0}", seen.display());
    submit(&up, &on_gpu("next", &next));
    send("-9", keeper(&up, &place));
    assert_eq!(up.until_over("next")["status"]["phase"], "Succeeded");
    assert_eq!(std::fs::read_to_string(seen).expect("it looked"), "looked\n");
    assert_eq!(running("sleep 8101"), [0u32; 0]);
    assert_eq!(status(&up, "hides", "phase"), "Failed");
}

#[test]
fn worker_that_forks_twice_is_found_when_daemon_and_keeper_were_killed() {
    if !grants_groups("worker_that_forks_twice_is_found_when_daemon_and_keeper_were_killed") {
        return;
    }
    let place = TestDir::new("escape-twice");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("hides", 1, "(env -i setsid sh -c 'sleep 8201 &' &) ; sleep 8202", ""));
    let pid = up.until("it hides", |_| running("sleep 8201").first().copied());
    let held = groups(pid);
    assert!(!held.is_empty(), "it is in no group");
    let kept = keeper(&up, &place);
    up.kill();
    send("-9", kept);
    assert_eq!(running("sleep 8201"), [pid], "nothing else ends it");
    let up = ControlPlane::start(&place.data(), &[]);
    assert_eq!(up.until_over("hides")["status"]["phase"], "Failed");
    assert_eq!(running("sleep 8201"), [0u32; 0]);
    up.until("its groups are gone", |_| held.iter().all(|group| !group.exists()).then_some(()));
}

#[test]
fn escaped_worker_is_found_without_control_groups_once_it_was_seen() {
    let place = TestDir::new("escape-bare");
    let program = wrapped(&place, "export MUSTER_CGROUPS=/nonexistent");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    let log = std::fs::read_to_string(place.data().with_extension("log")).expect("a log");
    assert!(log.contains("no control groups can be made"), "{log}");
    submit(&up, &gang("hides", 1, "env -i setsid sleep 8301 & sleep 8302", ""));
    let pid = up.until("it hides", |_| running("sleep 8301").first().copied());
    let noted = place.data().join("runs/1/processes");
    up.until("it was seen", |_| {
        let text = std::fs::read_to_string(&noted).unwrap_or_default();
        text.lines().any(|line| line.starts_with(&format!("{pid} "))).then_some(())
    });
    send("-9", keeper(&up, &place));
    assert_eq!(up.until_over("hides")["status"]["phase"], "Failed");
    assert_eq!(running("sleep 8301"), [0u32; 0]);
}

#[test]
fn gang_whose_worker_stops_its_keeper_can_be_cancelled() {
    let place = TestDir::new("stop-keeper");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("stops", 1, "kill -STOP $PPID; sleep 8401", ""));
    up.until("it has stopped its keeper", |_| (!running("sleep 8401").is_empty()).then_some(()));
    cancel(&up, "stops");
    assert_eq!(up.until_over("stops")["status"]["reason"], "Cancelled");
    assert_eq!(running("sleep 8401"), [0u32; 0]);
}

#[test]
fn keeper_that_is_stopped_again_and_again_is_killed_with_its_members() {
    let place = TestDir::new("stop-again");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("stops", 1, "while :; do kill -STOP $PPID; sleep 0.8501; done", ""));
    until_runs(&up, "stops");
    submit(&up, &gang("victim", 1, "true", ""));
    assert_eq!(up.until_over("victim")["status"]["phase"], "Succeeded", "others are kept");
    let over = up.until_over("stops");
    let message = over["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("its keeper was stopped or did not answer"), "{over}");
    up.until("nothing is left of it", |_| {
        place.processes().iter().all(|(_, command)| command.contains(" up ")).then_some(())
    });
}

#[test]
fn fork_bomb_reaches_its_bound_and_is_killed_whole() {
    if !grants_groups("fork_bomb_reaches_its_bound_and_is_killed_whole") {
        return;
    }
    let place = TestDir::new("fork-bomb");
    let up = ControlPlane::start(&place.data(), &[]);
    let bomb = "
import os, signal, time
made = 0
for _ in range(1500):
    try:
        if os.fork() == 0:
            while True: signal.pause()
    except OSError:
        break
    made += 1
print('made', made, flush=True)
time.sleep(8601)
";
    let path = place.0.join("bomb.py");
    std::fs::write(&path, bomb).expect("written");
    let text = gang("bomb", 1, &format!("exec python3 {}", path.display()), "");
    submit(&up, &text.replace("cpu: 10m, memory: 256Mi", "cpu: 1, memory: 2Gi"));
    let printed = place.data().join("runs/1/logs/0.out");
    let made: u32 = up.until("it can make no more", |_| {
        let text = std::fs::read_to_string(&printed).ok()?;
        text.trim().strip_prefix("made ")?.parse().ok()
    });
    assert!((500..1_100).contains(&made), "{made} processes");
    submit(&up, &gang("victim", 1, "true", ""));
    assert_eq!(up.until_over("victim")["status"]["phase"], "Succeeded");
    cancel(&up, "bomb");
    up.until_over("bomb");
    assert_eq!(running(&format!("python3 {}", path.display())), [0u32; 0]);
}

#[test]
fn flood_of_output_is_kept_up_to_its_bound() {
    let place = TestDir::new("flood");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("flood", 2, "head -c 90000000 /dev/zero", ""));
    assert_eq!(up.until_over("flood")["status"]["phase"], "Succeeded");
    let logs = std::fs::read_dir(place.data().join("runs/1/logs")).expect("logs").flatten();
    let kept: u64 = logs.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    assert!(kept <= 130 << 20, "{kept} bytes");
    assert!(kept >= 96 << 20, "the latest are kept: {kept} bytes");
}

#[test]
fn worker_that_ignores_every_signal_is_killed_after_its_grace() {
    let place = TestDir::new("ignores");
    let up = ControlPlane::start(&place.data(), &[]);
    let script = "trap '' TERM INT HUP USR1 USR2 QUIT; sh -c \"trap '' TERM; sleep 8701\" & sleep 8701; sleep 8701";
    submit(&up, &gang("deaf", 2, script, ""));
    until_runs(&up, "deaf");
    cancel(&up, "deaf");
    assert_eq!(up.until_over("deaf")["status"]["reason"], "Cancelled");
    assert_eq!(running("sleep 8701"), [0u32; 0]);
}

#[test]
fn gang_that_deletes_its_run_directory_is_still_ended_after_a_restart() {
    let place = TestDir::new("deletes");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("deletes", 1, "rm -rf $(dirname $MUSTER_WORLD); sleep 8801", ""));
    up.until("it has", |_| (!running("sleep 8801").is_empty()).then_some(()));
    submit(&up, &gang("victim", 1, "true", ""));
    assert_eq!(up.until_over("victim")["status"]["phase"], "Succeeded");
    up.kill();
    let up = ControlPlane::start(&place.data(), &[]);
    // Its keeper cannot be found again: it is killed with its members, and the gang has failed.
    assert_eq!(up.until_over("deletes")["status"]["phase"], "Failed");
    up.until("nothing is left of it", |_| {
        let left = place.processes();
        (running("sleep 8801").is_empty()
            && left.iter().all(|(_, command)| command.contains(" up ")))
        .then_some(())
    });
}

#[test]
fn forged_journal_ends_nothing_while_the_keeper_lives() {
    let place = TestDir::new("forges");
    let up = ControlPlane::start(&place.data(), &[]);
    let go = place.0.join("go");
    let script = format!(
        "cd $(dirname $MUSTER_WORLD); echo '{{\"ended\":{{\"at\":1,\"ending\":\"succeeded\"}}}}' >> journal.jsonl; \
         echo forged; while ! [ -e {} ]; do sleep 0.1; done",
        go.display()
    );
    submit(&up, &gang("forges", 1, &script, ""));
    let printed = place.data().join("runs/1/logs/0.out");
    up.until("it has forged", |_| {
        std::fs::read_to_string(&printed).unwrap_or_default().contains("forged").then_some(())
    });
    up.kill();
    let up = ControlPlane::start(&place.data(), &[]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(status(&up, "forges", "phase"), "Running", "what it wrote is believed");
    std::fs::write(go, "").expect("written");
    assert_eq!(up.until_over("forges")["status"]["phase"], "Succeeded");
}

#[test]
fn worker_that_listens_in_place_of_its_keeper_changes_nothing() {
    let place = TestDir::new("socket");
    let up = ControlPlane::start(&place.data(), &[]);
    let script = "cd $(dirname $MUSTER_WORLD) && exec python3 -c '
import os, socket, time
os.remove(\"socket\")
one = socket.socket(socket.AF_UNIX)
one.bind(\"socket\"); one.listen()
print(\"listens\", flush=True)
time.sleep(8901)'";
    submit(&up, &gang("poses", 1, script, ""));
    let printed = place.data().join("runs/1/logs/0.out");
    up.until("it listens", |_| {
        std::fs::read_to_string(&printed).unwrap_or_default().contains("listens").then_some(())
    });
    cancel(&up, "poses");
    assert_eq!(up.until_over("poses")["status"]["reason"], "Cancelled");
}

#[test]
fn huge_environment_fails_its_gang_with_a_reason_and_no_other() {
    let place = TestDir::new("environment");
    let up = ControlPlane::start(&place.data(), &[]);
    let value = "x".repeat(200_000);
    let text = gang("huge", 1, "true", "");
    let text = text.replace("run: {command", &format!("run: {{env: {{HUGE: {value}}}, command"));
    submit(&up, &text);
    let over = up.until_over("huge");
    let message = over["status"]["message"].as_str().unwrap_or_default();
    assert_eq!(over["status"]["phase"], "Failed");
    assert!(message.contains("Argument list too long"), "{message}");
    submit(&up, &gang("victim", 1, "true", ""));
    assert_eq!(up.until_over("victim")["status"]["phase"], "Succeeded");
}

#[test]
fn workload_names_with_escapes_are_refused_and_lists_go_on() {
    let place = TestDir::new("names");
    let up = ControlPlane::start(&place.data(), &[]);
    for name in ["\u{1b}[2J\u{1b}[31m", "a\nb slots=64", "../../x", ""] {
        let object = serde_json::json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "command": ["true"]}]}}},
        });
        let (code, answer) = up.apply(&object.to_string(), None).expect("an answer");
        assert_eq!(code, 422, "{answer}");
        assert!(!answer.to_string().contains("\u{1b}"), "{answer}");
        assert!(answer.to_string().contains("metadata.name"), "{answer}");
    }
    assert_eq!(up.get("/v1/gangs")["items"].as_array().map(Vec::len), Some(0));
}

#[test]
fn members_that_leave_take_what_they_started_with_them() {
    if !grants_groups("members_that_leave_take_what_they_started_with_them") {
        return;
    }
    let place = TestDir::new("leaves-some");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    let node = GPU.replace("count: 1", "count: 4");
    submit(&up, &node);
    let script = "trap '' USR2; env -i setsid sleep 900$MUSTER_MEMBER & sleep 9100; sleep 9100";
    let text = gang("stretchy", 1, script, "  resizeSignal: SIGUSR2\n")
        .replace("min: 1", "min: 1\n    max: 4")
        .replace("cpu: 10m, memory: 256Mi", "nvidia.com/gpu: 1");
    submit(&up, &text);
    let hidden = || (0..9).filter(|n| !running(&format!("sleep 900{n}")).is_empty()).count();
    up.until("all four have hidden something", |_| (hidden() == 4).then_some(()));
    let path = "/v1/namespaces/default/gangs/stretchy/scale";
    let (code, answer) = up.post(path, "{\"max\": 1}");
    assert_eq!(code, 200, "{answer}");
    up.until("one is left", |up| {
        let gang = up.gang("stretchy");
        (gang["status"]["progress"] == "1/1").then_some(())
    });
    assert_eq!(hidden(), 1, "seats are given back with processes on them");
    cancel(&up, "stretchy");
    up.until_over("stretchy");
}
