//! Draws gangs that declare absurd values, and queues that bound some of them.
//!
//! They have random numbers of their own, and three of five scenarios do not change: there gangs that cannot be
//! preempted start wherever there is room.

use std::sync::Arc;

use muster_core::gang::GangSpec;
use muster_core::money::Money;
use muster_core::queue::{NonPreemptible, QueueSpec};
use muster_core::time::{Span, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::Setup;

/// Their random stream.
const STREAM: u64 = 9;
/// A duration that no user means.
const AGES: Span = Span::hours(24 * 365 * 100);
/// The highest priority in queues that bound it; sensible gangs stay below.
const MOST: i32 = 1_000;

/// Gives two of five scenarios absurd gangs, and queues that keep what they lent reclaimable. Gangs that declare what
/// their queue does not allow become infeasible.
pub(crate) fn draw(seed: u64, setup: &mut Setup, infeasible: &mut Vec<Arc<str>>) {
    if !matches!(seed % 5, 2 | 3) {
        setup.queues.push(QueueSpec::open("default"));
        let queues = setup.queues.iter_mut();
        queues.for_each(|queue| queue.allowed.non_preemptible = NonPreemptible::Always);
        return;
    }
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    for queue in &mut setup.queues {
        queue.allowed.max_priority = rng.random_bool(0.5).then_some(MOST);
    }
    for job in &mut setup.jobs {
        if rng.random_bool(0.25) {
            let (gang, submit) = (&mut job.gang, job.submit);
            declare(rng, gang, submit);
            let bounded = setup.queues.iter().any(|queue| {
                let own = queue.name == gang.queue
                    || (*queue.name == *"org" && *gang.queue != *"default");
                own && queue.allowed.max_priority.is_some_and(|most| gang.priority > most)
            });
            if bounded && !infeasible.contains(&gang.name) {
                infeasible.push(gang.name.clone());
            }
        }
    }
}

/// Any value that may give a gang an advantage and does not keep the gang itself from ending.
fn declare(rng: &mut ChaCha8Rng, gang: &mut GangSpec, submit: Time) {
    gang.priority = [gang.priority, i32::MAX, i32::MIN][rng.random_range(0..3)];
    gang.expected_duration = [Some(AGES), Some(Span(1)), None][rng.random_range(0..3)];
    gang.deadline = [Some(Time::ZERO), Some(submit + Span::secs(1)), Some(submit + AGES), None]
        [rng.random_range(0..4)];
    gang.cost_of_waiting = [Money::from_units(9e12), None][rng.random_range(0..2)];
    gang.disruption.min_runtime = [AGES, gang.disruption.min_runtime][rng.random_range(0..2)];
    gang.provisioning.attempts = [1_000_000, gang.provisioning.attempts][rng.random_range(0..2)];
}
