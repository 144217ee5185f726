//! Finds and kills processes that members leave behind: children that left their process group, or the whole run of a
//! killed keeper.
//!
//! A run's control group has all of its processes. Without one, and for processes that were moved out of it, a process
//! belongs to a run if its environment names the run's directory, if its command line says that it is the run's keeper,
//! or if the keeper saw it among its descendants: then it is identified by its process id and start time. Process ids
//! are reused, so no process is killed because of its id alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::keeper::files;
use crate::keeper::processes::cgroup::RunCgroup;

/// The environment variable with the run's directory, in all its processes.
pub(crate) const MARK: &str = "MUSTER_DIRECTORY";
/// How long a kill is retried in one call.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// What is left of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leftovers {
    /// Its keeper lives: nothing was killed.
    Keeper,
    /// The number of processes that were killed and are not gone. No signal ends a process that the kernel holds.
    Some(usize),
    /// Nothing.
    Nothing,
}

/// Kills the processes of a run whose keeper is gone.
pub(crate) fn kill_leftovers(directory: &Path, group: Option<&RunCgroup>) -> Leftovers {
    // Held during the kill, so that no keeper begins meanwhile.
    let lock = std::fs::File::options().read(true).open(directory.join(files::LOCK));
    if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
        return Leftovers::Keeper;
    }
    let began = Instant::now();
    loop {
        group.iter().for_each(|group| group.kill());
        let left = known(directory);
        left.iter().copied().for_each(kill);
        let in_group = group.is_some_and(|group| !group.is_empty());
        if left.is_empty() && !in_group {
            group.iter().for_each(|group| group.remove());
            let _ = std::fs::remove_file(directory.join(files::PROCESSES));
            return Leftovers::Nothing;
        }
        if began.elapsed() > PATIENCE {
            return Leftovers::Some(left.len().max(1));
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills a keeper that does not answer, found by its command line.
pub(crate) fn kill_keeper(directory: &Path) {
    processes().filter(|pid| is_keeper(*pid, directory)).for_each(kill);
}

/// Kills all processes in the group, and orphans that became children of this process. Returns the number that is left
/// after a while.
pub(crate) async fn kill_descendants(group: Option<&RunCgroup>) -> usize {
    let began = Instant::now();
    loop {
        group.iter().for_each(|group| group.kill());
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let left = children(getpid());
        let in_group = group.is_some_and(|group| !group.is_empty());
        if left.is_empty() && !in_group {
            return 0;
        }
        if began.elapsed() > PATIENCE {
            return left.len().max(1);
        }
        left.into_iter().for_each(kill);
        tokio::time::sleep(LOOK).await;
    }
}

/// Records the descendants of this process, so that they can be identified if it is killed.
pub(crate) fn note_descendants(directory: &Path) {
    let mut by_parent: BTreeMap<i32, Vec<(Pid, u64)>> = BTreeMap::new();
    for pid in processes() {
        if let Some((parent, started)) = about(pid) {
            by_parent.entry(parent).or_default().push((pid, started));
        }
    }
    let mut text = String::new();
    let mut next = vec![getpid()];
    while let Some(parent) = next.pop() {
        for (pid, started) in by_parent.remove(&parent.as_raw_nonzero().get()).unwrap_or_default() {
            text += &format!("{} {started}\n", pid.as_raw_nonzero());
            next.push(pid);
        }
    }
    let part = directory.join("processes.part");
    let written = std::fs::write(&part, text);
    let _ = written.and_then(|()| std::fs::rename(part, directory.join(files::PROCESSES)));
}

/// Processes that belong to a run.
fn known(directory: &Path) -> Vec<Pid> {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend(directory.as_os_str().as_encoded_bytes());
    let noted = std::fs::read_to_string(directory.join(files::PROCESSES)).unwrap_or_default();
    let noted: BTreeSet<(i32, u64)> = noted
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(pid, started)| Some((pid.parse().ok()?, started.parse().ok()?)))
        .collect();
    let is_its = |pid: &Pid| {
        let seen = || {
            let number = pid.as_raw_nonzero().get();
            about(*pid).is_some_and(|(_, started)| noted.contains(&(number, started)))
        };
        has(*pid, "environ", &mark) || is_keeper(*pid, directory) || seen()
    };
    processes().filter(|pid| *pid != getpid() && is_its(pid)).collect()
}

/// Whether a process is the keeper of the run in a directory.
fn is_keeper(pid: Pid, directory: &Path) -> bool {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let line = std::fs::read(path).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"keep") && words.next() == Some(directory.as_os_str().as_encoded_bytes())
}

fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Whether a NUL-separated file of a process has this entry.
fn has(pid: Pid, file: &str, wanted: &[u8]) -> bool {
    let all = std::fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
    all.split(|byte| *byte == 0).any(|entry| entry == wanted)
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    processes().filter(|pid| about(*pid).is_some_and(|(of, _)| of == parent)).collect()
}

fn processes() -> impl Iterator<Item = Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The parent of a process, and its start time in ticks since boot. The second field is in parentheses, and may itself
/// contain parentheses.
fn about(pid: Pid) -> Option<(i32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // Field 22 in total.
    Some((parent, fields.nth(17)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleeper(mark: &Path) -> std::process::Child {
        let mut command = Command::new("sleep");
        command.arg("300").env(MARK, mark).stdin(Stdio::null());
        command.spawn().expect("sleep")
    }

    #[test]
    fn killing_a_run_without_keeper_spares_a_process_with_a_reused_pid() {
        let place = std::env::temp_dir().join(format!("muster-left-{}", std::process::id()));
        let (ours, theirs) = (place.join("1"), place.join("11"));
        std::fs::create_dir_all(&ours).expect("a directory");
        let (mut mine, mut stranger) = (sleeper(&ours), sleeper(&theirs));
        // An old journal names the stranger's process id; that is no reason to kill it.
        let journal = format!("{{\"ready\":{{\"at\":1,\"groups\":[{}]}}}}\n", stranger.id());
        std::fs::write(ours.join(files::JOURNAL), journal).expect("a journal");
        let lock = std::fs::File::create(ours.join(files::LOCK)).expect("a lock");
        lock.try_lock().expect("ours");
        assert_eq!(kill_leftovers(&ours, None), Leftovers::Keeper);
        assert!(mine.try_wait().expect("a child").is_none(), "nothing is killed then");
        drop(lock);
        let killer = std::thread::spawn(move || kill_leftovers(&ours, None));
        assert!(!mine.wait().expect("ended").success());
        assert_eq!(killer.join().expect("killed"), Leftovers::Nothing);
        assert!(stranger.try_wait().expect("a child").is_none(), "the stranger lives");
        stranger.kill().expect("killed");
        stranger.wait().expect("ended");
        std::fs::remove_dir_all(place).expect("removed");
    }

    #[test]
    fn recorded_process_is_identified_by_pid_and_start_time() {
        let place = std::env::temp_dir().join(format!("muster-seen-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        std::fs::write(place.join(files::LOCK), "").expect("a lock");
        let mut escaped = Command::new("env");
        let mut escaped =
            escaped.args(["-i", "/usr/bin/setsid", "-f", "sleep", "7474"]).spawn().expect("env");
        escaped.wait().expect("it has forked");
        let sleeper = || {
            let is_it = |pid: &Pid| has(*pid, "cmdline", b"7474") && has(*pid, "cmdline", b"sleep");
            processes().find(is_it)
        };
        let mut found = None;
        while found.is_none() {
            found = sleeper();
        }
        let pid = found.expect("there");
        let (_, started) = about(pid).expect("it lives");
        let number = pid.as_raw_nonzero();
        let noted = place.join(files::PROCESSES);
        std::fs::write(&noted, format!("{number} {}\n", started + 1)).expect("written");
        assert_eq!(kill_leftovers(&place, None), Leftovers::Nothing);
        assert!(about(pid).is_some(), "another process has the number of one that was seen");
        std::fs::write(&noted, format!("{number} {started}\n")).expect("written");
        assert_eq!(kill_leftovers(&place, None), Leftovers::Nothing);
        assert_eq!(sleeper(), None);
        std::fs::remove_dir_all(place).expect("removed");
    }
}
