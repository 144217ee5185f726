//! How long gangs run: what users estimate, what their history says, and how an estimate is extended when a gang
//! outlives it.
//!
//! Predictions are functions of what the World knows; nothing is remembered between cycles. A prediction that turned
//! out too short is extended by steps that depend only on when the gang started and what time it is.

use muster_core::World;
use muster_core::gang::{Gang, Phase};
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Which prediction of a gang's duration is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Belief {
    /// The submitter's estimate.
    Estimate,
    /// The mean of the user's last two runs, never more than the estimate.
    LastTwo,
    /// The estimate, less the part of it that nearly all runs leave unused. Used for gangs that hold seats, since
    /// promises rest on it. A gang that would go before a promise is predicted by its own estimate.
    Upper,
}

impl Belief {
    /// The prediction for gangs that would go before a promise.
    pub(crate) fn of_newcomers(self) -> Belief {
        match self {
            Belief::Upper => Belief::Estimate,
            Belief::Estimate | Belief::LastTwo => self,
        }
    }
}

/// By how much a prediction is extended, step by step, as a gang outlives it: short at first, in case the gang is
/// about to end, then ever longer.
const STRETCH: [Span; 11] = [
    Span::mins(1),
    Span::mins(5),
    Span::mins(15),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(5),
    Span::hours(10),
    Span::hours(20),
    Span::hours(50),
    Span::hours(100),
];

/// How long a gang is believed to run, as of its submission.
pub fn duration(world: &World, gang: &Gang, belief: Belief) -> Span {
    let estimate = gang.spec.expected_duration;
    match belief {
        Belief::Upper => {
            let said = gang.spec.estimated_duration();
            Span((said.0 as f64 * world.history().upper_share()).ceil() as u64).min(said)
        }
        Belief::Estimate => gang.spec.estimated_duration(),
        Belief::LastTwo => match gang.recent.as_slice() {
            [last, before, ..] if before.lasted > Span::ZERO => {
                // Whole seconds, as logs keep them.
                let mean = Span((last.lasted.0 + before.lasted.0) / 2 / 1_000 * 1_000);
                estimate.map_or(mean, |estimate| mean.min(estimate))
            }
            _ => gang.spec.estimated_duration(),
        },
    }
}

/// When a gang that runs is believed to end; always after `now`.
pub fn end(world: &World, gang: &Gang, belief: Belief, now: Time) -> Time {
    believed_end(world, gang, belief, now, |end| end <= now)
}

/// When a gang that runs was believed to end, before it became clear at `now` whether it does.
pub fn end_as_hoped(world: &World, gang: &Gang, belief: Belief, now: Time) -> Time {
    believed_end(world, gang, belief, now, |end| end < now)
}

fn believed_end(
    world: &World,
    gang: &Gang,
    belief: Belief,
    now: Time,
    outlived: impl Fn(Time) -> bool,
) -> Time {
    let runs = matches!(gang.phase, Phase::Running { .. } | Phase::Admitted { .. });
    // The end if it takes so long in all.
    let end_if = |takes: Span| if runs { gang.end_if(takes) } else { now + gang.lasts_if(takes) };
    let mut first = duration(world, gang, belief);
    if belief == Belief::Upper && outlived(end_if(first)) {
        first = gang.spec.estimated_duration();
    }
    let said = gang.spec.expected_duration;
    let mut end = end_if(first);
    for stretch in STRETCH {
        if !outlived(end) {
            return end;
        }
        let stretched = first + stretch;
        end = end_if(said.map_or(stretched, |said| stretched.min(said.max(first))));
    }
    if outlived(end) {
        end = end_if(gang.spec.estimated_duration().max(first));
    }
    // Past even the estimate: a tenth of its age longer, and at least a minute.
    let started = match gang.phase {
        Phase::Running { at } | Phase::Admitted { at } => at,
        Phase::Waiting | Phase::Assembling(_) | Phase::Stopping => now,
    };
    while outlived(end) {
        end = now + Span((now.since(started).0 / 10).max(60_000));
    }
    end
}

/// How long a gang that starts now with its minimum is believed to run.
pub fn lasts(world: &World, gang: &Gang, belief: Belief) -> Span {
    gang.lasts_if(duration(world, gang, belief))
}

/// How long a gang will most likely run, from the latest runs of its user and of all users.
///
/// A weighted mean of square roots, so that one very long run does not drown many short ones. Runs with the same
/// estimate or the same size count more, older ones less; the part of their estimates that all users' runs took
/// counts as one more run.
pub fn likely(world: &World, gang: &Gang, now: Time) -> Span {
    let estimate = gang.spec.estimated_duration();
    let members = gang.spec.min_members();
    let root = |span: Span| span.as_secs_f64().max(10.0).sqrt();
    let mut sum = root(Span((estimate.0 as f64 * world.history().usual_share()) as u64));
    let (mut weights, mut fade) = (1.0, 1.0);
    for run in world.history().of_user(&gang.spec.user, now) {
        let alike = if run.estimate == gang.spec.expected_duration { 4.0 } else { 1.0 };
        let as_large = if run.members == members { 2.0 } else { 1.0 };
        let weight = fade * alike * as_large;
        sum += weight * root(run.lasted.min(estimate));
        weights += weight;
        fade *= 0.9;
    }
    let mean: f64 = sum / weights;
    Span::from_secs_f64(mean * mean)
}
