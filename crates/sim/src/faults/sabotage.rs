//! Bugs planted in the host on purpose. The checkers must notice.

use muster_testkit::promises::Promise;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// The one that goes by the name of the promise it breaks.
    Against(Promise),
    /// Gangs that save their work when told are stopped without being told.
    NoGrace,
    /// Gangs are stopped long after their grace is over.
    Overstays,
    /// A gang that gives up members is left with fewer than its minimum.
    TakesTooMany,
    /// Gangs are stopped for somebody whose order was never placed.
    ForNobody,
    /// Orders for which others were stopped are given up when all is ready.
    InVain,
    /// The planner is not told how many evictions a queue bears.
    NoBudget,
    /// The planner believes that every gang may be stopped at any time.
    NoProtection,
    /// The planner is not told which nodes are about to go.
    NoNotice,
}

impl Sabotage {
    /// Those that go by a name of their own.
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
    /// What it is called on the command line.
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
