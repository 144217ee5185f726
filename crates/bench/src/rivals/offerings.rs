//! Offerings, cheapest first, with back-off after failures.

use std::collections::BTreeMap;

use muster_core::id::OfferingRef;
use muster_core::time::{Span, Time};

use crate::rivals::simulation::RivalSim;

/// The back-off of an offering after failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backoff {
    pub(crate) first: Span,
    /// It doubles with every further failure, up to this.
    pub(crate) most: Span,
    /// Failures longer ago than this are forgotten.
    pub(crate) forget: Span,
}

#[derive(Clone, Copy, Debug)]
struct Failed {
    at: Time,
    until: Time,
    pause: Span,
}

/// Offerings by price, and recent failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offerings {
    by_price: Vec<OfferingRef>,
    failed: BTreeMap<OfferingRef, Failed>,
}

impl Offerings {
    pub(crate) fn of(sim: &RivalSim<'_>) -> Self {
        Self { by_price: sim.by_price(), failed: BTreeMap::new() }
    }
    /// Offerings with at least so many GPUs that do not back off now, cheapest first.
    pub(crate) fn open<'s>(
        &'s self,
        sim: &'s RivalSim<'_>,
        gpus: u16,
    ) -> impl Iterator<Item = OfferingRef> + 's {
        let open = move |at: &OfferingRef| {
            let left_alone = self.failed.get(at).is_some_and(|failed| sim.now < failed.until);
            sim.spec(*at).gpus >= gpus && !left_alone
        };
        self.by_price.iter().copied().filter(open)
    }
    /// When the next back-off ends.
    pub(crate) fn reopens(&self, now: Time) -> Option<Time> {
        self.failed.values().map(|failed| failed.until).filter(|until| *until > now).min()
    }
    /// An offering failed. Failures during its back-off are the same failure.
    pub(crate) fn back_off(&mut self, now: Time, at: OfferingRef, backoff: Backoff) {
        let before = self.failed.get(&at).copied();
        if before.is_some_and(|failed| now < failed.until) {
            return;
        }
        let again = before.filter(|failed| now.since(failed.at) <= backoff.forget);
        let pause =
            again.map_or(backoff.first, |failed| failed.pause.saturating_mul(2)).min(backoff.most);
        self.failed.insert(at, Failed { at: now, until: now + pause, pause });
    }
}

#[cfg(test)]
mod tests {
    use muster_core::id::PoolIdx;

    use super::*;

    #[test]
    fn backoff_of_an_offering_doubles_up_to_its_limit_and_resets_in_the_end() {
        let at = OfferingRef { pool: PoolIdx(0), slot: 0 };
        let mins = |mins| Time::ZERO + Span::mins(mins);
        let backoff = Backoff { first: Span::mins(5), most: Span::mins(8), forget: Span::hours(3) };
        let mut offerings = Offerings::default();
        offerings.back_off(mins(0), at, backoff);
        offerings.back_off(mins(1), at, backoff); // another node of the same request
        assert_eq!(offerings.reopens(mins(1)), Some(mins(5)));
        offerings.back_off(mins(5), at, backoff);
        assert_eq!(offerings.reopens(mins(5)), Some(mins(13)));
        offerings.back_off(mins(300), at, backoff);
        assert_eq!(offerings.reopens(mins(300)), Some(mins(305)));
        assert_eq!(offerings.reopens(mins(305)), None);
    }
}
