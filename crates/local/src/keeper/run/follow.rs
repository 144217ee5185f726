//! Follows the members of a run until the last one has exited.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::keeper::journal::{Ending, Exit, Record};
use crate::keeper::output::log_file::{LogFile, copy_to_log, log_path, read_gate_time};
use crate::keeper::processes::cgroup::MemberCgroup;
use crate::keeper::processes::spawn::{Member, SpawnError, signal};
use crate::keeper::run::keeper::{BEAT, Keeper};
use crate::keeper::run::resize::PendingResize;
use crate::keeper::socket::client::Order;
use crate::system::clock::{wall_at, wall_now};

/// How long pipes are read after a member has exited: orphaned children may keep them open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An event in a run.
pub(super) enum KeeperEvent {
    Exited(u32, std::io::Result<std::process::ExitStatus>),
    Warned(String),
    Started(u64, u64),
}

/// A stop in progress.
struct Stop {
    ending: Ending,
    kill_at: Option<Instant>,
}

impl Keeper {
    /// Copies the output of members to their logs, and reports their exits.
    pub(super) fn watch(
        &self,
        members: Vec<Member>,
        tell: &mpsc::UnboundedSender<KeeperEvent>,
        first: bool,
    ) -> BTreeMap<u32, MemberCgroup> {
        let mut cgroups = BTreeMap::new();
        let mut stamps = Vec::new();
        for mut member in members {
            let rank = member.rank;
            cgroups.extend(member.cgroup.take().map(|cgroup| (rank, cgroup)));
            let warned = tell.clone();
            let warn: Arc<dyn Fn(String) + Send + Sync> =
                Arc::new(move |what| drop(warned.send(KeeperEvent::Warned(what))));
            let page = |stderr| {
                let path = log_path(&self.directory, rank, stderr);
                LogFile::new(path, self.plan.limits, self.room_check.clone())
            };
            let mut printing = Vec::new();
            if let Some(mut out) = member.out.take() {
                let (page, warn) = (page(false), warn.clone());
                let (stamp, stamped) = tokio::sync::oneshot::channel();
                stamps.push(stamped);
                printing.push(tokio::spawn(async move {
                    if let Some(at) = read_gate_time(&mut out).await {
                        let _ = stamp.send(at);
                    }
                    copy_to_log(out, page, warn).await;
                }));
            }
            if let Some(err) = member.err.take() {
                printing.push(tokio::spawn(copy_to_log(err, page(true), warn)));
            }
            let tell = tell.clone();
            tokio::spawn(async move {
                let status = member.child.wait().await;
                // The last output is written before the exit is reported.
                let all = async {
                    for one in printing {
                        let _ = one.await;
                    }
                };
                let _ = tokio::time::timeout(LAST_WORDS, all).await;
                let _ = tell.send(KeeperEvent::Exited(rank, status));
            });
        }
        // The start of all members is reported once.
        let Some(tell) = first.then(|| tell.clone()) else { return cgroups };
        tokio::spawn(async move {
            let (mut first, mut last) = (u64::MAX, 0);
            for stamp in stamps {
                let Ok(at) = stamp.await else { return };
                (first, last) = (first.min(at), last.max(at));
            }
            let _ = tell.send(KeeperEvent::Started(first, last));
        });
        cgroups
    }

    /// Follows members until the last one has exited.
    pub(super) async fn follow(
        &mut self,
        groups: &mut BTreeMap<u32, Pid>,
        cgroups: &mut BTreeMap<u32, MemberCgroup>,
        mut orders: mpsc::Receiver<Order>,
        (tell, mut events): (
            mpsc::UnboundedSender<KeeperEvent>,
            mpsc::UnboundedReceiver<KeeperEvent>,
        ),
    ) -> Ending {
        let mut beat = tokio::time::interval(BEAT);
        let limit = self.plan.time_limit_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let mut left: BTreeMap<u32, Pid> = groups.clone();
        let mut stop: Option<Stop> = None;
        let mut resizing: Option<PendingResize> = None;
        while !left.is_empty() {
            if stop.is_some() {
                resizing = None;
            }
            if let Some(PendingResize { change, .. }) =
                resizing.take_if(|resizing| resizing.change.going(&left).is_empty())
            {
                match self.start_joiners(&change, cgroups, &tell) {
                    Ok(Some(came)) => {
                        groups.extend(&came);
                        left.extend(came);
                    }
                    // The disk is full, or the system is out of a resource: retried with the next heartbeat.
                    Ok(None) | Err(SpawnError { later: true, .. }) => {
                        resizing = Some(PendingResize { change, kill_at: None });
                    }
                    Err(SpawnError { why, .. }) => {
                        let ending = Ending::Failed(why);
                        stop =
                            Some(signal_members(&left, Signal::TERM, self.plan.grace_ms, ending));
                    }
                }
            }
            let patience = resizing.as_ref().and_then(|resizing| resizing.kill_at);
            let alarm = match &stop {
                Some(stop) => stop.kill_at,
                None => limit.into_iter().chain(patience).min(),
            };
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(KeeperEvent::Exited(rank, status)) => {
                        let mut exit = exit(rank, status, cgroups.get(&rank));
                        exit.leaving = resizing
                            .as_ref()
                            .is_some_and(|resizing| resizing.change.going(&left).contains(&rank));
                        left.remove(&rank);
                        let ends =
                            if exit.leaving { None } else { self.ends_gang(&exit, &left) };
                        self.note(Record::Exited(exit));
                        if let (Some(ending), None) = (ends, &stop) {
                            let grace = self.plan.grace_ms;
                            stop = Some(signal_members(&left, Signal::TERM, grace, ending));
                        }
                    }
                    Some(KeeperEvent::Warned(what)) => self.warn(what),
                    Some(KeeperEvent::Started(first, last)) => {
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
                        stop = Some(signal_members(&left, number, grace_ms, ending));
                    }
                    Some(Order::Resize(change)) => {
                        // A resize in progress continues, also when it is ordered again.
                        if stop.is_none() && resizing.is_none() && self.resized_to.1 != change.members {
                            resizing = Some(self.begin_resize(*change, &left));
                        }
                    }
                    None => std::future::pending().await,
                },
                () = until(alarm) => match &mut resizing {
                    Some(resizing) if resizing.kill_at.is_some_and(|at| at <= Instant::now()) => {
                        resizing.kill_at = None;
                        for rank in resizing.change.going(&left) {
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
                            signal_members(&left, Signal::TERM, self.plan.grace_ms, Ending::TimedOut)
                        }
                    }),
                },
                _ = beat.tick() => {
                    self.heartbeat();
                    let _ = self.catch_up();
                }
            }
        }
        stop.map_or(Ending::Succeeded, |stop| stop.ending)
    }

    /// How the gang ends with this exit, if it ends before all members have exited: one failed member fails the gang.
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

/// Signals members to stop, and sets when they are killed.
fn signal_members(
    left: &BTreeMap<u32, Pid>,
    number: Signal,
    grace_ms: u64,
    ending: Ending,
) -> Stop {
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
    cgroup: Option<&MemberCgroup>,
) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let status = status.ok();
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    let bad = code != Some(0);
    let out_of_memory = bad && cgroup.is_some_and(MemberCgroup::ran_out_of_memory);
    Exit { at: wall_now(), rank, code, signal, out_of_memory, leaving: false }
}
