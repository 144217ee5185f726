//! Replaces members of a running gang: staying members are signalled, leaving members get their grace period, joining
//! members wait at their own gate until the leaving ones are gone.

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

/// The variable with the port of the first member.
const PORT: &str = "MASTER_PORT";

/// An order to resize a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ResizeOrder {
    /// All members after the resize, by number, and their seats. A number is used once in a run.
    pub members: Vec<(u32, Seat)>,
    /// The next member number.
    pub next: u32,
    /// The members to start.
    pub join: Vec<MemberPlan>,
    /// The signal for members that stay.
    pub signal: i32,
    /// The signal for members that leave.
    pub stop_signal: i32,
    /// Their grace period in milliseconds.
    pub grace_ms: u64,
    /// The new content of `MUSTER_WORLD`.
    pub world: String,
    /// The new content of `MUSTER_HOSTFILE`.
    pub hostfile: String,
}

/// A resize that waits for members to leave.
#[derive(Debug)]
pub(crate) struct PendingResize {
    pub(crate) change: ResizeOrder,
    pub(crate) kill_at: Option<Instant>,
}

impl ResizeOrder {
    /// The live members that have to leave.
    pub(crate) fn going(&self, left: &BTreeMap<u32, Pid>) -> BTreeSet<u32> {
        let stays = |rank: &u32| self.members.iter().any(|(number, _)| number == rank);
        left.keys().copied().filter(|rank| !stays(rank)).collect()
    }
}

impl Keeper {
    /// Announces the resize: writes the files with the new size, then signals the staying members, and stops the
    /// leaving ones.
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

    /// All leaving members are gone, with all their processes: records the resize, and lets the joining members run,
    /// all together. `None` if that is not possible now; an error if they cannot be started.
    pub(super) fn start_joiners(
        &mut self,
        change: &ResizeOrder,
        cgroups: &mut BTreeMap<u32, MemberCgroup>,
        tell: &mpsc::UnboundedSender<KeeperEvent>,
    ) -> Result<Option<BTreeMap<u32, Pid>>, SpawnError> {
        let ResizeOrder { members, next, join, .. } = change.clone();
        let mut coming = RunPlan { members: join, ..self.plan.clone() };
        // The first member of all is the rendezvous for the others.
        let port = self.plan.members.first().and_then(|first| first.env.get(PORT)).cloned();
        for member in &mut coming.members {
            member.env.extend(port.clone().map(|port| (PORT.to_owned(), port)));
        }
        // A recorded resize that could not be completed is not recorded again.
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

    /// Kills leftovers of members that have left. Returns whether none is left.
    fn leavers_are_gone(&self, gone: impl Fn(u32) -> bool) -> bool {
        const LOOKS: u32 = 40;
        let Some(group) = &self.plan.group else { return true };
        let ranks = self.plan.members.iter().map(|member| member.rank).filter(|rank| gone(*rank));
        let ranks: Vec<u32> = ranks.collect();
        (0..LOOKS).any(|look| {
            // A killed process is gone in a moment.
            std::thread::sleep(Duration::from_millis(if look == 0 { 0 } else { 5 }));
            ranks.iter().all(|rank| group.end_member(*rank))
        })
    }
}
