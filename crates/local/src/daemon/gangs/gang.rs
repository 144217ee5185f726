//! A gang as the control plane knows it.

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
    /// Its number among all that ever were.
    pub(crate) uid: i64,
    /// Its number in the World, while it is there: not when it is held, or over.
    pub(crate) id: Option<GangId>,
    pub(crate) record: Record,
    pub(crate) submitted: Time,
    /// When it was over, and how.
    pub(crate) over: Option<Over>,
    /// Its members, while they run or are about to.
    pub(crate) run: Option<Run>,
    /// The seats it is to have; its members are being stopped for that.
    pub(crate) resizes: Option<Vec<Seat>>,
    /// How many members it had when it last ran.
    pub(crate) members: u32,
    /// Its runs, and those of gangs before it that had its name, as far as they are kept.
    pub(crate) runs: Vec<u64>,
    /// When all its members had started, and how far apart in microseconds.
    pub(crate) started: Option<(Time, Option<u64>)>,
    /// What is on the board of it.
    pub(crate) status: Value,
}

/// How a gang was over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Over {
    /// On the wall.
    pub(crate) at: i64,
    pub(crate) good: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The members of a gang, once.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) number: u64,
    /// Where they sit.
    pub(crate) seats: Vec<Seat>,
    /// The same by number, which each of them keeps, and the number that comes next.
    pub(crate) members: BTreeMap<u32, Seat>,
    pub(crate) next: u32,
    /// Whether its keeper can have other members while some go on, and when it last had; on the wall.
    pub(crate) can_change: bool,
    pub(crate) changed_at: i64,
    pub(crate) opened: bool,
    /// Whether it was told that they have started.
    pub(crate) start_published: bool,
    /// Whether they are others than before, of a gang that goes on.
    pub(crate) resized: bool,
    pub(crate) told_to_stop: bool,
    /// Ranks whose end is known.
    pub(crate) exited: BTreeSet<u32>,
    /// Whether any of them failed, or they were told to stop.
    pub(crate) broken: bool,
    /// Keepers that were gone before they let anybody run.
    pub(crate) failed_starts: u32,
    /// Times it could not be started because the system had run out of something, and out of what.
    pub(crate) deferrals: u32,
    pub(crate) shortage: Option<String>,
    /// Why it could not be started the last time, for want of something.
    pub(crate) why_delayed: Option<String>,
    /// Whether it has no keeper until it is tried again.
    pub(crate) delayed: bool,
    /// What it is to be told once somebody attends to it.
    pub(crate) pending: Vec<Order>,
    /// To the task that attends to the keeper.
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
    /// Takes from a journal what is known of the members since they last changed, as far as that was heard before.
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

    /// Whether every member is known to have done its work, whatever became of who kept them.
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
