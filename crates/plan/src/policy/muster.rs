//! Muster's own order: gangs go by expected slowdown, and a gang that has waited long enough is sure to be next.
//!
//! Queues take turns by fair share. Within a queue gangs go by how much they are slowed down: waiting hurts a short
//! gang sooner than a long one, and the user's history predicts the length of a gang better than the estimate. The
//! declared cost of an hour of delay counts on top. Such an order can starve long and large gangs, so a gang becomes
//! due: when it has waited nearly as long as plain EASY would have let any gang wait, or when its deadline draws
//! near. A gang that is due goes first and holds a start time computed from estimates, which is never too early.

use muster_core::gang::Gang;
use muster_core::money::Money;
use muster_core::time::{Span, Time};

use super::{Discipline, Overtaking};
use crate::order::View;
use crate::predict::{Belief, likely};

/// Queues by share, gangs by expected slowdown, the due before all others.
pub(super) struct Muster;

/// Gangs predicted to be longer than this are hardly told apart: their predictions are too rough.
const LONG: Span = Span::hours(1);
/// A little above one: of two gangs equally slowed down the shorter goes first.
const SHORTNESS: f64 = 1.2;
/// Start times held at once by gangs that are due. More of them leave too many nodes idle.
const RESERVATIONS: usize = 4;

impl Discipline for Muster {
    fn rank(&self, view: &View<'_>, gang: &Gang) -> Option<f64> {
        let likely = gang.with_least(likely(view.world, gang, view.now)).as_secs_f64();
        let length = 1.0 / (1.0 / likely.max(1.0) + 1.0 / LONG.as_secs_f64());
        let wait = view.now.since(gang.submitted).as_secs_f64();
        let cost = gang.spec.cost_of_waiting.map_or(0.0, Money::as_units);
        Some(-(wait + length) / length.powf(SHORTNESS) * (1.0 + cost))
    }
    fn due_since(&self, view: &View<'_>, gang: &Gang) -> Option<Time> {
        let due = view.starvation.due(gang);
        (due <= view.now).then_some(due)
    }
    fn by_share(&self) -> bool {
        true
    }
    fn overtaking(&self) -> Overtaking {
        Overtaking::BackfillDue(RESERVATIONS)
    }
    fn belief(&self) -> Belief {
        Belief::Upper
    }
}
