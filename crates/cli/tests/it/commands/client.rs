//! The client commands, against a real control plane.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::muster::{Outcome, command, empty_dir, finish, write, write_private};

/// A control plane in its own directory, and its clients.
struct ControlPlane {
    dir: PathBuf,
    child: Child,
}

impl ControlPlane {
    fn start(test: &str, more: &[&str]) -> Self {
        let dir = empty_dir(&format!("client-{test}"));
        Self::start_in(dir, &[&["--listen", "127.0.0.1:0"], more].concat())
    }

    fn start_in(dir: PathBuf, args: &[&str]) -> Self {
        let log = std::fs::File::create(dir.join("log")).expect("a log");
        let mut child = command_in(&dir, &["up", "--no-local"]);
        let child = child.args(args).stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
        let plane = Self { dir, child };
        let began = Instant::now();
        while plane.url().is_none_or(|(_, pid)| pid != u64::from(plane.child.id())) {
            assert!(began.elapsed() < Duration::from_secs(60), "no control plane");
            std::thread::sleep(Duration::from_millis(10));
        }
        plane
    }

    fn url(&self) -> Option<(String, u64)> {
        let text = std::fs::read_to_string(self.dir.join("data/server.json")).ok()?;
        let note: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some((note["url"].as_str()?.to_owned(), note["pid"].as_u64()?))
    }

    fn muster(&self, args: &[&str]) -> Outcome {
        finish(&mut command_in(&self.dir, args))
    }

    fn kill(mut self) -> PathBuf {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
        self.dir.clone()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command in a directory, with no other configuration than what is there.
fn command_in(dir: &Path, args: &[&str]) -> Command {
    let mut command = command();
    for name in
        ["MUSTER_SERVER", "MUSTER_CONTEXT", "MUSTER_TOKEN", "MUSTER_TOKEN_FILE", "MUSTER_CA_FILE"]
    {
        command.env_remove(name);
    }
    command.current_dir(dir).env("MUSTER_DATA", dir.join("data"));
    command.env("MUSTER_CONFIG", dir.join("config.yaml")).args(args);
    command
}

/// A node of 4 CPUs, and a gang of two members that run a shell script on it.
fn job(name: &str, script: &str) -> String {
    format!(
        "kind: Node\nmetadata: {{name: box}}\nspec: {{allocatable: {{cpu: 4, memory: 8Gi}}}}\n---\n\
         kind: Gang\nmetadata: {{name: {name}}}\nspec:\n  roles:\n  - name: worker\n    min: 2\n    \
         resources: {{cpu: 1}}\n    run: {{command: [sh, -c, '{script}']}}\n"
    )
}

#[test]
fn gang_is_submitted_shown_logged_and_deleted() {
    let plane = ControlPlane::start("life", &[]);
    write(&plane.dir, "good.yaml", job("good", "echo hello from $RANK; echo oops >&2"));
    let would = plane.muster(&["submit", "--dry-run", "good.yaml"]).exits(0);
    assert!(would.out.contains("gang default/good would be new"), "{}", would.out);
    let done = plane.muster(&["submit", "--follow", "good.yaml"]).exits(0);
    for rank in 0..2 {
        let line = format!("[worker {rank}] hello from {rank}\n");
        assert_eq!(done.out.matches(&line).count(), 1, "{}", done.out);
        assert!(done.err.contains(&format!("[worker {rank}] oops\n")), "{}", done.err);
    }
    assert!(done.err.contains("default/good succeeded\n"), "{}", done.err);

    let table = plane.muster(&["get", "gg"]).exits(0).out;
    let row: Vec<_> = table.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(&row[..2], ["good", "Succeeded"], "{table}");
    assert_eq!(plane.muster(&["get", "gangs", "-o", "name"]).out, "gang/default/good\n");
    assert!(plane.muster(&["get", "gang", "good", "-o", "yaml"]).out.contains("phase: Succeeded"));
    assert_eq!(plane.muster(&["logs", "good", "--member", "1"]).out, "hello from 1\n");
    assert!(plane.muster(&["logs", "-f", "good"]).exits(0).out.contains("[worker 0] hello"));
    let described = plane.muster(&["describe", "gang", "good"]).exits(0).out;
    assert!(
        described.contains("  Phase:           Succeeded") && described.contains("Started: "),
        "{described}"
    );
    assert!(plane.muster(&["why", "good"]).exits(0).out.contains("default/good: is over"));
    assert!(plane.muster(&["usage", "--from", "1h"]).exits(0).out.contains("default"));
    assert!(plane.muster(&["nodes"]).exits(0).out.contains("box"));
    assert!(plane.muster(&["top"]).exits(0).out.contains("1 of 1 node ready"));

    let missing = plane.muster(&["get", "gang", "-n", "other", "good"]).exits(1);
    assert!(missing.err.contains("there is default/good"), "{}", missing.err);
    plane.muster(&["delete", "gang", "good"]).exits(0);
    plane.muster(&["logs", "good"]).exits(1);
    let none = plane.muster(&["get", "gangs"]).exits(0);
    assert!(none.out.is_empty() && none.err.contains("there are no such gangs"), "{none:?}");
}

#[test]
fn exit_codes_tell_failure_timeout_and_wrong_usage() {
    let plane = ControlPlane::start("codes", &[]);
    write(&plane.dir, "bad.yaml", job("bad", "exit 7"));
    let bad = plane.muster(&["submit", "--wait", "bad.yaml"]).exits(3);
    assert!(
        bad.err.contains("default/bad failed: ") && bad.err.contains("returned 7"),
        "{}",
        bad.err
    );
    write(&plane.dir, "long.yaml", job("long", "sleep 600"));
    let long = plane.muster(&["submit", "--timeout", "1s", "long.yaml"]).exits(4);
    assert!(long.err.contains("not all gangs were over after 1s"), "{}", long.err);
    plane.muster(&["cancel", "long", "nothing"]).exits(1);
    plane.muster(&["logs", "-f", "long"]).exits(0);
    write(&plane.dir, "held.yaml", job("held", "sleep 600").replace("cpu: 1}", "cpu: 64}"));
    plane.muster(&["submit", "held.yaml"]).exits(0);
    plane.muster(&["hold", "held"]).exits(0);
    assert!(plane.muster(&["get", "gangs"]).out.contains("Held"));
    plane.muster(&["release", "held"]).exits(0);
    let scaled = plane.muster(&["scale", "held", "--min", "1", "--max", "3"]).exits(0);
    assert_eq!(scaled.out, "gang default/held is scaled: worker 1..3\n");
    plane.muster(&["scale", "held"]).exits(2);
    plane.muster(&["cancel", "held"]).exits(0);
}

#[test]
fn submit_reports_findings_with_file_and_line() {
    let plane = ControlPlane::start("findings", &[]);
    write(&plane.dir, "good.yaml", job("good", "true"));
    write(
        &plane.dir,
        "wrong.yaml",
        "kind: Gang\nmetadata: {name: x}\nspec: {roles: [{name: w, min: 0}]}\n",
    );
    let wrong = plane.muster(&["submit", "good.yaml", "wrong.yaml"]).exits(2);
    assert!(wrong.err.contains("error: wrong.yaml:3:31: spec.roles[0].min: "), "{}", wrong.err);
    assert_eq!(plane.muster(&["get", "gangs", "-o", "name"]).out, "", "all of it or nothing");
    plane.muster(&["what-if", "wrong.yaml"]).exits(2);
    plane.muster(&["submit", "missing.yaml"]).exits(2);
    let would = plane.muster(&["what-if", "good.yaml"]).exits(0).out;
    assert!(would.contains("default/good: would start now"), "with the node beside it: {would}");
    assert_eq!(plane.muster(&["get", "nodes", "-o", "name"]).out, "", "it was only asked about");
}

#[test]
fn watch_survives_a_restart_of_the_control_plane() {
    let plane = ControlPlane::start("watch", &[]);
    let url = plane.url().expect("a URL").0;
    let mut watch = command_in(&plane.dir, &["get", "gangs", "-A", "--watch", "-o", "name"]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    write(&plane.dir, "a.yaml", job("a", "true").replace("cpu: 1}", "cpu: 64}"));
    plane.muster(&["submit", "a.yaml"]).exits(0);
    assert_eq!(next(), "gang/default/a");
    let dir = plane.kill();
    let plane = ControlPlane::start_in(dir, &["--listen", url.trim_start_matches("http://")]);
    write(&plane.dir, "b.yaml", job("b", "true").replace("cpu: 1}", "cpu: 64}"));
    plane.muster(&["submit", "b.yaml"]).exits(0);
    while next() != "gang/default/b" {}
    watch.kill().expect("killed");
    watch.wait().expect("waited for");
}

#[test]
fn tokens_and_contexts_authenticate_the_caller() {
    let dir = empty_dir("client-tokens");
    let tokens = "tokens: [{name: vera, token: token-of-vera-viewer, role: viewer}]\n";
    write_private(&dir, "tokens.yaml", tokens);
    write(&dir, "token", "token-of-vera-viewer\n");
    let args = ["--listen", "127.0.0.1:0", "--tokens", "tokens.yaml", "--allow-root"];
    let plane = ControlPlane::start_in(dir, &args);
    let anonymous = plane.muster(&["whoami"]).exits(1);
    assert!(anonymous.err.contains("MUSTER_TOKEN, --token-file"), "{}", anonymous.err);
    let vera = plane.muster(&["whoami", "--token-file", "token"]).exits(0);
    assert!(vera.out.starts_with("vera (viewer) may look, at http://"), "{}", vera.out);
    write(&plane.dir, "a.yaml", job("a", "true"));
    let refused = plane.muster(&["submit", "--token-file", "token", "a.yaml"]).exits(1);
    assert!(refused.err.contains("`muster whoami`"), "{}", refused.err);
    let url = plane.url().expect("a URL").0;
    plane.muster(&["context", "set", "here", "--server", &url, "--token-file", "token"]).exits(0);
    let listed = plane.muster(&["context", "list"]).exits(0).out;
    assert!(listed.contains("*   here   http://"), "{listed}");
    plane.muster(&["whoami"]).exits(0);
    plane.muster(&["whoami", "--context", "there"]).exits(2);
    plane.muster(&["context", "remove", "here"]).exits(0);
    plane.muster(&["whoami"]).exits(1);
}

#[test]
fn error_without_control_plane_says_how_to_start_one() {
    let dir = empty_dir("client-missing");
    let missing = finish(&mut command_in(&dir, &["get", "gangs"])).exits(2);
    assert!(missing.err.contains("start one on this machine with `muster up`"), "{}", missing.err);
    let refused =
        finish(&mut command_in(&dir, &["get", "gangs", "--server", "http://127.0.0.1:1"])).exits(1);
    assert!(refused.err.contains("the connection is refused"), "{}", refused.err);
    let odd = finish(&mut command_in(&dir, &["get", "gangs", "--server", "localhost"])).exits(2);
    assert!(odd.err.contains("write http://HOST:PORT"), "{}", odd.err);
}

/// Reads one request, and returns its idempotency key.
fn key_of(stream: &mut std::net::TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a request") == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
    key.expect("a key").to_owned()
}

#[test]
fn unanswered_request_is_retried_with_the_same_key() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serve = std::thread::spawn(move || {
        // The first connection is closed without an answer.
        let first = key_of(&mut listener.accept().expect("a client").0);
        let mut stream = listener.accept().expect("the client again").0;
        let second = key_of(&mut stream);
        let body = r#"{"items": [{"kind": "Gang", "name": "default/a", "effect": "created"}]}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).expect("written");
        // The body of the request is still to be read; closing at once would cut the answer off.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = stream.read_to_end(&mut Vec::new());
        (first, second)
    });
    let dir = empty_dir("client-again");
    write(&dir, "a.yaml", job("a", "true"));
    let done = finish(&mut command_in(&dir, &["submit", "a.yaml", "--server", &url])).exits(0);
    assert_eq!(done.out, "gang default/a is new\n");
    let (first, second) = serve.join().expect("served");
    assert_eq!(first, second);
    assert!(first.len() > 20, "{first}");
}

#[test]
fn client_help_has_examples_and_fits_the_screen() {
    let names = [
        "submit", "get", "describe", "why", "what-if", "logs", "cancel", "hold", "release",
        "scale", "delete", "queues", "pools", "nodes", "usage", "audit", "top", "context",
        "whoami",
    ];
    for name in names {
        let text = finish(command().args([name, "--help"]).env("COLUMNS", "300")).exits(0).out;
        let (_, examples) = text.split_once("Examples:\n").expect("examples");
        assert!(examples.contains(&format!("muster {name}")), "{text}");
        let widest = text.lines().max_by_key(|line| line.chars().count()).expect("lines");
        assert!(widest.chars().count() <= 110, "{name}: {widest}");
    }
}
