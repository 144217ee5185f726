//! Whatever members leave behind is found and killed: children that left their process group, or the whole run of a keeper
//! that was killed.
//!
//! Numbers of processes are used again, after a reboot at the latest. So nobody is killed because of a number that was
//! written down: a process is a run's when its environment names the run's directory, or when it is this process's child.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// The variable that names a run's directory in the environment of all its processes.
pub(crate) const MARK: &str = "MUSTER_DIRECTORY";
/// How long what is killed may take to be gone. What the system holds for longer, nobody can end.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// Kills what is left of a run whose keeper is gone. `false` when it is not gone: nothing is touched then.
pub(crate) fn kill_left_over(directory: &Path) -> bool {
    let Ok(lock) = std::fs::File::options().read(true).open(directory.join(super::LOCK)) else {
        return true; // nobody ever began
    };
    // Held while others are killed, so that no keeper begins meanwhile.
    if lock.try_lock().is_err() {
        return false;
    }
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend(directory.as_os_str().as_encoded_bytes());
    let began = Instant::now();
    loop {
        let left = marked(&mark);
        if left.is_empty() || began.elapsed() > PATIENCE {
            return true;
        }
        left.into_iter().for_each(kill);
        std::thread::sleep(LOOK);
    }
}

/// Kills whoever became this process's child because its own parent is gone, until there is nobody.
pub(super) async fn end_children() {
    let began = Instant::now();
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let left = children(getpid());
        if left.is_empty() || began.elapsed() > PATIENCE {
            return;
        }
        left.into_iter().for_each(kill);
        tokio::time::sleep(LOOK).await;
    }
}

fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Processes that live and whose environment has this entry.
fn marked(mark: &[u8]) -> Vec<Pid> {
    let has = |pid: &Pid| {
        let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
        let environment = std::fs::read(path).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    processes().filter(|pid| *pid != getpid() && has(pid)).collect()
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    processes().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn processes() -> impl Iterator<Item = Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The fourth field; the second is in parentheses, and may have any of its own.
fn parent_of(pid: Pid) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
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
        std::fs::write(ours.join(super::super::JOURNAL), journal).expect("a journal");
        let lock = std::fs::File::create(ours.join(super::super::LOCK)).expect("a lock");
        lock.try_lock().expect("ours");
        assert!(!kill_left_over(&ours), "its keeper lives");
        assert!(mine.try_wait().expect("a child").is_none(), "nobody is touched then");
        drop(lock);
        let killer = std::thread::spawn(move || kill_left_over(&ours));
        assert!(!mine.wait().expect("ended").success());
        assert!(killer.join().expect("killed"));
        assert!(stranger.try_wait().expect("a child").is_none(), "the stranger lives");
        stranger.kill().expect("killed");
        stranger.wait().expect("ended");
        std::fs::remove_dir_all(place).expect("removed");
    }
}
