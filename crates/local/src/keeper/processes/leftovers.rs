//! Whatever members leave behind is found and killed: children that left their process group, or the whole run of a keeper
//! that was killed.
//!
//! A run's control group has all of its processes. Where there is none, and for processes that were moved out of theirs, a
//! process is a run's when its environment names the run's directory, when it is its keeper by its command line, or when
//! the keeper saw it among its descendants: then it is known by its number and the instant it was started. Numbers of
//! processes are used again, so nobody is killed because of a number alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::keeper::processes::cgroup::RunCgroup;

/// The variable that names a run's directory in the environment of all its processes.
pub(crate) const MARK: &str = "MUSTER_DIRECTORY";
/// How long what is killed is looked for at once, before others have a turn.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// What is left of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leftovers {
    /// Its keeper lives: nothing was touched.
    Keeper,
    /// So many processes that were killed and are not gone. What the system holds, no signal ends.
    Some(usize),
    /// Nothing.
    Nothing,
}

/// Kills what is left of a run whose keeper is gone.
pub(crate) fn kill_leftovers(directory: &Path, group: Option<&RunCgroup>) -> Leftovers {
    // Held while others are killed, so that no keeper begins meanwhile.
    let lock = std::fs::File::options().read(true).open(directory.join(crate::keeper::files::LOCK));
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
            let _ = std::fs::remove_file(directory.join(crate::keeper::files::PROCESSES));
            return Leftovers::Nothing;
        }
        if began.elapsed() > PATIENCE {
            return Leftovers::Some(left.len().max(1));
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills a keeper that does not answer, by its command line.
pub(crate) fn kill_keeper(directory: &Path) {
    processes().filter(|pid| is_keeper(*pid, directory)).for_each(kill);
}

/// Kills whatever is in the group, and whatever became this process's child because its own parent is gone; how many are
/// left after a while.
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

/// Writes down which processes descend from this one, so that they are known again should it be killed.
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
    let _ = written
        .and_then(|()| std::fs::rename(part, directory.join(crate::keeper::files::PROCESSES)));
}

/// Processes that are known to be a run's.
fn known(directory: &Path) -> Vec<Pid> {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend(directory.as_os_str().as_encoded_bytes());
    let noted = std::fs::read_to_string(directory.join(crate::keeper::files::PROCESSES))
        .unwrap_or_default();
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

/// Whether a process keeps the run in a directory.
fn is_keeper(pid: Pid, directory: &Path) -> bool {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let line = std::fs::read(path).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"keep") && words.next() == Some(directory.as_os_str().as_encoded_bytes())
}

fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Whether a list of a process's has this entry.
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

/// The parent of a process, and when it was started, in ticks since the system was. The second field of its line is in
/// parentheses, and may have any of its own.
fn about(pid: Pid) -> Option<(i32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // The twenty-second field of all.
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
    fn a_run_without_its_keeper_is_ended_and_a_stranger_with_the_number_of_its_process_is_not() {
        let place = std::env::temp_dir().join(format!("muster-left-{}", std::process::id()));
        let (ours, theirs) = (place.join("1"), place.join("11"));
        std::fs::create_dir_all(&ours).expect("a directory");
        let (mut mine, mut stranger) = (sleeper(&ours), sleeper(&theirs));
        // The journal of a time before names the stranger's process; that is no reason to end it.
        let journal = format!("{{\"ready\":{{\"at\":1,\"groups\":[{}]}}}}\n", stranger.id());
        std::fs::write(ours.join(crate::keeper::files::JOURNAL), journal).expect("a journal");
        let lock = std::fs::File::create(ours.join(crate::keeper::files::LOCK)).expect("a lock");
        lock.try_lock().expect("ours");
        assert_eq!(kill_leftovers(&ours, None), Leftovers::Keeper);
        assert!(mine.try_wait().expect("a child").is_none(), "nobody is touched then");
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
    fn a_process_that_was_seen_is_known_again_by_the_instant_it_was_started() {
        let place = std::env::temp_dir().join(format!("muster-seen-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        std::fs::write(place.join(crate::keeper::files::LOCK), "").expect("a lock");
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
        let noted = place.join(crate::keeper::files::PROCESSES);
        std::fs::write(&noted, format!("{number} {}\n", started + 1)).expect("written");
        assert_eq!(kill_leftovers(&place, None), Leftovers::Nothing);
        assert!(about(pid).is_some(), "another process has the number of one that was seen");
        std::fs::write(&noted, format!("{number} {started}\n")).expect("written");
        assert_eq!(kill_leftovers(&place, None), Leftovers::Nothing);
        assert_eq!(sleeper(), None);
        std::fs::remove_dir_all(place).expect("removed");
    }
}
