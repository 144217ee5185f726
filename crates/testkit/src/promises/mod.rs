//! The promises of the design, each a named check over an independent set of books.

mod books;
mod demand;
mod evictions;
mod excused;
mod fairness;
mod grace;
mod quota;
mod recovery;
mod resizing;
mod starts;
mod supply;
mod targets;
mod trust;

#[cfg(test)]
mod stage;

use std::fmt;

use muster_core::Fact;
use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::plan::Target;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

pub use excused::excused;

use books::Books;
use starts::Starts;

/// What Muster promises, numbered as in the design.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Promise {
    /// 1: no member starts unless every role's minimum does, on ready nodes with every GPU present.
    NoPartialStart,
    /// 2: no node, device, quota, pool limit or budget is exceeded at any instant.
    NoOvercommit,
    /// 3: every node is owed to somebody, or is released within its idle time.
    NoLeak,
    /// 4: one permanent failure or a passed deadline ends the whole order.
    AtomicRollback,
    /// 5: capacity is held only by admitted gangs and by orders that will complete or expire.
    NoHoldAndWait,
    /// 6: nobody overtakes a waiting gang on what it waits for.
    NoStarvation,
    /// 7: gangs are disrupted whole, and never without cause.
    WholeGangDisruption,
    /// 8: a crash leaves no partial gang, no orphan, no duplicate, no lost place in the queue.
    CrashSafety,
    /// 9: bad input is refused and nobody else's work stops.
    BadInputIsAFinding,
    /// 10: what a queue is guaranteed it has in time, whatever tenants of other queues declare.
    Isolation,
}

impl Promise {
    /// All of them, in the design's order.
    pub const ALL: [Promise; 10] = [
        Promise::NoPartialStart,
        Promise::NoOvercommit,
        Promise::NoLeak,
        Promise::AtomicRollback,
        Promise::NoHoldAndWait,
        Promise::NoStarvation,
        Promise::WholeGangDisruption,
        Promise::CrashSafety,
        Promise::BadInputIsAFinding,
        Promise::Isolation,
    ];
    /// Its name, as reports and the command line spell it.
    pub fn name(self) -> &'static str {
        match self {
            Promise::NoPartialStart => "no-partial-start",
            Promise::NoOvercommit => "no-overcommit",
            Promise::NoLeak => "no-leak",
            Promise::AtomicRollback => "atomic-rollback",
            Promise::NoHoldAndWait => "no-hold-and-wait",
            Promise::NoStarvation => "no-starvation",
            Promise::WholeGangDisruption => "whole-gang-disruption",
            Promise::CrashSafety => "crash-safety",
            Promise::BadInputIsAFinding => "bad-input-is-a-finding",
            Promise::Isolation => "isolation",
        }
    }
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// When.
    pub at: Time,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:.3}s: {}", self.promise.name(), self.at.as_secs_f64(), self.what)
    }
}

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
            self.starts.note(now, fact, |gang| gangs.get(&gang).and_then(starts::said));
        }
        evictions::note(&mut self.books, fact, found);
        grace::note(&mut self.books, fact, found);
        resizing::note(&mut self.books, fact, found);
        trust::note(&mut self.books, fact, found);
        demand::note(&mut self.books, fact, found);
        supply::note(&mut self.books, fact, found);
    }
    /// Looks at everything after a step: an event, the planner's answer, and all that was done about it.
    pub fn check(&mut self, now: Time) {
        self.books.now = now;
        let found = &mut self.violations;
        grace::check(&self.books, found);
        demand::check(&mut self.books, found);
        supply::check(&self.books, found);
        targets::check(&self.books, found);
        fairness::check(&mut self.books, found);
    }
    /// Takes in how many free nodes the planner says each pool is to have now.
    pub fn targets(&mut self, now: Time, targets: &[(PoolIdx, Target)]) {
        self.books.now = now;
        targets::note(&mut self.books, targets, &mut self.violations);
    }
    /// Takes in whom the planner promises a start now, and when.
    pub fn promised(&mut self, now: Time, reservations: &[(GangId, Time)]) {
        self.books.now = now;
        if self.books.terms.starts_are_firm {
            starts::promised(&self.books, &mut self.starts, reservations, &mut self.violations);
        }
    }
    /// Compares the books with what a host says is so, for instance after a restart.
    pub fn audit(&mut self, now: Time, said: &Said) {
        self.books.now = now;
        recovery::audit(&self.books, said, &mut self.violations);
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
