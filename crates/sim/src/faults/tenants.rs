//! Draws the guarantees and limits of tenants, and deadlines of gangs.
//!
//! It has random numbers of its own, so that a scenario without tenants does not change.

use std::sync::Arc;

use muster_core::gang::{GangSpec, RoleSpec};
use muster_core::money::Money;
use muster_core::queue::{QueueSpec, Quota};
use muster_core::resource::CPU;
use muster_core::time::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::Setup;
use crate::job::Job;

/// Their random stream.
const STREAM: u64 = 1;

/// Gives guarantees to the queues of half of all scenarios, limits to their users, and deadlines to their gangs.
/// Gangs beyond the limit of their user become infeasible.
pub(crate) fn draw(seed: u64, setup: &mut Setup, infeasible: &mut Vec<Arc<str>>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    if rng.random_bool(0.5) {
        return;
    }
    draw_guarantees(rng, &mut setup.queues);
    for queue in 0..setup.queues.len() {
        if rng.random_bool(0.4) {
            limit_users(rng, setup, queue, infeasible);
        }
    }
    setup.jobs.iter_mut().for_each(|job| draw_deadline(rng, job));
}

/// Weights, half-lives, and guarantees that can all be kept at once: each queue divides a part of its own.
fn draw_guarantees(rng: &mut ChaCha8Rng, queues: &mut [QueueSpec]) {
    let mut left: Vec<u64> = Vec::new();
    for i in 0..queues.len() {
        let parent = queues[i].parent.as_ref();
        let parent = parent.and_then(|name| queues.iter().position(|queue| queue.name == *name));
        let queue = &mut queues[i];
        queue.weight = rng.random_range(1..=4);
        queue.half_life = match rng.random_range(0..4) {
            0 => None,
            1 => Some(Span::ZERO),
            2 => Some(Span::mins(rng.random_range(1..120))),
            _ => Some(Span::hours(rng.random_range(1..72))),
        };
        let most = queue.limit.gpu_milli.unwrap_or(u64::MAX);
        let most = most.min(parent.map_or(most, |parent| left[parent]));
        let gpus = if rng.random_bool(0.6) { rng.random_range(0..=most / 1_000) } else { 0 };
        if gpus > 0 {
            queue.guaranteed.gpu_milli = Some(gpus * 1_000);
        }
        if let Some(parent) = parent {
            left[parent] -= gpus * 1_000;
        }
        // Without a guarantee of its own, it divides its limit.
        left.push(if gpus > 0 { gpus * 1_000 } else { most });
    }
}

/// Limits the users of a queue to the request of its largest gang, or somewhat more; seldom to less.
fn limit_users(
    rng: &mut ChaCha8Rng,
    setup: &mut Setup,
    queue: usize,
    infeasible: &mut Vec<Arc<str>>,
) {
    let Setup { queues, jobs, .. } = setup;
    let gangs = jobs.iter().map(|job| &job.gang);
    let gangs = gangs.filter(|gang| is_below(queues, &gang.queue, &queues[queue].name));
    let gangs: Vec<_> = gangs.filter(|gang| !infeasible.contains(&gang.name)).collect();
    let largest = |of: fn(&GangSpec) -> u64| gangs.iter().map(|gang| of(gang)).max().unwrap_or(0);
    let halves = [2, 2, 3, 4][rng.random_range(0..4)];
    let mut gpus = (largest(gpu_milli) * halves / 2).max(1_000);
    if rng.random_bool(0.1) {
        gpus = rng.random_range(500..=gpus);
    }
    let mut limit = Quota { gpu_milli: Some(gpus), ..Quota::default() };
    if rng.random_bool(0.3) {
        limit.amounts.insert(CPU.into(), (largest(cpu_milli) * halves / 2).max(1_000));
    }
    let over = gangs.iter().filter(|gang| gpu_milli(gang) > gpus);
    infeasible.extend(over.map(|gang| gang.name.clone()));
    queues[queue].user_limit = limit;
}

/// GPUs that a gang's minimum takes, in thousandths.
fn gpu_milli(gang: &GangSpec) -> u64 {
    gang.roles.iter().map(|role| role.request.gpu_milli() * u64::from(role.min)).sum()
}

/// CPU that a gang's minimum takes, in thousandths.
fn cpu_milli(gang: &GangSpec) -> u64 {
    let each = |role: &RoleSpec| role.request.amounts.get(CPU).copied().unwrap_or(0);
    gang.roles.iter().map(|role| each(role) * u64::from(role.min)).sum()
}

/// Whether a queue is another or a descendant of it.
fn is_below(queues: &[QueueSpec], queue: &str, other: &str) -> bool {
    let named = |name: &str| queues.iter().find(|queue| *queue.name == *name);
    let mut path = std::iter::successors(named(queue), |queue| named(queue.parent.as_deref()?));
    path.any(|queue| *queue.name == *other)
}

/// A deadline, which may be generous, tight, or past before it begins, and a price for every hour of delay.
fn draw_deadline(rng: &mut ChaCha8Rng, job: &mut Job) {
    if rng.random_bool(0.4) {
        let after = match rng.random_range(0..5) {
            0 => Span::ZERO,
            1 => Span(job.run.0 / 2),
            2 => job.run,
            3 => job.run + Span::mins(rng.random_range(1..60)),
            _ => job.run + Span::hours(rng.random_range(1..48)),
        };
        job.gang.deadline = Some(job.submit + after);
    }
    if rng.random_bool(0.3) {
        let each = [0, 1, 40, 2_000][rng.random_range(0..4)];
        job.gang.cost_of_waiting = Money::from_units(f64::from(each));
    }
}
