//! The ten promises, and a violation of one.

use std::fmt;

use muster_core::time::Time;

/// What Muster promises, numbered as in the design.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Promise {
    /// 1: no member starts unless every role's minimum does, on ready nodes with every GPU present.
    NoPartialStart,
    /// 2: no node, device, quota, pool limit or budget is exceeded at any instant.
    NoOvercommit,
    /// 3: every node is owed to an order, a gang or a target, or is released within its idle time.
    NoLeak,
    /// 4: one permanent failure or a passed deadline ends the whole order.
    AtomicRollback,
    /// 5: capacity is held only by admitted gangs and by orders that will complete or expire.
    NoHoldAndWait,
    /// 6: no gang overtakes a waiting gang on what it waits for.
    NoStarvation,
    /// 7: gangs are disrupted whole, and never without cause.
    WholeGangDisruption,
    /// 8: a crash leaves no partial gang, no orphan, no duplicate, no lost place in the queue.
    CrashSafety,
    /// 9: bad input is refused and the work of no other tenant stops.
    BadInputIsAFinding,
    /// 10: a queue gets its guarantee in time, whatever tenants of other queues declare.
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
    /// What was observed.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:.3}s: {}", self.promise.name(), self.at.as_secs_f64(), self.what)
    }
}
