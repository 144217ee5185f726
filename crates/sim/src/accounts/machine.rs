//! One purchased machine: its phase, the members on it, the orders that hold it, and its cost.

use muster_core::id::{NodeIdx, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::time::Time;

use crate::accounts::state::State;

/// The payer: a queue, by number, or all queues together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Payer {
    Shared,
    Queue(u32),
}

/// The phase of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Requested, and not billed yet.
    Asked,
    /// Launched.
    Booting,
    /// Its node is ready and shows every GPU.
    Ready,
    /// Failed or lost, and not released.
    Broken,
    /// Stopped, to be woken; not billed.
    Stopped,
}

/// The use of a machine by the members of one queue.
#[derive(Clone, Copy, Debug)]
struct Use {
    queue: u32,
    gpu_milli: u64,
    members: u32,
}

/// Cost that is charged to a rollback until the machine is used again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// The rollback, by number.
    pub(crate) rollback: usize,
    /// The cost of the machine at the rollback.
    pub(crate) spent: Money,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) offering: OfferingRef,
    pub(crate) phase: Phase,
    pub(crate) node: Option<NodeIdx>,
    /// Until when its time and money are counted.
    pub(crate) since: Time,
    /// Since when it is billed, since its last launch.
    pub(crate) launched: Time,
    /// Its cost before that.
    pub(crate) before: Money,
    /// Its cost until `since`.
    pub(crate) spent: Money,
    /// Orders that hold it, each with its queue.
    pub(crate) holders: Vec<(OrderId, u32)>,
    pub(crate) charge: Option<Charge>,
    uses: Vec<Use>,
    /// Whether it has been used since it became ready.
    used: bool,
}

impl Machine {
    pub(crate) fn new(offering: OfferingRef, now: Time) -> Self {
        Self {
            offering,
            phase: Phase::Asked,
            node: None,
            since: now,
            launched: now,
            before: Money::ZERO,
            spent: Money::ZERO,
            holders: Vec::new(),
            charge: None,
            uses: Vec::new(),
            used: false,
        }
    }

    /// Whether it is billed.
    pub(crate) fn is_billed(&self) -> bool {
        match self.phase {
            Phase::Booting | Phase::Ready | Phase::Broken => true,
            Phase::Asked | Phase::Stopped => false,
        }
    }

    /// Its provider has started it, for the first time or again.
    pub(crate) fn launch(&mut self, now: Time) {
        if !self.is_billed() {
            (self.phase, self.launched, self.before) = (Phase::Booting, now, self.spent);
        }
    }

    /// Its node was seen, with every GPU and ready or not so.
    pub(crate) fn seen(&mut self, node: NodeIdx, complete: bool) {
        self.node = Some(node);
        match (self.phase, complete) {
            (Phase::Booting, true) => (self.phase, self.used) = (Phase::Ready, false),
            (Phase::Broken, true) => self.phase = Phase::Ready,
            (Phase::Ready, false) => self.phase = Phase::Broken,
            _ => {}
        }
    }

    /// Its node is gone, or its claim has failed.
    pub(crate) fn fail(&mut self) {
        if self.is_billed() {
            self.phase = Phase::Broken;
        }
    }

    pub(crate) fn seat(&mut self, queue: u32, gpu_milli: u64, members: u32) {
        self.used = true;
        match self.uses.iter_mut().find(|used| used.queue == queue) {
            Some(used) => {
                used.gpu_milli += gpu_milli;
                used.members += members;
            }
            None => self.uses.push(Use { queue, gpu_milli, members }),
        }
    }

    pub(crate) fn unseat(&mut self, queue: u32, gpu_milli: u64, members: u32) {
        for used in self.uses.iter_mut().filter(|used| used.queue == queue) {
            used.gpu_milli = used.gpu_milli.saturating_sub(gpu_milli);
            used.members = used.members.saturating_sub(members);
        }
        self.uses.retain(|used| used.members > 0);
    }

    /// The state of the machine as a whole; only single GPUs can be stranded.
    pub(crate) fn state(&self) -> State {
        match self.phase {
            Phase::Ready if !self.uses.is_empty() => State::Running,
            Phase::Ready if !self.holders.is_empty() => State::Gathering,
            Phase::Ready if self.used => State::Idle,
            Phase::Ready => State::Warm,
            Phase::Booting => State::Booting,
            Phase::Broken => State::Broken,
            Phase::Asked | Phase::Stopped => unreachable!("it is paid for"),
        }
    }

    /// The sum of its parts: its GPU thousandths. A machine without GPUs is one part; its users divide it by members.
    pub(crate) fn whole(&self, gpu_milli: u64) -> u64 {
        let members = || self.uses.iter().map(|used| u64::from(used.members)).sum();
        match (gpu_milli, self.state()) {
            (0, State::Running) => members(),
            _ => gpu_milli.max(1),
        }
    }

    /// Calls `part` with the state, the payer and the size of each part. All parts together are the whole.
    pub(crate) fn parts(&self, gpu_milli: u64, mut part: impl FnMut(State, Payer, u64)) {
        let (state, mut left) = (self.state(), self.whole(gpu_milli));
        if state == State::Running {
            for used in &self.uses {
                let uses = if gpu_milli > 0 { used.gpu_milli } else { u64::from(used.members) };
                let uses = uses.min(left);
                part(State::Running, Payer::Queue(used.queue), uses);
                left -= uses;
            }
        }
        match state {
            State::Running | State::Gathering if !self.holders.is_empty() => {
                let holders = self.holders.len() as u64;
                for (i, (_, queue)) in (0..).zip(&self.holders) {
                    let share = left * (i + 1) / holders - left * i / holders;
                    part(State::Gathering, Payer::Queue(*queue), share);
                }
            }
            State::Running => part(State::Stranded, Payer::Shared, left),
            state => part(state, Payer::Shared, left),
        }
    }
}
