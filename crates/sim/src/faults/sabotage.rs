//! Bugs that can be planted in the host. The checkers must detect them.

use muster_testkit::promises::Promise;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// The bug named after the promise it breaks.
    Against(Promise),
    /// Gangs that checkpoint on a signal are stopped without grace.
    NoGrace,
    /// Gangs stop long after their grace is over.
    Overstays,
    /// A gang that gives up members is left with fewer than its minimum.
    TakesTooMany,
    /// Victims are stopped for an order that was never placed.
    ForNobody,
    /// Orders with victims are rolled back when all is ready.
    InVain,
    /// The planner does not know the eviction budgets of queues.
    NoBudget,
    /// The planner takes every gang for preemptible at any time.
    NoProtection,
    /// The planner does not see termination notices.
    NoNotice,
}

impl Sabotage {
    /// Bugs with names of their own.
    pub const NAMED: [(&'static str, Sabotage); 8] = [
        ("no-grace", Sabotage::NoGrace),
        ("overstays", Sabotage::Overstays),
        ("takes-too-many", Sabotage::TakesTooMany),
        ("for-nobody", Sabotage::ForNobody),
        ("in-vain", Sabotage::InVain),
        ("no-budget", Sabotage::NoBudget),
        ("no-protection", Sabotage::NoProtection),
        ("no-notice", Sabotage::NoNotice),
    ];
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sabotage::Against(promise) => promise.name(),
            named => Self::NAMED.iter().find(|(_, bug)| *bug == named).map_or("", |(name, _)| name),
        }
    }
    /// The bug of that name.
    pub fn named(name: &str) -> Option<Self> {
        let promise = Promise::ALL.into_iter().find(|promise| promise.name() == name);
        let named = Self::NAMED.iter().find(|(known, _)| *known == name);
        promise.map(Sabotage::Against).or(named.map(|(_, bug)| *bug))
    }
    /// The promise it breaks.
    pub fn promise(self) -> Promise {
        match self {
            Sabotage::Against(promise) => promise,
            _ => Promise::WholeGangDisruption,
        }
    }
}
