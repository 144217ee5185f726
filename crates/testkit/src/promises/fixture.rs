//! A node with room for all gangs, and gangs that do on it what a test says.

use muster_core::Fact;
use muster_core::device::{DeviceSet, Devices};
use muster_core::gang::{Checkpoint, Disruption, GangSpec, Signal};
use muster_core::id::{GangId, NodeIdx, OrderId};
use muster_core::order::RollbackReason;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::build;
use crate::promises::{Ledger, Terms};

/// The node.
pub(crate) const NODE: NodeIdx = NodeIdx(0);

/// A gang of two members that checkpoints on a signal, with so many minutes of grace.
pub(crate) fn saving(name: &str, grace_mins: u64) -> GangSpec {
    let signal = Some(Signal::SigUsr1);
    let checkpoint = Some(Checkpoint { signal, ..Checkpoint::default() });
    let grace = Span::mins(grace_mins);
    let disruption = Disruption { preemptible: true, grace, checkpoint, ..Disruption::default() };
    GangSpec { disruption, ..build::gang(name, 2, 1) }
}

/// A gang that may have so many members.
pub(crate) fn elastic(name: &str, min: u32, max: u32) -> GangSpec {
    let mut gang = build::gang(name, min, 1);
    gang.roles[0].max = max;
    gang
}

/// A ledger, and the facts recorded in it.
pub(crate) struct Fixture {
    ledger: Ledger,
    now: Time,
    free: Devices,
    gangs: Vec<Vec<DeviceSet>>,
    orders: u32,
}

impl Fixture {
    /// One node, and these queues.
    pub(crate) fn new(queues: &[QueueSpec]) -> Self {
        let terms = Terms { queues: queues.to_vec(), ..Terms::default() };
        let (ledger, free) = (Ledger::new(terms), Devices::free(64));
        let mut fixture = Self { ledger, now: Time::ZERO, free, gangs: Vec::new(), orders: 0 };
        fixture.see_node();
        fixture
    }
    pub(crate) fn note(&mut self, fact: &Fact) {
        self.ledger.note(self.now, fact);
    }
    pub(crate) fn check(&mut self) {
        self.ledger.check(self.now);
    }
    /// Violations about disruption, as text.
    pub(crate) fn broken(&self) -> Vec<String> {
        self.ledger.violations().iter().map(|violation| violation.what.clone()).collect()
    }
    /// Some minutes pass.
    pub(crate) fn pass(&mut self, mins: u64) {
        self.check();
        self.now += Span::mins(mins);
        self.check();
    }

    pub(crate) fn see_node(&mut self) {
        let spec = build::node("n", 64, &[]);
        let (name, allocatable) = (spec.name, spec.allocatable);
        let (claim, gpus, ready) = (None, 64, true);
        self.note(&Fact::NodeSeen { node: NODE, name, claim, allocatable, gpus, ready });
    }
    pub(crate) fn lose_node(&mut self) {
        self.note(&Fact::NodeLost { node: NODE, name: "n".into() });
    }
    pub(crate) fn notice(&mut self, by: Time) {
        self.note(&Fact::NodeNoticed { node: NODE, by });
    }

    pub(crate) fn submit(&mut self, spec: GangSpec) -> GangId {
        let gang = GangId(self.gangs.len() as u32);
        self.gangs.push(Vec::new());
        self.note(&Fact::GangSubmitted { gang, spec: spec.into() });
        gang
    }
    pub(crate) fn cancel(&mut self, gang: GangId) {
        self.note(&Fact::GangCancelled { gang });
    }
    pub(crate) fn start(&mut self, gang: GangId, members: usize) {
        self.add_members(gang, members);
        self.note(&Fact::GangStarted { gang });
    }
    pub(crate) fn add_members(&mut self, gang: GangId, members: usize) {
        for _ in 0..members {
            let devices = self.free.take(1, 1_000).expect("room for everybody");
            self.gangs[gang.0 as usize].push(devices);
            self.note(&Fact::MembersStarted { gang, role: 0, node: NODE, devices, members: 1 });
        }
    }
    pub(crate) fn drop_members(&mut self, gang: GangId, members: usize) {
        for _ in 0..members {
            let devices = self.gangs[gang.0 as usize].pop().expect("as many members");
            self.free.give_back(devices, 1_000);
            self.note(&Fact::MembersStopped { gang, role: 0, node: NODE, devices, members: 1 });
        }
    }
    pub(crate) fn stopping(&mut self, gang: GangId, reason: StopReason) {
        self.note(&Fact::GangStopping { gang, reason });
    }
    pub(crate) fn stop(&mut self, gang: GangId, reason: StopReason) {
        self.drop_members(gang, self.gangs[gang.0 as usize].len());
        self.note(&Fact::GangStopped { gang, reason });
    }
    pub(crate) fn resizing(&mut self, gang: GangId, from: u32, to: u32) {
        let joins = vec![NODE; to.saturating_sub(from) as usize];
        self.note(&Fact::GangResizing { gang, from, to, joins });
    }
    pub(crate) fn resized(&mut self, gang: GangId) {
        self.note(&Fact::GangResized { gang });
    }
    /// An order for a gang, with these victims.
    pub(crate) fn order(&mut self, gang: GangId, after: &[GangId]) -> OrderId {
        let order = OrderId(self.orders);
        self.orders += 1;
        let (claims, holds, after) = (Vec::new(), Vec::new(), after.to_vec());
        let deadline = self.now + Span::mins(15);
        self.note(&Fact::OrderPlaced { order, gang, claims, holds, after, deadline });
        order
    }
    pub(crate) fn complete(&mut self, order: OrderId, gang: GangId, members: usize) {
        self.note(&Fact::OrderCompleted { order, gang });
        self.start(gang, members);
    }
    pub(crate) fn roll_back(&mut self, order: OrderId, gang: GangId, reason: RollbackReason) {
        self.note(&Fact::OrderRolledBack { order, gang, reason });
    }
}
