//! Processes and control groups, as the kernel shows them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::control_plane::{ControlPlane, TestDir};

/// A gang of one role whose members run a script.
pub(super) fn gang(name: &str, members: u32, script: &str, more: &str) -> String {
    let script = serde_json::Value::from(script);
    format!(
        "
kind: Gang
metadata: {{name: {name}}}
spec:
  roles:
  - name: worker
    min: {members}
    resources: {{cpu: 10m, memory: 256Mi}}
    run: {{command: [sh, -c, {script}]}}
{more}"
    )
}

pub(super) fn submit(up: &ControlPlane, text: &str) {
    let (code, answer) = up.apply(text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
}

pub(super) fn status(up: &ControlPlane, name: &str, field: &str) -> String {
    up.gang(name)["status"][field].as_str().unwrap_or_default().to_owned()
}

pub(super) fn until_runs(up: &ControlPlane, name: &str) {
    up.until("it runs", |up| (status(up, name, "phase") == "Running").then_some(()));
}

pub(super) fn cancel(up: &ControlPlane, name: &str) {
    let (code, answer) = up.post(&format!("/v1/namespaces/default/gangs/{name}/cancel"), "");
    assert_eq!(code, 200, "{answer}");
}

/// Live processes with exactly this command line, whatever their environment is.
pub(super) fn running(what: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.trim_end() == what {
            found.push(pid);
        }
    }
    found
}

/// The keeper of the one run in a directory.
pub(super) fn keeper(up: &ControlPlane, place: &TestDir) -> u32 {
    up.until("there is a keeper", |_| {
        let all = place.processes().into_iter();
        let mut keepers = all.filter(|(_, command)| command.contains(" keep "));
        keepers.next().map(|(pid, _)| pid)
    })
}

pub(super) fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// The control groups of Muster that a process is in.
pub(super) fn groups(pid: u32) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let one = root.join("cgroup.controllers").exists();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains("/muster-")) {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let tree = match kind {
            "" if one => root.to_owned(),
            "" => root.join("unified"),
            kind => root.join(kind),
        };
        found.push(tree.join(path.trim_start_matches('/')));
    }
    found
}

/// Whether this process may create control groups; prints a message if not.
pub(super) fn grants_groups(test: &str) -> bool {
    let root = Path::new("/sys/fs/cgroup");
    let tree = if root.join("cgroup.controllers").exists() {
        root.to_owned()
    } else {
        root.join("unified")
    };
    let probe = tree.join(format!("muster-probe-it-{}", std::process::id()));
    let granted = std::fs::create_dir(&probe).is_ok();
    let _ = std::fs::remove_dir(probe);
    if !granted {
        eprintln!("SKIPPED {test}: no control groups can be made here");
    }
    granted
}

/// A program that runs a shell command before it becomes `muster`.
pub(super) fn wrapped(place: &TestDir, first: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = place.0.join("muster-wrapped");
    let muster = env!("CARGO_BIN_EXE_muster");
    std::fs::write(&path, format!("#!/bin/sh\n{first}\nexec {muster} \"$@\"\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}
