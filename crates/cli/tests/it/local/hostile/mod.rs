//! Attacks on a real control plane: by another local user, a viewer, a user, clients without a token and malicious
//! jobs; and faults of the machine.
//!
//! Each is refused, or has no effect on others. docs/local.md has the same list.

mod job;
mod machine_faults;
mod network;
mod processes;
mod users;
mod viewer;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::control_plane::{ControlPlane, TestDir};
use super::http::{ask, json};
use crate::muster::write_private;

const ROOT: &str = "root-token-0123456789";
const EVE: &str = "viewer-token-0123456789";
const ADA: &str = "ada-token-0123456789ab";
const BOB: &str = "bob-token-0123456789ab";

const TOKENS: &str = "
tokens:
- {name: root, token: root-token-0123456789, role: admin}
- {name: eve, token: viewer-token-0123456789, role: viewer}
- {name: ada, token: ada-token-0123456789ab, role: user, queues: [research]}
- {name: bob, token: bob-token-0123456789ab, role: user, queues: [sales]}
";

const QUEUES: &str = "kind: Queue\nmetadata: {name: research}\nspec: {}\n---\n\
                      kind: Queue\nmetadata: {name: sales}\nspec: {}\n";

/// A control plane with a viewer, users of two queues and an admin.
struct Tenants {
    up: ControlPlane,
    place: TestDir,
}

impl Tenants {
    fn new(name: &str) -> Self {
        Self::with(name, &[])
    }

    fn with(name: &str, more: &[&str]) -> Self {
        let place = TestDir::new(name);
        write_private(&place.0, "tokens.yaml", TOKENS);
        let tokens = place.0.join("tokens.yaml");
        let mut args = vec!["--allow-root", "--tokens", tokens.to_str().expect("text")];
        args.extend_from_slice(more);
        let up = ControlPlane::start(&place.data(), &args);
        let tenants = Self { up, place };
        assert_eq!(tenants.apply(ROOT, QUEUES).0, 200);
        tenants
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let bearer = format!("Bearer {token}");
        let json = path.ends_with("/scale");
        let kind = if json { "application/json" } else { "application/yaml" };
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        ask(self.up.address(), method, path, &headers, body).expect("an answer")
    }

    /// The status code for a body of this size, before any of it is sent.
    fn announce(&self, token: &str, path: &str, bytes: usize) -> String {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(self.up.address()).expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-length: {bytes}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("a status");
        String::from_utf8_lossy(&first[9..]).into_owned()
    }

    fn apply(&self, token: &str, manifests: &str) -> (u16, String) {
        self.ask(token, "POST", "/v1/apply", manifests)
    }

    fn get(&self, token: &str, path: &str) -> Value {
        let (code, body) = self.ask(token, "GET", path, "");
        assert_eq!(code, 200, "{path}: {body}");
        json(&body)
    }

    /// Waits until a gang is over, and returns its phase.
    fn until_over(&self, name: &str) -> String {
        let path = format!("/v1/namespaces/default/gangs/{name}");
        self.up.until(&format!("{name} is over"), |_| {
            let phase = self.get(ROOT, &path)["status"]["phase"].as_str().map(str::to_owned);
            phase.filter(|phase| matches!(phase.as_str(), "Succeeded" | "Failed"))
        })
    }

    /// The resident memory of the control plane, in MiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.up.pid()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.split_whitespace().next().and_then(|text| text.parse::<u64>().ok()).expect("a number")
            >> 10
    }
}

/// A gang that runs a shell script.
fn gang(name: &str, queue: &str, script: &str) -> String {
    format!(
        "kind: Gang\nmetadata: {{name: {name}}}\nspec: {{queue: {queue}, roles: [{{name: w, min: 1, \
         resources: {{cpu: 10m}}, run: {{command: [sh, -c, '{script}']}}}}]}}\n"
    )
}

/// Runs a command as another local user. `None`, with a message, where the tests are not permitted to.
fn as_nobody(command: &[&str]) -> Option<(bool, String)> {
    if !muster_local::may_change_user() {
        let why = "another local user needs root";
        assert!(std::env::var_os("MUSTER_REQUIRE_TESTBED").is_none(), "{why}");
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {why}");
        return None;
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .args(command)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv");
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// A program that runs a shell command before it becomes `muster`.
fn wrapped(place: &TestDir, first: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = place.0.join("muster");
    let script = format!("#!/bin/sh\n{first}\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_muster"));
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    path
}
