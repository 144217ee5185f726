//! The keeper's process: from its lock and journal through the gate to the end of the run.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_core::gang::Seat;
use rustix::process::{Pid, Signal};
use tokio::net::UnixListener;
use tokio::sync::{broadcast, mpsc};

use crate::keeper::files;
use crate::keeper::journal::{Ending, Journal, Record};
use crate::keeper::output::disk_room::RoomCheck;
use crate::keeper::processes::cgroup::RunCgroup;
use crate::keeper::processes::leftovers::{kill_descendants, note_descendants};
use crate::keeper::processes::spawn::{GatedMembers, Member, SpawnError, signal, spawn};
use crate::keeper::run_plan::RunPlan;
use crate::keeper::socket::client::{Order, ShortPath};
use crate::keeper::socket::server::listen;
use crate::system::clock::{agree_with, boot_id, wall_now};
use crate::system::resource_exhaustion::is_resource_exhaustion;

/// Exit code when another keeper has the run, or had it.
const KEPT: u8 = 75;
/// Heartbeat interval, and the interval between attempts to write pending records.
pub(crate) const BEAT: Duration = Duration::from_secs(2);

/// Runs the keeper of the run in a directory: the whole life of the process.
pub fn keep(directory: &Path) -> ExitCode {
    // The end of the control plane's session must not end the keeper.
    let _ = rustix::process::setsid();
    // Orphans of members become children of this process, and are killed with the rest.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    allow_more_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let kept = runtime.and_then(|runtime| runtime.block_on(begin(directory)));
    match kept {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            if is_resource_exhaustion(&error) {
                ExitCode::from(files::LATER)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Raises the limit on open files: each member needs a few.
fn allow_more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

async fn begin(directory: &Path) -> std::io::Result<ExitCode> {
    let lock = std::fs::File::create(directory.join(files::LOCK))?;
    // A process that only checks for a keeper holds the lock for a moment.
    let mut tries = 0;
    while lock.try_lock().is_err() {
        tries += 1;
        if tries == 20 {
            return Ok(ExitCode::from(KEPT));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let plan = RunPlan::read(directory)?;
    plan.clock.iter().for_each(agree_with);
    let (journal, known) = Journal::open(directory)?;
    if known.iter().any(|record| matches!(record, Record::Opened { .. } | Record::Ended { .. })) {
        // Its members have run, or are done. Nothing is run twice.
        return Ok(ExitCode::from(KEPT));
    }
    let short = ShortPath::of(directory)?;
    let _ = std::fs::remove_file(&short.path);
    let listener = UnixListener::bind(&short.path)?;
    let (news, _) = broadcast::channel(4_096);
    let directory = directory.to_owned();
    let unwritten = VecDeque::new();
    let resized_to = (0, Vec::new());
    let room_check = Arc::new(RoomCheck::of(&directory));
    let said = Arc::new(Mutex::new(known));
    let mut keeper =
        Keeper { plan, directory, journal, news, said, lock, unwritten, resized_to, room_check };
    let (pid, boot) = (std::process::id(), boot_id());
    keeper.write(Record::Begun { at: wall_now(), pid, boot, resizes: true, beats: true })?;
    let (orders, heard) = mpsc::channel(16);
    tokio::spawn(listen(listener, keeper.said.clone(), keeper.news.clone(), orders));
    keeper.run(heard).await
}

pub(super) struct Keeper {
    pub(super) plan: RunPlan,
    pub(super) directory: PathBuf,
    pub(super) journal: Journal,
    pub(super) news: broadcast::Sender<Record>,
    /// All written records, for every new connection: members may write to the journal, but not to this.
    pub(super) said: Arc<Mutex<Vec<Record>>>,
    /// Held while this process lives.
    pub(super) lock: std::fs::File,
    /// Records that could not be written yet, and so were not sent either.
    pub(super) unwritten: VecDeque<Record>,
    /// When it was last resized, and its members since then.
    pub(super) resized_to: (i64, Vec<(u32, Seat)>),
    /// The disk space for output.
    pub(super) room_check: Arc<RoomCheck>,
}

impl Keeper {
    pub(super) fn write(&mut self, record: Record) -> std::io::Result<()> {
        self.journal.write(&record)?;
        self.announce(record);
        Ok(())
    }

    /// Sends a written record, in an order in which a new connection misses nothing.
    pub(super) fn announce(&self, record: Record) {
        if let Ok(mut said) = self.said.lock() {
            said.push(record.clone());
        }
        let _ = self.news.send(record);
    }

    /// Writes a record as soon as possible. A full disk does not end members.
    pub(super) fn note(&mut self, record: Record) {
        self.unwritten.push_back(record);
        let _ = self.catch_up();
    }

    pub(super) fn catch_up(&mut self) -> std::io::Result<()> {
        while let Some(record) = self.unwritten.front() {
            self.journal.write(record)?;
            if let Some(record) = self.unwritten.pop_front() {
                self.announce(record);
            }
        }
        Ok(())
    }

    /// Writes a warning; dropped if it cannot be written.
    pub(super) fn warn(&mut self, what: String) {
        if self.unwritten.is_empty() {
            let _ = self.write(Record::Warned { at: wall_now(), what });
        }
    }

    /// Kills all processes that members left behind, however long that takes: a live process still holds its resources.
    async fn kill_remaining(&mut self) {
        let group = self.plan.group.clone();
        let mut said = false;
        loop {
            let left = kill_descendants(group.as_ref()).await;
            if left == 0 {
                break;
            }
            if !std::mem::replace(&mut said, true) {
                self.warn(format!(
                    "{left} of its processes cannot be killed, and keep what they hold"
                ));
            }
            self.heartbeat();
        }
        group.iter().for_each(RunCgroup::remove);
    }

    /// Nothing could be started because the system is out of a resource. Another keeper may try later.
    async fn fail_temporarily(&mut self, why: String) -> ExitCode {
        self.kill_remaining().await;
        eprintln!("{why}");
        let _ = self.write(Record::Later { at: wall_now(), why });
        ExitCode::from(files::LATER)
    }

    /// Kills all leftovers, and records how the run ended, however long the write takes.
    async fn end(&mut self, ending: Ending) {
        self.kill_remaining().await;
        self.note(Record::Ended { at: wall_now(), ending });
        while self.catch_up().is_err() {
            tokio::time::sleep(BEAT).await;
            self.heartbeat();
        }
    }

    pub(super) fn heartbeat(&self) {
        let since = Duration::from_millis(u64::try_from(wall_now()).unwrap_or_default());
        let _ = self.lock.set_modified(std::time::UNIX_EPOCH + since);
        if self.plan.group.is_none() {
            note_descendants(&self.directory);
        }
    }

    async fn run(&mut self, mut orders: mpsc::Receiver<Order>) -> std::io::Result<ExitCode> {
        let pids = pids_max(self.plan.members.len() as u64);
        let lacking = self.plan.group.as_ref().map(|group| group.open(pids)).unwrap_or_default();
        for what in lacking {
            self.warn(what);
        }
        let gate = match spawn(&self.plan) {
            Ok(gate) => gate,
            Err(SpawnError { why, later: true }) => return Ok(self.fail_temporarily(why).await),
            Err(SpawnError { why, later: false }) => {
                self.end(Ending::Failed(why)).await;
                return Ok(ExitCode::SUCCESS);
            }
        };
        let GatedMembers { mut opener, mut members, unlimited } = gate;
        if let Some(what) = unlimited {
            self.warn(what);
        }
        let mut groups: BTreeMap<u32, Pid> =
            members.iter().map(|member| (member.rank, member.group)).collect();
        let all = groups.values().map(|group| group.as_raw_nonzero().get() as u32).collect();
        self.write(Record::Ready { at: wall_now(), groups: all })?;
        // A member that has exited already, or a stop order, keeps the gate closed.
        let unopened = match members.iter_mut().find_map(gone) {
            Some(why) => Some(Ending::Failed(why)),
            None => orders.try_recv().is_ok_and(|order| order.stops()).then_some(Ending::Stopped),
        };
        if let Some(ending) = unopened {
            drop(opener);
            groups.values().for_each(|group| signal(*group, Signal::KILL));
            for mut member in members {
                let _ = member.child.wait().await;
            }
            self.end(ending).await;
            return Ok(ExitCode::SUCCESS);
        }
        let (tell, events) = mpsc::unbounded_channel();
        let mut cgroups = self.watch(members, &tell, true);
        self.write(Record::Opened { at: wall_now() })?;
        // One write opens the gate for all: a write of up to a page is atomic.
        opener.write_all(&vec![1u8; groups.len()])?;
        let ending = self.follow(&mut groups, &mut cgroups, orders, (tell, events)).await;
        drop(opener);
        groups.values().for_each(|group| signal(*group, Signal::KILL));
        self.end(ending).await;
        drop(cgroups);
        Ok(ExitCode::SUCCESS)
    }
}

/// Describes a member that exited before the gate was opened.
fn gone(member: &mut Member) -> Option<String> {
    let status = member.child.try_wait().ok()??;
    Some(format!("member {} was gone before all were there ({status})", member.rank))
}

/// The limit on processes and threads of a run: enough for any reasonable program, and never so many that the system
/// has none left.
pub(super) fn pids_max(members: u64) -> u64 {
    const EACH: u64 = 1_024;
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let paths = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let all = paths.iter().filter_map(|path| number(path)).min().unwrap_or(32_768);
    (members.max(1) * EACH).min(all / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::journal::read;
    use crate::keeper::run_plan::Limits;

    #[test]
    fn full_disk_delays_records_and_loses_none() {
        let directory = std::env::temp_dir().join(format!("muster-keep-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let plan = RunPlan {
            gang: "team/a".into(),
            run: 1,
            uid: 1,
            members: Vec::new(),
            ends_with: None,
            time_limit_ms: None,
            grace_ms: 0,
            limits: Limits::default(),
            run_as: None,
            umask: None,
            group: None,
            clock: None,
        };
        let (news, mut heard) = broadcast::channel(16);
        let lock = std::fs::File::create(directory.join(files::LOCK)).expect("a lock");
        let full = directory.join("full");
        std::fs::create_dir_all(&full).expect("a directory");
        std::os::unix::fs::symlink("/dev/full", full.join(files::JOURNAL)).expect("full");
        let (journal, unwritten) = (Journal::at_end_of(&full), VecDeque::new());
        let resized_to = (0, Vec::new());
        let (said, room_check) = (Arc::default(), Arc::new(RoomCheck::of(&directory)));
        let of = directory.clone();
        let mut keeper = Keeper {
            plan,
            directory: of,
            journal,
            news,
            said,
            lock,
            unwritten,
            resized_to,
            room_check,
        };
        keeper.warn("optional".to_owned());
        keeper.note(Record::Stopping { at: 1, why: "told to".to_owned() });
        assert!(heard.try_recv().is_err() && keeper.unwritten.len() == 1);
        keeper.journal = Journal::at_end_of(&directory);
        keeper.catch_up().expect("there is room again");
        assert!(matches!(heard.try_recv(), Ok(Record::Stopping { at: 1, .. })));
        assert_eq!(read(&directory).expect("a journal").len(), 1);
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
