//! The ledger: takes facts, keeps its own books and finds violations of the promises.

use muster_core::Fact;
use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::plan::Target;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::promises::Violation;
use crate::promises::books::Books;
use crate::promises::queue::promised_starts::Starts;

/// What the checkers must know beforehand.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Every queue.
    pub queues: Vec<QueueSpec>,
    /// Every pool, in the order they were declared.
    pub pools: Vec<PoolSpec>,
    /// How long an offering must be left alone after a failure, at least.
    pub avoid_at_least: Span,
    /// Whether first come is first served for gangs that want the same.
    pub first_come_first_served: bool,
    /// Whether a promised start is never put off as long as what was said holds.
    pub starts_are_firm: bool,
}

/// The auditor: takes facts, keeps books, and finds broken promises.
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
    /// Notes one fact. What is wrong at once is found at once.
    pub fn note(&mut self, now: Time, fact: &Fact) {
        self.books.now = now;
        let found = &mut self.violations;
        if self.books.terms.starts_are_firm {
            let gangs = &self.books.gangs;
            self.starts.note(now, fact, |gang| {
                gangs.get(&gang).and_then(crate::promises::queue::promised_starts::said)
            });
        }
        crate::promises::gangs::evictions::note(&mut self.books, fact, found);
        crate::promises::gangs::grace::note(&mut self.books, fact, found);
        crate::promises::gangs::resizing::note(&mut self.books, fact, found);
        crate::promises::nodes::quarantine::note(&mut self.books, fact, found);
        crate::promises::gangs::members::note(&mut self.books, fact, found);
        crate::promises::nodes::claims::note(&mut self.books, fact, found);
    }
    /// Looks at everything after a step: an event, the planner's answer, and all that was done about it.
    pub fn check(&mut self, now: Time) {
        self.books.now = now;
        let found = &mut self.violations;
        crate::promises::gangs::grace::check(&self.books, found);
        crate::promises::gangs::members::check(&mut self.books, found);
        crate::promises::nodes::claims::check(&self.books, found);
        crate::promises::nodes::idle::check(&self.books, found);
        crate::promises::queue::overtaking::check(&mut self.books, found);
    }
    /// Takes in how many free nodes the planner says each pool is to have now.
    pub fn targets(&mut self, now: Time, targets: &[(PoolIdx, Target)]) {
        self.books.now = now;
        crate::promises::nodes::idle::note(&mut self.books, targets, &mut self.violations);
    }
    /// Takes in whom the planner promises a start now, and when.
    pub fn promised(&mut self, now: Time, reservations: &[(GangId, Time)]) {
        self.books.now = now;
        if self.books.terms.starts_are_firm {
            crate::promises::queue::promised_starts::promised(
                &self.books,
                &mut self.starts,
                reservations,
                &mut self.violations,
            );
        }
    }
    /// Compares the books with what a host says is so, for instance after a restart.
    pub fn audit(&mut self, now: Time, said: &Said) {
        self.books.now = now;
        crate::promises::recovery::audit(&self.books, said, &mut self.violations);
    }
    /// Says which gangs may be overtaken from now on: their queue is at its limit, or they can never run.
    pub fn excuse(&mut self, gangs: impl IntoIterator<Item = GangId>) {
        self.books.excused = gangs.into_iter().collect();
    }
    /// Records a broken promise that a host noticed itself.
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

/// What a host says of itself, to be compared with the books.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Gangs that are not over, with when they were submitted.
    pub gangs: Vec<(GangId, Time)>,
    /// Claims it knows.
    pub claims: Vec<ClaimId>,
    /// Claims the provider knows, each as often as it has a machine for it.
    pub machines: Vec<ClaimId>,
    /// Gangs whose members it believes to run.
    pub running: Vec<GangId>,
}
