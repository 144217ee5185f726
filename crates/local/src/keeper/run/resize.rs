//! Other members for a run that goes on: whoever stays is told, whoever goes has its grace, whoever comes waits at a gate of
//! its own until those who go are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use muster_core::gang::Seat;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::keeper::files::{HOSTFILE, WORLD};
use crate::keeper::journal::Record;
use crate::keeper::processes::cgroup::MemberCgroup;
use crate::keeper::processes::spawn::{GatedMembers, SpawnError, signal, spawn};
use crate::keeper::run::follow::KeeperEvent;
use crate::keeper::run::keeper::{Keeper, pids_max};
use crate::keeper::run_plan::{MemberPlan, RunPlan};
use crate::system::clock::wall_now;

/// Where the first member may listen.
const PORT: &str = "MASTER_PORT";

/// What becomes of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ResizeOrder {
    /// Everybody it is to have, by number, and where each sits. A number is given once in a run.
    pub members: Vec<(u32, Seat)>,
    /// The number that comes next.
    pub next: u32,
    /// Those among them that are to be started.
    pub join: Vec<MemberPlan>,
    /// The signal for those who stay.
    pub signal: i32,
    /// The signal for those who go.
    pub stop_signal: i32,
    /// How long those have, in milliseconds.
    pub grace_ms: u64,
    /// What `MUSTER_WORLD` says from now on.
    pub world: String,
    /// What `MUSTER_HOSTFILE` says.
    pub hostfile: String,
}

/// A change while somebody has yet to go.
#[derive(Debug)]
pub(crate) struct PendingResize {
    pub(crate) change: ResizeOrder,
    pub(crate) kill_at: Option<Instant>,
}

impl ResizeOrder {
    /// Those that live and are not to.
    pub(crate) fn going(&self, left: &BTreeMap<u32, Pid>) -> BTreeSet<u32> {
        let stays = |rank: &u32| self.members.iter().any(|(number, _)| number == rank);
        left.keys().copied().filter(|rank| !stays(rank)).collect()
    }
}

impl Keeper {
    /// Tells members that they will be others: those who stay, by their signal, when the files say how many; those who go,
    /// to stop.
    pub(super) fn begin_resize(
        &self,
        change: ResizeOrder,
        left: &BTreeMap<u32, Pid>,
    ) -> PendingResize {
        for (name, text) in [(WORLD, &change.world), (HOSTFILE, &change.hostfile)] {
            let (path, part) = (self.directory.join(name), self.directory.join("told.part"));
            let _ = std::fs::write(&part, text).and_then(|()| std::fs::rename(part, path));
        }
        let going = change.going(left);
        for (rank, group) in left {
            let number = if going.contains(rank) { change.stop_signal } else { change.signal };
            signal(*group, Signal::from_named_raw(number).unwrap_or(Signal::TERM));
        }
        let kill_at = Instant::now() + Duration::from_millis(change.grace_ms);
        PendingResize { change, kill_at: Some(kill_at) }
    }

    /// Whoever was to go is gone, with all it has started: writes that down, and lets those who come run, all together.
    /// `None` when that cannot be now; an error when they cannot be started.
    pub(super) fn start_joiners(
        &mut self,
        change: &ResizeOrder,
        cgroups: &mut BTreeMap<u32, MemberCgroup>,
        tell: &mpsc::UnboundedSender<KeeperEvent>,
    ) -> Result<Option<BTreeMap<u32, Pid>>, SpawnError> {
        let ResizeOrder { members, next, join, .. } = change.clone();
        let mut coming = RunPlan { members: join, ..self.plan.clone() };
        // The first of all listens, or listened, where the others look for it.
        let port = self.plan.members.first().and_then(|first| first.env.get(PORT)).cloned();
        for member in &mut coming.members {
            member.env.extend(port.clone().map(|port| (PORT.to_owned(), port)));
        }
        // What was written and could not be done is not written again.
        if self.resized_to.1 != members {
            let stays = |rank: u32| members.iter().any(|(number, _)| *number == rank);
            if !self.leavers_are_gone(|rank| !stays(rank)) {
                return Ok(None);
            }
            let at = wall_now().max(self.resized_to.0 + 1);
            let resized = Record::Resized { at, members: members.clone(), next };
            if self.catch_up().is_err() || self.write(resized).is_err() {
                return Ok(None);
            }
            self.resized_to = (at, members);
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
        let GatedMembers { mut opener, members, unlimited } = spawn(&coming)?;
        if let Some(what) = unlimited {
            self.warn(what);
        }
        let groups: BTreeMap<u32, Pid> =
            members.iter().map(|member| (member.rank, member.group)).collect();
        cgroups.extend(self.watch(members, tell, false));
        let opened = opener.write_all(&vec![1u8; groups.len()]);
        opened.map_err(|error| SpawnError { why: format!("no gate: {error}"), later: false })?;
        Ok(Some(groups))
    }

    /// Kills what members that have gone left behind, and says whether nothing of it is left.
    fn leavers_are_gone(&self, gone: impl Fn(u32) -> bool) -> bool {
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
}
