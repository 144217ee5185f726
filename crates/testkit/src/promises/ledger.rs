//! The ledger: takes facts, keeps its own books and finds violations of the promises.

use muster_core::Fact;
use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::plan::Target;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::promises::Violation;
use crate::promises::books::Books;
use crate::promises::gangs::{evictions, grace, members, resizing};
use crate::promises::nodes::{claims, idle, quarantine};
use crate::promises::queue::overtaking;
use crate::promises::queue::promised_starts::{self, Starts};
use crate::promises::recovery;

/// What the checkers need to know beforehand.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Every queue.
    pub queues: Vec<QueueSpec>,
    /// Every pool, in the order they were declared.
    pub pools: Vec<PoolSpec>,
    /// The least back-off of an offering after a failure.
    pub avoid_at_least: Span,
    /// Whether gangs with the same demand start first come, first served.
    pub first_come_first_served: bool,
    /// Whether a promised start is never delayed as long as estimates hold.
    pub starts_are_firm: bool,
}

/// The ledger: takes facts, keeps books, and finds broken promises.
#[derive(Debug)]
pub struct Ledger {
    books: Books,
    starts: Starts,
    violations: Vec<Violation>,
}

impl Ledger {
    /// Empty books under these terms.
    pub fn new(terms: Terms) -> Self {
        Self { books: Books::new(terms), starts: Starts::default(), violations: Vec::new() }
    }
    /// Records one fact. Violations visible at once are found at once.
    pub fn note(&mut self, now: Time, fact: &Fact) {
        self.books.now = now;
        let found = &mut self.violations;
        if self.books.terms.starts_are_firm {
            let gangs = &self.books.gangs;
            self.starts
                .note(now, fact, |gang| gangs.get(&gang).and_then(promised_starts::estimate));
        }
        evictions::note(&mut self.books, fact, found);
        grace::note(&mut self.books, fact, found);
        resizing::note(&mut self.books, fact, found);
        quarantine::note(&mut self.books, fact, found);
        members::note(&mut self.books, fact, found);
        claims::note(&mut self.books, fact, found);
    }
    /// Checks everything after a step: an event, the plan, and all actions taken.
    pub fn check(&mut self, now: Time) {
        self.books.now = now;
        let found = &mut self.violations;
        grace::check(&self.books, found);
        members::check(&mut self.books, found);
        claims::check(&self.books, found);
        idle::check(&self.books, found);
        overtaking::check(&mut self.books, found);
    }
    /// Records how many free nodes the planner wants each pool to have now.
    pub fn targets(&mut self, now: Time, targets: &[(PoolIdx, Target)]) {
        self.books.now = now;
        idle::note(&mut self.books, targets, &mut self.violations);
    }
    /// Records the starts that the planner promises now.
    pub fn promised(&mut self, now: Time, reservations: &[(GangId, Time)]) {
        self.books.now = now;
        if self.books.terms.starts_are_firm {
            promised_starts::promised(
                &self.books,
                &mut self.starts,
                reservations,
                &mut self.violations,
            );
        }
    }
    /// Compares the books with a host's own state, for instance after a restart.
    pub fn audit(&mut self, now: Time, said: &HostReport) {
        self.books.now = now;
        recovery::audit(&self.books, said, &mut self.violations);
    }
    /// Sets which gangs may be overtaken from now on: their queue is at its limit, or they can never run.
    pub fn excuse(&mut self, gangs: impl IntoIterator<Item = GangId>) {
        self.books.excused = gangs.into_iter().collect();
    }
    /// Records a broken promise that a host found itself.
    pub fn report(&mut self, violation: Violation) {
        self.violations.push(violation);
    }
    /// Broken promises so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
    /// GPU-milliseconds members spent running while their gang was not whole.
    pub fn partial_gpu_ms(&self) -> u64 {
        self.books.partial_gpu_ms
    }
}

/// The state of a host by its own account, to be compared with the books.
#[derive(Clone, Debug, Default)]
pub struct HostReport {
    /// Gangs that are not over, with when they were submitted.
    pub gangs: Vec<(GangId, Time)>,
    /// Claims it knows.
    pub claims: Vec<ClaimId>,
    /// Claims the provider knows, each as often as it has a machine for it.
    pub machines: Vec<ClaimId>,
    /// Gangs whose members it believes to run.
    pub running: Vec<GangId>,
}
