//! Recordings: `simulate --record`, `replay`, `simulate --replay`.

use std::path::{Path, PathBuf};

use crate::muster::{empty_dir, muster, muster_in, root, write};

/// A recording of the quickstart, in its own directory.
fn recorded(test: &str, option: &str) -> PathBuf {
    let dir = empty_dir(test);
    let quickstart = root().join("examples/quickstart.yaml");
    let quickstart = quickstart.to_str().expect("text");
    muster_in(&dir, &["simulate", quickstart, option, "run.jsonl"]).exits(0);
    dir
}

fn lines(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("run.jsonl")).expect("it was written");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn replay_repeats_every_plan_of_a_recording() {
    for option in ["--record", "--save-plan"] {
        let dir = recorded("recording", option);
        let plans = lines(&dir).iter().filter(|line| line.starts_with("{\"Plan\"")).count();
        let events = lines(&dir).iter().filter(|line| line.starts_with("{\"Event\"")).count();
        assert!(plans > 50 && events > 50, "{plans} plans, {events} events");
        let said = format!(
            "{events} events, {plans} plans repeated: every plan is the same, byte for byte\n"
        );
        for replay in [&["replay", "run.jsonl"][..], &["simulate", "--replay", "run.jsonl"]] {
            let replayed = muster_in(&dir, replay).exits(0);
            assert_eq!((replayed.out, replayed.err), (said.clone(), String::new()));
            let json = muster_in(&dir, &[replay, &["--json"]].concat()).exits(0).json();
            let found = serde_json::json!({ "events": events, "plans": plans, "difference": null });
            assert_eq!(json, [found]);
        }
    }
}

#[test]
fn recording_does_not_change_the_run() {
    let dir = empty_dir("unchanged");
    let simulate = ["simulate", "--workload", "mixed", "--jobs", "40", "--nodes", "64", "--json"];
    let plain = muster(&simulate).exits(0).out;
    assert_eq!(muster_in(&dir, &[&simulate[..], &["--record", "run.jsonl"]].concat()).out, plain);
    muster_in(&dir, &["replay", "run.jsonl"]).exits(0);
}

#[test]
fn replay_finds_a_changed_digit() {
    let dir = recorded("tampered", "--record");
    let mut lines = lines(&dir);
    let is_plan = |line: &String| line.starts_with("{\"Plan\"") && line.contains("\"ready\":3");
    let at = lines.iter().position(is_plan).expect("such a plan");
    lines[at] = lines[at].replacen("\"ready\":3", "\"ready\":4", 1);
    write(&dir, "run.jsonl", lines.join("\n"));
    for replay in [&["replay", "run.jsonl"][..], &["simulate", "--replay", "run.jsonl"]] {
        let replayed = muster_in(&dir, replay).exits(1);
        assert_eq!(replayed.out, "");
        let said: Vec<&str> = replayed.err.lines().collect();
        let [what, recorded, planned] = said[..] else { panic!("{}", replayed.err) };
        let place = format!("error: run.jsonl:{}: the plan at ", at + 1);
        assert!(what.starts_with(&place) && what.ends_with("s is not the one recorded"), "{what}");
        assert!(recorded.starts_with("  recorded: {") && recorded.contains("\"ready\":4"));
        assert!(planned.starts_with("  planned:  {") && planned.contains("\"ready\":3"));
    }
    let json = muster_in(&dir, &["replay", "--json", "run.jsonl"]).exits(1).json();
    assert_eq!(json[0]["difference"]["line"], at + 1);
}

#[test]
fn files_that_are_not_recordings_are_refused() {
    let dir = recorded("garbage", "--record");
    let whole = lines(&dir).join("\n");
    let other_version = whole.replacen("\"version\":1", "\"version\":9", 1);
    assert_ne!(other_version, whole);
    for (name, content, reason) in [
        ("empty", &b""[..], "line 1: not a recording of version 1"),
        ("noise", b"\xff\xfe\x00 noise", "line 1: stream did not contain valid UTF-8"),
        ("yaml", b"kind: Gang\n", "line 1: not a line of a recording: "),
        (
            "json",
            b"{\"Planned\":1}\n",
            "line 1: not a line of a recording: unknown variant `Planned`",
        ),
        ("headless", lines(&dir)[1].as_bytes(), "line 1: not a recording of version 1"),
        ("version", other_version.as_bytes(), "line 1: not a recording of version 1"),
        (
            "cut",
            &whole.as_bytes()[..whole.len() - 10],
            "not a line of a recording: EOF while parsing",
        ),
    ] {
        write(&dir, name, content);
        let refused = muster_in(&dir, &["replay", name]).exits(2);
        assert_eq!(refused.out, "");
        assert!(refused.err.starts_with(&format!("error: {name}: line ")), "{}", refused.err);
        assert!(refused.err.contains(reason), "{name}: {}", refused.err);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }
    let gone = muster_in(&dir, &["replay", "gone"]).exits(2);
    assert!(gone.err.starts_with("error: gone: cannot be opened: "), "{}", gone.err);
}
