//! Faults of the machine: clocks that jump, full disks, exhausted file handles. Nothing is deleted, nothing stops for
//! good, and failed operations are retried.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::control_plane::{ControlPlane, TestDir};
use super::super::http::ask;
use super::processes::{cancel, gang, keeper, running, status, submit, wrapped};

/// A wall clock that is wrong by the number of seconds in a file; all other clocks are right.
struct WrongClock {
    library: PathBuf,
    offset: PathBuf,
}

const SHIFTED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int said = real(id, at);
    if (said == 0 && id == CLOCK_REALTIME) {
        FILE *file = fopen(getenv("WRONG_BY"), "r");
        long by = 0;
        if (file) { if (fscanf(file, "%ld", &by) != 1) by = 0; fclose(file); }
        at->tv_sec += by;
    }
    return said;
}
"#;

impl WrongClock {
    /// `None`, with a message, where there is no C compiler.
    fn new(place: &TestDir, test: &str) -> Option<Self> {
        let (source, library) = (place.0.join("shifted.c"), place.0.join("shifted.so"));
        std::fs::write(&source, SHIFTED).expect("written");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        if !cc.status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED {test}: no C compiler");
            return None;
        }
        Some(Self { library, offset: place.0.join("wrong-by") })
    }

    fn program(&self, place: &TestDir) -> PathBuf {
        let (library, offset) = (self.library.display(), self.offset.display());
        wrapped(place, &format!("export WRONG_BY={offset} LD_PRELOAD={library}"))
    }

    fn set(&self, seconds: i64) {
        let part = self.offset.with_extension("part");
        std::fs::write(&part, seconds.to_string()).expect("written");
        std::fs::rename(part, &self.offset).expect("set");
    }
}

const DAY: i64 = 24 * 3_600;

/// A gang that enters its queue later.
fn after(name: &str, span: &str) -> String {
    let annotations = format!("annotations: {{sim.muster.sh/submit-after: {span}}}");
    let metadata = format!("metadata: {{name: {name}, {annotations}}}");
    gang(name, 1, "true", "  timeLimit: 60s\n")
        .replace(&format!("metadata: {{name: {name}}}"), &metadata)
}

#[test]
fn clock_nine_days_ahead_and_back_deletes_nothing() {
    let place = TestDir::new("clock-delete");
    let Some(clock) = WrongClock::new(&place, "clock_nine_days_ahead_and_back_deletes_nothing")
    else {
        return;
    };
    // Gangs are kept for an hour; old ones are looked for every minute, and at the start.
    let up = ControlPlane::start_as(&clock.program(&place), &place.data(), &["--keep", "1h"]);
    submit(&up, &gang("old", 1, "echo kept", ""));
    up.until_over("old");
    let before = up.gang("old")["status"]["endedAt"].clone();
    clock.set(9 * DAY);
    std::thread::sleep(Duration::from_secs(65));
    submit(&up, &gang("meanwhile", 1, "true", ""));
    let ended =
        up.until_over("meanwhile")["status"]["endedAt"].as_str().unwrap_or_default().to_owned();
    clock.set(0);
    up.kill();
    clock.set(9 * DAY);
    let up = ControlPlane::start_as(&clock.program(&place), &place.data(), &["--keep", "1h"]);
    std::thread::sleep(Duration::from_secs(2));
    clock.set(0);
    assert_eq!(up.gang("old")["status"]["endedAt"], before, "its record is there");
    assert!(place.data().join("runs/1/logs/0.out").exists(), "what it printed is there");
    let hours = before.as_str().unwrap_or_default()[..10].to_owned();
    assert!(ended.starts_with(&hours), "{ended} is by the wrong clock, not {hours}");
}

#[test]
fn clock_a_day_ahead_and_back_does_not_stop_time() {
    let place = TestDir::new("clock-stop");
    let Some(clock) = WrongClock::new(&place, "clock_a_day_ahead_and_back_does_not_stop_time")
    else {
        return;
    };
    let up = ControlPlane::start_as(&clock.program(&place), &place.data(), &[]);
    clock.set(DAY);
    submit(&up, &gang("nudge", 1, "true", ""));
    up.until_over("nudge");
    std::thread::sleep(Duration::from_secs(6));
    clock.set(0);
    let began = std::time::Instant::now();
    submit(&up, &after("later", "3s"));
    assert_eq!(up.until_over("later")["status"]["phase"], "Succeeded");
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    let used = up.get("/v1/usage?by=gang");
    let most =
        used["items"].as_array().into_iter().flatten().filter_map(|sum| sum["cpuSeconds"].as_f64());
    assert!(most.fold(0.0, f64::max) < 60.0, "the wrong day is accounted for: {used}");
}

/// A small file system for a data directory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a message, where mounting is not permitted.
    fn new(place: &TestDir, mib: u32, test: &str) -> Option<Self> {
        let path = place.0.join("disk");
        std::fs::create_dir_all(&path).expect("a directory");
        let options = format!("size={mib}m,mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "muster-test"])
            .arg(&path)
            .stderr(std::process::Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED {test}: nothing may be mounted here");
            return None;
        }
        Some(Self(path))
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn free(&self) -> u64 {
        let said = Command::new("df").args(["--output=avail", "-B1"]).arg(&self.0).output();
        let said = String::from_utf8(said.expect("df").stdout).expect("text");
        said.lines().nth(1).and_then(|line| line.trim().parse().ok()).expect("a number")
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let file = format!("of={}", self.0.join("filler").display());
        let filled = Command::new("dd").args(["if=/dev/zero", &file, "bs=64k"]).output();
        assert!(!filled.expect("dd").status.success(), "it is not full");
        // The rest of the last block.
        let more = format!("cat /dev/zero >> {} 2>/dev/null", self.0.join("filler2").display());
        let _ = Command::new("sh").args(["-c", &more]).status();
    }

    fn clear(&self) {
        for file in ["filler", "filler2"] {
            let _ = std::fs::remove_file(self.0.join(file));
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn ready(up: &ControlPlane) -> u16 {
    ask(up.address(), "GET", "/readyz", &[], "").expect("an answer").0
}

#[test]
fn output_leaves_free_disk_space_and_reports_what_is_dropped() {
    let place = TestDir::new("disk-floor");
    let test = "output_leaves_free_disk_space_and_reports_what_is_dropped";
    let Some(disk) = SmallDisk::new(&place, 40, test) else { return };
    let up = ControlPlane::start(&disk.data(), &[]);
    submit(&up, &gang("flood", 2, "head -c 60000000 /dev/zero; echo end >&2", ""));
    assert_eq!(up.until_over("flood")["status"]["phase"], "Succeeded", "it is not held up");
    assert!(disk.free() >= 7 << 20, "{} bytes are left", disk.free());
    let journal = std::fs::read_to_string(disk.data().join("runs/1/journal.jsonl"));
    assert!(journal.expect("a journal").contains("the disk is nearly full"));
    assert_eq!(ready(&up), 200);
    submit(&up, &gang("victim", 1, "true", ""));
    assert_eq!(up.until_over("victim")["status"]["phase"], "Succeeded");
}

#[test]
fn full_disk_leaves_the_daemon_readable_and_it_recovers() {
    let place = TestDir::new("disk-full");
    let test = "full_disk_leaves_the_daemon_readable_and_it_recovers";
    let Some(disk) = SmallDisk::new(&place, 40, test) else { return };
    let up = ControlPlane::start(&disk.data(), &[]);
    submit(&up, &gang("before", 1, "true", ""));
    up.until_over("before");
    let go = place.0.join("go");
    let wait = format!("while ! [ -e {} ]; do sleep 0.1; done", go.display());
    submit(&up, &gang("runs", 1, &wait, ""));
    up.until("it runs", |up| (status(up, "runs", "phase") == "Running").then_some(()));
    disk.fill();
    // Nothing can be written from now on, until the reserve is released.
    let refused = up.until("new work is refused", |up| {
        let (code, answer) = up.apply(&gang("new", 1, "true", ""), None).ok()?;
        (code == 503).then_some(answer)
    });
    assert!(refused.to_string().contains("until there is room"), "{refused}");
    assert_eq!(ready(&up), 503);
    assert_eq!(status(&up, "before", "phase"), "Succeeded", "what is known can be read");
    std::fs::write(go, "").expect("written");
    disk.clear();
    up.until("it takes work again", |up| {
        let (code, _) = up.apply(&gang("after", 1, "true", ""), None).ok()?;
        (code == 200).then_some(())
    });
    assert_eq!(ready(&up), 200);
    assert_eq!(up.until_over("runs")["status"]["phase"], "Succeeded");
    assert_eq!(up.until_over("after")["status"]["phase"], "Succeeded");
}

#[test]
fn daemon_starts_on_a_full_disk_and_cancels_gangs() {
    let place = TestDir::new("disk-start");
    let test = "daemon_starts_on_a_full_disk_and_cancels_gangs";
    let Some(disk) = SmallDisk::new(&place, 40, test) else { return };
    let up = ControlPlane::start(&disk.data(), &[]);
    submit(&up, &gang("runs", 1, "sleep 9201", ""));
    up.until("it runs", |_| (!running("sleep 9201").is_empty()).then_some(()));
    up.kill();
    disk.fill();
    let up = ControlPlane::start(&disk.data(), &[]);
    let phase = up.until("it is known again", |up| {
        let gang = up.gang("runs");
        gang["status"]["phase"].as_str().map(str::to_owned)
    });
    assert_eq!(phase, "Running");
    let (code, answer) = up.apply(&gang("new", 1, "true", ""), None).expect("an answer");
    assert_eq!(code, 503, "{answer}");
    disk.clear();
    up.until("there is room", |up| (ready(up) == 200).then_some(()));
    cancel(&up, "runs");
    assert_eq!(up.until_over("runs")["status"]["reason"], "Cancelled");
}

#[test]
fn daemon_without_file_handles_starts_gangs_later() {
    let place = TestDir::new("handles");
    let program = wrapped(&place, "ulimit -n 64");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    submit(&up, &after("due", "2s"));
    let idle: Vec<TcpStream> =
        (0..200).filter_map(|_| TcpStream::connect(up.address()).ok()).collect();
    std::thread::sleep(Duration::from_secs(8));
    drop(idle);
    let over = up.until("it is over", |up| {
        let path = "/v1/namespaces/default/gangs/due";
        let gang = up.try_get(path).ok()?;
        let phase = gang["status"]["phase"].as_str().unwrap_or_default();
        matches!(phase, "Succeeded" | "Failed").then(|| gang.clone())
    });
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
}

#[test]
fn gang_without_enough_file_handles_is_delayed_not_failed() {
    let place = TestDir::new("handles-keeper");
    let program = wrapped(&place, "ulimit -n 72");
    let up = ControlPlane::start_as(&program, &place.data(), &[]);
    submit(&up, &gang("wide", 60, "true", ""));
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(status(&up, "wide", "phase"), "Admitted", "{}", up.gang("wide"));
    let log = std::fs::read_to_string(place.data().with_extension("log")).expect("a log");
    let tries = log.matches("members cannot be started now").count();
    assert!(tries >= 3 && log.contains("Too many open files"), "{tries}: {log}");
    submit(&up, &gang("narrow", 1, "true", ""));
    assert_eq!(up.until_over("narrow")["status"]["phase"], "Succeeded");
    cancel(&up, "wide");
    assert_eq!(up.until_over("wide")["status"]["reason"], "Cancelled");
}

#[test]
fn cgroups_of_dead_keepers_are_removed_at_start() {
    let test = "cgroups_of_dead_keepers_are_removed_at_start";
    if !super::processes::grants_groups(test) {
        return;
    }
    let place = TestDir::new("sweep");
    let up = ControlPlane::start(&place.data(), &[]);
    submit(&up, &gang("runs", 1, "sleep 9301", ""));
    let pid = up.until("it runs", |_| running("sleep 9301").first().copied());
    let held = super::processes::groups(pid);
    assert!(!held.is_empty());
    let kept = keeper(&up, &place);
    up.kill();
    super::processes::send("-9", kept);
    // Also the groups of unknown runs.
    let stray = held.iter().find_map(|group| stray_of(group)).expect("a group of the run");
    std::fs::create_dir(&stray).expect("a group");
    let up = ControlPlane::start(&place.data(), &[]);
    up.until_over("runs");
    up.until("they are gone", |_| {
        (held.iter().all(|group| !group.exists()) && !stray.exists()).then_some(())
    });
}

/// The group that run 999 of the same owner would have.
fn stray_of(group: &Path) -> Option<PathBuf> {
    let name = group.file_name()?.to_str()?;
    let owner = name.strip_prefix("muster-")?.split('-').next()?;
    let tree = group.ancestors().find(|up| !up.to_string_lossy().contains("/muster-"))?;
    Some(tree.join(format!("muster-{owner}-999")))
}
