//! What becomes of a request: which faults there are, and how often each strikes.

use std::time::Duration;

use crate::asked::{Asked, Verb};
use crate::chance::Chance;

/// Faults, each by how many requests in a thousand it strikes of those that it can.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Faults {
    /// Too busy: try again after a second.
    pub(crate) busy: u64,
    /// Broken inside, or not there.
    pub(crate) broken: u64,
    /// A write that is refused as if somebody else had just written.
    pub(crate) conflict: u64,
    /// The same for what pods are told alone.
    pub(crate) pod_status_conflict: u64,
    /// A write that is carried out, and whose answer never comes.
    pub(crate) lost: u64,
    /// A list as it was some time ago.
    pub(crate) stale: u64,
    /// A watch that may not go on from where it was.
    pub(crate) gone: u64,
    /// A watch that ends by itself, soon or at once.
    pub(crate) cut: u64,
    /// An answer that takes up to two seconds.
    pub(crate) slow: u64,
}

impl Faults {
    /// Nothing but errors.
    pub(crate) const DOWN: Self = Self { busy: 300, broken: 1_000, ..Self::NONE };

    pub(crate) const NONE: Self = Self {
        busy: 0,
        broken: 0,
        conflict: 0,
        pod_status_conflict: 0,
        lost: 0,
        stale: 0,
        gone: 0,
        cut: 0,
        slow: 0,
    };
}

/// What is done with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It is carried out and answered; a watch, if so, only for a while and to an end in good order or not.
    Passes { ends: Option<(Duration, bool)> },
    /// It is not carried out, and answered with this code.
    Refused(u16),
    /// It is carried out, and answered with an error or not at all.
    Unanswered { closed: bool },
    /// It is answered with what was answered before: any one of those, by this number.
    Old(u64),
    /// It is answered by a stream that says that it is too late.
    TooLate,
}

/// What is done with a request, and after how long.
pub(crate) fn fate(faults: &Faults, asked: &Asked, chance: &mut Chance) -> (Fate, Duration) {
    let slow = chance.strikes(faults.slow);
    let delay = Duration::from_millis(if slow { chance.below(2_000) } else { 0 });
    let decided = if chance.strikes(faults.busy) {
        Fate::Refused(429)
    } else if chance.strikes(faults.broken) {
        Fate::Refused([500, 503][chance.below(2) as usize])
    } else {
        match asked.verb {
            verb if verb.writes()
                && faults.pod_status_conflict > 0
                && asked.resource == "pods/status"
                && chance.strikes(faults.pod_status_conflict) =>
            {
                Fate::Refused(409)
            }
            verb if verb.writes() && chance.strikes(faults.conflict) => Fate::Refused(409),
            verb if verb.writes() && chance.strikes(faults.lost) => {
                Fate::Unanswered { closed: chance.strikes(500) }
            }
            // Lists of one are how the present is asked for. If that were a lie too, nothing could be held against it.
            Verb::List if !asked.path.ends_with("limit=1") && chance.strikes(faults.stale) => {
                Fate::Old(chance.below(u64::MAX))
            }
            Verb::Watch if chance.strikes(faults.gone) => {
                if chance.strikes(500) {
                    Fate::Refused(410)
                } else {
                    Fate::TooLate
                }
            }
            Verb::Watch if chance.strikes(faults.cut) => {
                // One in five is not even let begin.
                let lasts = if chance.strikes(200) { 0 } else { chance.below(3_000) };
                Fate::Passes { ends: Some((Duration::from_millis(lasts), chance.strikes(500))) }
            }
            _ => Fate::Passes { ends: None },
        }
    };
    (decided, delay)
}
