//! A gang in the control plane, and its current run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::gang::Seat;
use muster_core::id::GangId;
use muster_core::time::Time;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::daemon::gangs::seats;
use crate::intake::record::Record;
use crate::keeper::journal::Record as Kept;
use crate::keeper::socket::client::Order;

/// The latest gang of a name.
#[derive(Debug)]
pub(crate) struct Gang {
    /// Its number among all gangs ever submitted.
    pub(crate) uid: i64,
    /// Its id in the World, while it is there: not while it is held, nor when it has finished.
    pub(crate) id: Option<GangId>,
    pub(crate) record: Record,
    pub(crate) submitted: Time,
    /// When it finished, and how.
    pub(crate) over: Option<Over>,
    /// Its current run: members that run, or are about to.
    pub(crate) run: Option<Run>,
    /// The seats it is being resized to; its members are being stopped for that.
    pub(crate) resizes: Option<Vec<Seat>>,
    /// The number of members in its last run.
    pub(crate) members: u32,
    /// Its runs, and those of earlier gangs of the same name, as far as they are kept.
    pub(crate) runs: Vec<u64>,
    /// When all its members had started, and the spread of their starts in microseconds.
    pub(crate) started: Option<(Time, Option<u64>)>,
    /// Its published status.
    pub(crate) status: Value,
}

/// How a gang finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Over {
    /// Wall-clock time.
    pub(crate) at: i64,
    pub(crate) good: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// One run of a gang.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    /// The seats of its members.
    pub(crate) seats: Vec<Seat>,
    /// Seats by member number, which each member keeps, and the next number.
    pub(crate) members: BTreeMap<u32, Seat>,
    pub(crate) next: u32,
    /// Whether its keeper can replace members while others run on, and when it last did; wall-clock time.
    pub(crate) can_change: bool,
    pub(crate) changed_at: i64,
    pub(crate) opened: bool,
    /// Whether its start was published.
    pub(crate) start_published: bool,
    /// Whether it replaced other members of the same gang.
    pub(crate) resized: bool,
    pub(crate) told_to_stop: bool,
    /// Ranks whose exit is known.
    pub(crate) exited: BTreeSet<u32>,
    /// Whether a member failed, or the run was told to stop.
    pub(crate) broken: bool,
    /// Keepers that exited before they opened the gate.
    pub(crate) failed_starts: u32,
    /// How often its start was deferred because the system was out of a resource, and which resource.
    pub(crate) deferrals: u32,
    pub(crate) shortage: Option<String>,
    /// The reason of the last deferral.
    pub(crate) why_delayed: Option<String>,
    /// Whether it has no keeper until the next attempt.
    pub(crate) delayed: bool,
    /// Orders to send once a keeper is supervised.
    pub(crate) pending: Vec<Order>,
    /// The channel to the task that supervises the keeper.
    pub(crate) orders: Option<UnboundedSender<Order>>,
}

impl Run {
    pub(crate) fn new(number: u64, seats: Vec<Seat>) -> Self {
        let members: BTreeMap<u32, Seat> = (0..).zip(seats::per_member(&seats)).collect();
        Self {
            number,
            seats,
            next: members.len() as u32,
            members,
            can_change: false,
            changed_at: 0,
            opened: false,
            start_published: false,
            resized: false,
            told_to_stop: false,
            exited: BTreeSet::new(),
            broken: false,
            failed_starts: 0,
            deferrals: 0,
            shortage: None,
            why_delayed: None,
            delayed: false,
            pending: Vec::new(),
            orders: None,
        }
    }
}

impl Run {
    /// Restores from a journal the members since the last resize, as far as that resize was processed before.
    pub(crate) fn restore_from_journal(&mut self, changed: Option<i64>, journal: &[Kept]) {
        for record in journal {
            match record {
                Kept::Begun { resizes, .. } => self.can_change = *resizes,
                Kept::Resized { at, members, next } if changed == Some(*at) => {
                    self.members = members.iter().copied().collect();
                    (self.next, self.changed_at) = (*next, *at);
                }
                _ => {}
            }
        }
    }

    /// Whether every member is known to have succeeded, whatever happened to the keeper.
    pub(crate) fn is_done(&self) -> bool {
        !self.broken && self.members.keys().all(|number| self.exited.contains(number))
    }
}

impl Gang {
    pub(crate) fn new(uid: i64, record: Record, submitted: Time) -> Self {
        Self {
            uid,
            id: None,
            record,
            submitted,
            over: None,
            run: None,
            resizes: None,
            members: 0,
            runs: Vec::new(),
            started: None,
            status: Value::Null,
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.record.spec.name
    }
}
