//! A run, from the gate to the last exit.

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
use tokio::time::Instant;

use crate::clock::{agree_with, boot_id, wall_at, wall_now};
use crate::scarcity::is_scarcity;

use super::cgroup::{MemberGroup, RunGroup};
use super::change::{Change, Changing};
use super::journal::{Ending, Exit, Journal, Record};
use super::left::{end_children, note_descendants};
use super::members::{Gate, Member, NoStart, signal, spawn};
use super::plan::RunPlan;
use super::print::{Page, keep_all, page_of, passed};
use super::space::Space;
use super::speak::listen;
use super::talk::{Order, ShortPath};

/// Where the first member may listen.
const PORT: &str = "MASTER_PORT";
/// Returned when another keeper has the run already, or had it.
const KEPT: u8 = 75;
/// How long pipes are read after the last member is gone: children that nobody waits for may hold them open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often a keeper says that it is alive, and tries again to write what it could not.
pub(super) const BEAT: Duration = Duration::from_secs(2);

/// Keeps the run in a directory: the whole life of a keeper's process.
pub fn keep(directory: &Path) -> ExitCode {
    // Whoever ends the control plane's session does not end this.
    let _ = rustix::process::setsid();
    // Whatever members leave behind becomes this process's, and is killed with the rest.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    allow_more_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let kept = runtime.and_then(|runtime| runtime.block_on(begin(directory)));
    match kept {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            if is_scarcity(&error) { ExitCode::from(super::LATER) } else { ExitCode::FAILURE }
        }
    }
}

/// Each member takes a few open files here, and the usual limit is for programs with few.
fn allow_more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

async fn begin(directory: &Path) -> std::io::Result<ExitCode> {
    let lock = std::fs::File::create(directory.join(super::LOCK))?;
    // Whoever only looks whether there is a keeper holds it for a moment.
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
    let settled = (0, Vec::new());
    let space = Arc::new(Space::of(&directory));
    let said = Arc::new(Mutex::new(known));
    let mut keeper =
        Keeper { plan, directory, journal, news, said, lock, unwritten, settled, space };
    let (pid, boot) = (std::process::id(), boot_id());
    keeper.write(Record::Begun { at: wall_now(), pid, boot, resizes: true, beats: true })?;
    let (orders, heard) = mpsc::channel(16);
    tokio::spawn(listen(listener, keeper.said.clone(), keeper.news.clone(), orders));
    keeper.run(heard).await
}

struct Keeper {
    plan: RunPlan,
    directory: PathBuf,
    journal: Journal,
    news: broadcast::Sender<Record>,
    /// All that was written, as it is told to whoever connects: members may write to the journal, and not to this.
    said: Arc<Mutex<Vec<Record>>>,
    /// Held while this process lives.
    lock: std::fs::File,
    /// What could not be written yet, and so was not told either.
    unwritten: VecDeque<Record>,
    /// When it was last resized, and whom it has since then.
    settled: (i64, Vec<(u32, Seat)>),
    /// The room there is for what members print.
    space: Arc<Space>,
}

/// What happens to a keeper.
enum Happening {
    Exited(u32, std::io::Result<std::process::ExitStatus>),
    Warned(String),
    Started(u64, u64),
}

/// How members are being stopped.
struct Stop {
    ending: Ending,
    kill_at: Option<Instant>,
}

impl Keeper {
    fn write(&mut self, record: Record) -> std::io::Result<()> {
        self.journal.write(&record)?;
        self.tell(record);
        Ok(())
    }

    /// Says what is written, in an order in which whoever connects meanwhile misses nothing.
    fn tell(&self, record: Record) {
        if let Ok(mut said) = self.said.lock() {
            said.push(record.clone());
        }
        let _ = self.news.send(record);
    }

    /// Writes something down as soon as it can be. Members are not ended because a disk is full.
    fn note(&mut self, record: Record) {
        self.unwritten.push_back(record);
        let _ = self.catch_up();
    }

    fn catch_up(&mut self) -> std::io::Result<()> {
        while let Some(record) = self.unwritten.front() {
            self.journal.write(record)?;
            if let Some(record) = self.unwritten.pop_front() {
                self.tell(record);
            }
        }
        Ok(())
    }

    /// Says something that nobody depends on; not at all where it cannot be written.
    fn warn(&mut self, what: String) {
        if self.unwritten.is_empty() {
            let _ = self.write(Record::Warned { at: wall_now(), what });
        }
    }

    /// Kills whatever members left behind, however long that takes: as long as anything lives, so do its claims on what it
    /// was given.
    async fn clear(&mut self) {
        let group = self.plan.group.clone();
        let mut said = false;
        loop {
            let left = end_children(group.as_ref()).await;
            if left == 0 {
                break;
            }
            if !std::mem::replace(&mut said, true) {
                self.warn(format!(
                    "{left} of its processes cannot be killed, and keep what they hold"
                ));
            }
            self.beat();
        }
        group.iter().for_each(RunGroup::remove);
    }

    /// Nothing could be started, because the system has run out of something. Another keeper may try later.
    async fn give_way(&mut self, why: String) -> ExitCode {
        self.clear().await;
        eprintln!("{why}");
        let _ = self.write(Record::Later { at: wall_now(), why });
        ExitCode::from(super::LATER)
    }

    /// Kills whatever is left, and says how all of it ended, however long that takes to be written.
    async fn end(&mut self, ending: Ending) {
        self.clear().await;
        self.note(Record::Ended { at: wall_now(), ending });
        while self.catch_up().is_err() {
            tokio::time::sleep(BEAT).await;
            self.beat();
        }
    }

    fn beat(&self) {
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
            Err(NoStart { why, later: true }) => return Ok(self.give_way(why).await),
            Err(NoStart { why, later: false }) => {
                self.end(Ending::Failed(why)).await;
                return Ok(ExitCode::SUCCESS);
            }
        };
        let Gate { mut opener, mut members, unlimited } = gate;
        if let Some(what) = unlimited {
            self.warn(what);
        }
        let mut groups: BTreeMap<u32, Pid> =
            members.iter().map(|member| (member.rank, member.group)).collect();
        let all = groups.values().map(|group| group.as_raw_nonzero().get() as u32).collect();
        self.write(Record::Ready { at: wall_now(), groups: all })?;
        // Whoever is gone already, or not wanted any more, keeps everybody from running.
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
        let (tell, happenings) = mpsc::unbounded_channel();
        let mut cages = self.watch(members, &tell, true);
        self.write(Record::Opened { at: wall_now() })?;
        // One write lets all of them through: up to a page of tickets cannot be torn apart.
        opener.write_all(&vec![1u8; groups.len()])?;
        let ending = self.follow(&mut groups, &mut cages, orders, (tell, happenings)).await;
        drop(opener);
        groups.values().for_each(|group| signal(*group, Signal::KILL));
        self.end(ending).await;
        drop(cages);
        Ok(ExitCode::SUCCESS)
    }

    /// Has what members print kept, and their ends told.
    fn watch(
        &self,
        members: Vec<Member>,
        tell: &mpsc::UnboundedSender<Happening>,
        first: bool,
    ) -> BTreeMap<u32, MemberGroup> {
        let mut cages = BTreeMap::new();
        let mut stamps = Vec::new();
        for mut member in members {
            let rank = member.rank;
            cages.extend(member.cage.take().map(|cage| (rank, cage)));
            let warned = tell.clone();
            let warn: Arc<dyn Fn(String) + Send + Sync> =
                Arc::new(move |what| drop(warned.send(Happening::Warned(what))));
            let page = |stderr| {
                let path = page_of(&self.directory, rank, stderr);
                Page::new(path, self.plan.limits, self.space.clone())
            };
            let mut printing = Vec::new();
            if let Some(mut out) = member.out.take() {
                let (page, warn) = (page(false), warn.clone());
                let (stamp, stamped) = tokio::sync::oneshot::channel();
                stamps.push(stamped);
                printing.push(tokio::spawn(async move {
                    if let Some(at) = passed(&mut out).await {
                        let _ = stamp.send(at);
                    }
                    keep_all(out, page, warn).await;
                }));
            }
            if let Some(err) = member.err.take() {
                printing.push(tokio::spawn(keep_all(err, page(true), warn)));
            }
            let tell = tell.clone();
            tokio::spawn(async move {
                let status = member.child.wait().await;
                // Its last words are kept before its end is told.
                let all = async {
                    for one in printing {
                        let _ = one.await;
                    }
                };
                let _ = tokio::time::timeout(LAST_WORDS, all).await;
                let _ = tell.send(Happening::Exited(rank, status));
            });
        }
        // That all have started is said once.
        let Some(tell) = first.then(|| tell.clone()) else { return cages };
        tokio::spawn(async move {
            let (mut first, mut last) = (u64::MAX, 0);
            for stamp in stamps {
                let Ok(at) = stamp.await else { return };
                (first, last) = (first.min(at), last.max(at));
            }
            let _ = tell.send(Happening::Started(first, last));
        });
        cages
    }

    /// Follows members until the last of them is gone.
    async fn follow(
        &mut self,
        groups: &mut BTreeMap<u32, Pid>,
        cages: &mut BTreeMap<u32, MemberGroup>,
        mut orders: mpsc::Receiver<Order>,
        (tell, mut happenings): (
            mpsc::UnboundedSender<Happening>,
            mpsc::UnboundedReceiver<Happening>,
        ),
    ) -> Ending {
        let mut beat = tokio::time::interval(BEAT);
        let limit = self.plan.time_limit_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let mut left: BTreeMap<u32, Pid> = groups.clone();
        let mut stop: Option<Stop> = None;
        let mut changing: Option<Changing> = None;
        while !left.is_empty() {
            if stop.is_some() {
                changing = None;
            }
            if let Some(Changing { change, .. }) =
                changing.take_if(|changing| changing.change.going(&left).is_empty())
            {
                match self.join(&change, cages, &tell) {
                    Ok(Some(came)) => {
                        groups.extend(&came);
                        left.extend(came);
                    }
                    // The disk is full, or the system has run out of something: it is tried again with the next beat.
                    Ok(None) | Err(NoStart { later: true, .. }) => {
                        changing = Some(Changing { change, kill_at: None });
                    }
                    Err(NoStart { why, .. }) => {
                        let ending = Ending::Failed(why);
                        stop = Some(tell_all(&left, Signal::TERM, self.plan.grace_ms, ending));
                    }
                }
            }
            let patience = changing.as_ref().and_then(|changing| changing.kill_at);
            let alarm = match &stop {
                Some(stop) => stop.kill_at,
                None => limit.into_iter().chain(patience).min(),
            };
            tokio::select! {
                biased;
                happening = happenings.recv() => match happening {
                    Some(Happening::Exited(rank, status)) => {
                        let mut exit = exit(rank, status, cages.get(&rank));
                        exit.leaving = changing
                            .as_ref()
                            .is_some_and(|changing| changing.change.going(&left).contains(&rank));
                        left.remove(&rank);
                        let ends =
                            if exit.leaving { None } else { self.ends_gang(&exit, &left) };
                        self.note(Record::Exited(exit));
                        if let (Some(ending), None) = (ends, &stop) {
                            let grace = self.plan.grace_ms;
                            stop = Some(tell_all(&left, Signal::TERM, grace, ending));
                        }
                    }
                    Some(Happening::Warned(what)) => self.warn(what),
                    Some(Happening::Started(first, last)) => {
                        let at = wall_at(Duration::from_micros(last));
                        self.note(Record::Started { at, spread_us: last - first });
                    }
                    None => break,
                },
                order = orders.recv() => match order {
                    Some(Order::Signal(number)) => {
                        if let Some(number) = Signal::from_named_raw(number) {
                            left.values().for_each(|group| signal(*group, number));
                        }
                    }
                    Some(Order::Stop { signal: number, grace_ms, why }) => {
                        let number = Signal::from_named_raw(number).unwrap_or(Signal::TERM);
                        let known = stop.take().map(|stop| stop.ending);
                        if known.is_none() {
                            self.note(Record::Stopping { at: wall_now(), why });
                        }
                        let ending = known.unwrap_or(Ending::Stopped);
                        stop = Some(tell_all(&left, number, grace_ms, ending));
                    }
                    Some(Order::Resize(change)) => {
                        // What was begun is gone on with, whoever asks for it again.
                        if stop.is_none() && changing.is_none() && self.settled.1 != change.members {
                            changing = Some(self.change(*change, &left));
                        }
                    }
                    None => std::future::pending().await,
                },
                () = until(alarm) => match &mut changing {
                    Some(changing) if changing.kill_at.is_some_and(|at| at <= Instant::now()) => {
                        changing.kill_at = None;
                        for rank in changing.change.going(&left) {
                            signal(left[&rank], Signal::KILL);
                        }
                    }
                    _ => stop = Some(match stop.take() {
                        Some(stop) => {
                            left.values().for_each(|group| signal(*group, Signal::KILL));
                            Stop { kill_at: None, ..stop }
                        }
                        None => {
                            let why = "its time limit is over".to_owned();
                            self.note(Record::Stopping { at: wall_now(), why });
                            tell_all(&left, Signal::TERM, self.plan.grace_ms, Ending::TimedOut)
                        }
                    }),
                },
                _ = beat.tick() => {
                    self.beat();
                    let _ = self.catch_up();
                }
            }
        }
        stop.map_or(Ending::Succeeded, |stop| stop.ending)
    }

    /// Tells members that they will be others: those who stay, by their signal, when the files say how many; those who go,
    /// to stop.
    fn change(&self, change: Change, left: &BTreeMap<u32, Pid>) -> Changing {
        for (name, text) in [(super::WORLD, &change.world), (super::HOSTFILE, &change.hostfile)] {
            let (path, part) = (self.directory.join(name), self.directory.join("told.part"));
            let _ = std::fs::write(&part, text).and_then(|()| std::fs::rename(part, path));
        }
        let going = change.going(left);
        for (rank, group) in left {
            let number = if going.contains(rank) { change.stop_signal } else { change.signal };
            signal(*group, Signal::from_named_raw(number).unwrap_or(Signal::TERM));
        }
        let kill_at = Instant::now() + Duration::from_millis(change.grace_ms);
        Changing { change, kill_at: Some(kill_at) }
    }

    /// Whoever was to go is gone, with all it has started: writes that down, and lets those who come run, all together.
    /// `None` when that cannot be now; an error when they cannot be started.
    fn join(
        &mut self,
        change: &Change,
        cages: &mut BTreeMap<u32, MemberGroup>,
        tell: &mpsc::UnboundedSender<Happening>,
    ) -> Result<Option<BTreeMap<u32, Pid>>, NoStart> {
        let Change { members, next, join, .. } = change.clone();
        let mut coming = RunPlan { members: join, ..self.plan.clone() };
        // The first of all listens, or listened, where the others look for it.
        let port = self.plan.members.first().and_then(|first| first.env.get(PORT)).cloned();
        for member in &mut coming.members {
            member.env.extend(port.clone().map(|port| (PORT.to_owned(), port)));
        }
        // What was written and could not be done is not written again.
        if self.settled.1 != members {
            let stays = |rank: u32| members.iter().any(|(number, _)| *number == rank);
            if !self.have_left(|rank| !stays(rank)) {
                return Ok(None);
            }
            let at = wall_now().max(self.settled.0 + 1);
            let resized = Record::Resized { at, members: members.clone(), next };
            if self.catch_up().is_err() || self.write(resized).is_err() {
                return Ok(None);
            }
            self.settled = (at, members);
            self.plan.members.extend(coming.members.clone());
            if let Err(error) = self.plan.replace(&self.directory) {
                self.warn(format!("what new members print cannot be shown: {error}"));
            }
        }
        if coming.members.is_empty() {
            return Ok(Some(BTreeMap::new()));
        }
        let pids = pids_max(self.plan.members.len() as u64);
        self.plan.group.iter().for_each(|group| drop(group.open(pids)));
        let Gate { mut opener, members, unlimited } = spawn(&coming)?;
        if let Some(what) = unlimited {
            self.warn(what);
        }
        let groups: BTreeMap<u32, Pid> =
            members.iter().map(|member| (member.rank, member.group)).collect();
        cages.extend(self.watch(members, tell, false));
        let opened = opener.write_all(&vec![1u8; groups.len()]);
        opened.map_err(|error| NoStart { why: format!("no gate: {error}"), later: false })?;
        Ok(Some(groups))
    }

    /// Kills what members that have gone left behind, and says whether nothing of it is left.
    fn have_left(&self, gone: impl Fn(u32) -> bool) -> bool {
        const LOOKS: u32 = 40;
        let Some(group) = &self.plan.group else { return true };
        let ranks = self.plan.members.iter().map(|member| member.rank).filter(|rank| gone(*rank));
        let ranks: Vec<u32> = ranks.collect();
        (0..LOOKS).any(|look| {
            // What was killed a moment ago is gone in a moment.
            std::thread::sleep(Duration::from_millis(if look == 0 { 0 } else { 5 }));
            ranks.iter().all(|rank| group.end_member(*rank))
        })
    }

    /// How the gang ends with this exit, if it does before all are gone: a member that fails fails all of them.
    fn ends_gang(&self, exit: &Exit, left: &BTreeMap<u32, Pid>) -> Option<Ending> {
        let member = self.plan.members.iter().find(|member| member.rank == exit.rank)?;
        if !exit.is_good() {
            let (rank, role, node) = (exit.rank, &member.role, &member.node);
            let how = exit.in_words();
            return Some(Ending::Failed(format!("member {rank} ({role} on {node}) {how}")));
        }
        let leads = self.plan.ends_with.as_ref().filter(|role| **role == member.role)?;
        let others = self.plan.members.iter().filter(|one| one.role == *leads);
        let done = others.into_iter().all(|one| !left.contains_key(&one.rank));
        done.then_some(Ending::Succeeded)
    }
}

/// Says of a member that is gone although it was never let through, how it went.
fn gone(member: &mut Member) -> Option<String> {
    let status = member.child.try_wait().ok()??;
    Some(format!("member {} was gone before all were there ({status})", member.rank))
}

/// Tells members to stop, and when they are killed if they do not.
fn tell_all(left: &BTreeMap<u32, Pid>, number: Signal, grace_ms: u64, ending: Ending) -> Stop {
    left.values().for_each(|group| signal(*group, number));
    Stop { ending, kill_at: Some(Instant::now() + Duration::from_millis(grace_ms)) }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn exit(
    rank: u32,
    status: std::io::Result<std::process::ExitStatus>,
    cage: Option<&MemberGroup>,
) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let status = status.ok();
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    let bad = code != Some(0);
    let out_of_memory = bad && cage.is_some_and(MemberGroup::ran_out_of_memory);
    Exit { at: wall_now(), rank, code, signal, out_of_memory, leaving: false }
}

/// How many processes and threads a run of so many members may have: enough for any that mean well, and never so many that
/// the system has none left for others.
fn pids_max(members: u64) -> u64 {
    const EACH: u64 = 1_024;
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let paths = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let all = paths.iter().filter_map(|path| number(path)).min().unwrap_or(32_768);
    (members.max(1) * EACH).min(all / 2)
}

#[cfg(test)]
mod tests {
    use super::super::journal::read;
    use super::super::plan::Limits;
    use super::*;

    #[test]
    fn on_a_full_disk_nothing_is_told_before_it_is_written_and_nothing_is_lost() {
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
        let lock = std::fs::File::create(directory.join(super::super::LOCK)).expect("a lock");
        let full = directory.join("full");
        std::fs::create_dir_all(&full).expect("a directory");
        std::os::unix::fs::symlink("/dev/full", full.join(super::super::JOURNAL)).expect("full");
        let (journal, unwritten) = (Journal::at_end_of(&full), VecDeque::new());
        let settled = (0, Vec::new());
        let (said, space) = (Arc::default(), Arc::new(Space::of(&directory)));
        let of = directory.clone();
        let mut keeper =
            Keeper { plan, directory: of, journal, news, said, lock, unwritten, settled, space };
        keeper.warn("nobody depends on this".to_owned());
        keeper.note(Record::Stopping { at: 1, why: "told to".to_owned() });
        assert!(heard.try_recv().is_err() && keeper.unwritten.len() == 1);
        keeper.journal = Journal::at_end_of(&directory);
        keeper.catch_up().expect("there is room again");
        assert!(matches!(heard.try_recv(), Ok(Record::Stopping { at: 1, .. })));
        assert_eq!(read(&directory).expect("a journal").len(), 1);
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
