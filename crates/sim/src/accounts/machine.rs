//! One machine: how far it is, who uses it, who holds it, and what it has cost.

use muster_core::id::{NodeIdx, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::time::Time;

use crate::accounts::state::State;

/// Who pays: a queue, by number, or everybody together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Payer {
    Shared,
    Queue(u32),
}

/// How far a machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Asked for, and not paid for yet.
    Asked,
    /// Launched.
    Booting,
    /// Its node is ready and shows every GPU.
    Ready,
    /// Failed or lost, and not given back.
    Broken,
    /// Stopped, to be woken; not paid for.
    Stopped,
}

/// What the members of one queue use of a machine.
#[derive(Clone, Copy, Debug)]
struct Use {
    queue: u32,
    gpu_milli: u64,
    members: u32,
}

/// Money that a rollback has to answer for until the machine is of use to somebody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// Which rollback, by number.
    pub(crate) rollback: usize,
    /// What the machine had cost when it was rolled back.
    pub(crate) spent: Money,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) offering: OfferingRef,
    pub(crate) phase: Phase,
    pub(crate) node: Option<NodeIdx>,
    /// Until when its time and money are counted.
    pub(crate) since: Time,
    /// Since when it is paid for, this time round.
    pub(crate) launched: Time,
    /// What it cost before that.
    pub(crate) before: Money,
    /// What it has cost until `since`.
    pub(crate) spent: Money,
    /// Orders that hold it, each with its queue.
    pub(crate) holders: Vec<(OrderId, u32)>,
    pub(crate) charge: Option<Charge>,
    uses: Vec<Use>,
    /// Whether anybody has used it since it became ready.
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

    /// Whether somebody pays for it.
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

    /// What the machine as a whole is; stranded is what only its GPUs can be.
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

    /// What its parts add up to: its GPU thousandths. A machine without GPUs is of one piece; those who use it
    /// divide it by members.
    pub(crate) fn whole(&self, gpu_milli: u64) -> u64 {
        let members = || self.uses.iter().map(|used| u64::from(used.members)).sum();
        match (gpu_milli, self.state()) {
            (0, State::Running) => members(),
            _ => gpu_milli.max(1),
        }
    }

    /// What each part of it is and who pays for it, one after the other. All parts together are the whole.
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
