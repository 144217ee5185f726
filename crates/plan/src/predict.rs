//! How long gangs run: what users say, what their history says, and what to make of it when they run longer.
//!
//! Beliefs are functions of what the World knows; nothing is remembered between cycles. A belief that turned
//! out too short is stretched by steps that depend only on when the gang started and what time it is.

use muster_core::World;
use muster_core::gang::{Gang, Phase};
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Whose word is taken for how long a gang runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Belief {
    /// What the submitter says.
    Estimate,
    /// The mean of the user's last two runs, never more than what the submitter says.
    LastTwo,
    /// What the submitter says, less what nearly nobody's runs take of it. For gangs that hold seats: promises
    /// are made on it. Whoever wants to go before a promise is taken at his word.
    Upper,
}

impl Belief {
    /// Whose word is taken for gangs that would go before a promise.
    pub(crate) fn of_newcomers(self) -> Belief {
        match self {
            Belief::Upper => Belief::Estimate,
            Belief::Estimate | Belief::LastTwo => self,
        }
    }
}

/// By how much a belief is stretched, step by step, as a gang outlives it: short at first, in case it is
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
            let said = gang.spec.said_duration();
            Span((said.0 as f64 * world.history().upper_share()).ceil() as u64).min(said)
        }
        Belief::Estimate => gang.spec.said_duration(),
        Belief::LastTwo => match gang.recent.as_slice() {
            [last, before, ..] if before.lasted > Span::ZERO => {
                // Whole seconds, as logs keep them.
                let mean = Span((last.lasted.0 + before.lasted.0) / 2 / 1_000 * 1_000);
                estimate.map_or(mean, |estimate| mean.min(estimate))
            }
            _ => gang.spec.said_duration(),
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
    // When it ends if it takes so long in all.
    let end_if = |takes: Span| if runs { gang.end_if(takes) } else { now + gang.lasts_if(takes) };
    let mut first = duration(world, gang, belief);
    if belief == Belief::Upper && outlived(end_if(first)) {
        first = gang.spec.said_duration();
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
        end = end_if(gang.spec.said_duration().max(first));
    }
    // Past even what the submitter said: a tenth of its age longer, and at least a minute.
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

/// How long a gang will most likely run, from the latest runs of its user and of everybody.
///
/// A weighted mean of square roots, so that one very long run does not drown many short ones. Runs with the
/// same estimate or the same size count more, older ones less; what everybody's runs took of their estimates
/// counts as one more run.
pub fn likely(world: &World, gang: &Gang, now: Time) -> Span {
    let estimate = gang.spec.said_duration();
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
