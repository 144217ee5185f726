//! A control plane in its own directory, and operations on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{ask, json};

/// The deadline for every wait.
const DEADLINE: Duration = Duration::from_secs(180);

/// A directory that is removed with the test, and with every process that was started in it.
pub(super) struct TestDir(pub(super) PathBuf);

impl TestDir {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("muster-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Live processes of this directory, keepers and members, by their command lines. Zombies are left out.
    pub(super) fn processes(&self) -> Vec<(u32, String)> {
        let mark = self.0.to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
            let (command, environment) = (text(read("cmdline")), text(read("environ")));
            let ours = command.contains(&mark) || environment.contains(&mark);
            if pid != std::process::id() && ours && !command.is_empty() {
                found.push((pid, command));
            }
        }
        found
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running control plane.
pub(super) struct ControlPlane {
    child: Child,
    address: String,
    /// The token of the owner, where that is the credential.
    token: String,
}

impl ControlPlane {
    /// Starts a control plane and waits until it answers.
    pub(super) fn start(data: &Path, more: &[&str]) -> Self {
        Self::start_as(Path::new(env!("CARGO_BIN_EXE_muster")), data, more)
    }

    /// The same, with another copy of the program.
    pub(super) fn start_as(program: &Path, data: &Path, more: &[&str]) -> Self {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(data.with_extension("log"))
            .expect("a log");
        let mut child = Command::new(program)
            .args(["up", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("muster");
        let began = Instant::now();
        loop {
            let note = std::fs::read_to_string(data.join("server.json")).unwrap_or_default();
            let note: Value = serde_json::from_str(&note).unwrap_or_default();
            if note["pid"] == child.id() {
                let url = note["url"].as_str().expect("a URL");
                let address = url.trim_start_matches("http://").to_owned();
                let token = note["token"].as_str().unwrap_or_default().to_owned();
                return Self { child, address, token };
            }
            if let Some(status) = child.try_wait().expect("a child") {
                let log = std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
                panic!("muster up ended with {status}: {log}");
            }
            assert!(began.elapsed() < DEADLINE, "muster up does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request as the owner.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        ask(&self.address, method, path, &all, body)
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }

    /// Ends it with SIGTERM and waits.
    pub(super) fn end(mut self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(sent.expect("kill").success());
        let status = self.child.wait().expect("waited for");
        assert!(status.success(), "{status}");
    }

    pub(super) fn try_get(&self, path: &str) -> std::io::Result<Value> {
        let (code, body) = self.ask("GET", path, &[], "")?;
        assert_eq!(code, 200, "{path}: {body}");
        Ok(json(&body))
    }

    pub(super) fn get(&self, path: &str) -> Value {
        self.try_get(path).expect("an answer")
    }

    /// Applies manifests; with a key, the same request may be sent again.
    pub(super) fn apply(&self, text: &str, key: Option<&str>) -> std::io::Result<(u16, Value)> {
        let mut headers = vec![("content-type", "application/yaml")];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let (code, body) = self.ask("POST", "/v1/apply", &headers, text)?;
        Ok((code, json(&body)))
    }

    pub(super) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let headers = [("content-type", "application/json")];
        let (code, body) = self.ask("POST", path, &headers, body).expect("an answer");
        (code, json(&body))
    }

    pub(super) fn delete(&self, path: &str) -> u16 {
        self.ask("DELETE", path, &[], "").expect("an answer").0
    }

    pub(super) fn gang(&self, name: &str) -> Value {
        self.get(&format!("/v1/namespaces/default/gangs/{name}"))
    }

    /// Waits until a gang is over, and returns its object.
    pub(super) fn until_over(&self, name: &str) -> Value {
        self.until(&format!("{name} is over"), |up| {
            let gang = up.gang(name);
            let phase = gang["status"]["phase"].as_str().unwrap_or_default();
            matches!(phase, "Succeeded" | "Failed").then(|| gang.clone())
        })
    }

    pub(super) fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(began.elapsed() < DEADLINE, "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
