//! Draws which gangs may be preempted and how, which are elastic, the time slices of queues, and which nodes fail again
//! and again.
//!
//! It has random numbers of its own, so that a scenario without it does not change.

use std::sync::Arc;

use muster_core::gang::{Checkpoint, Disruption, GangSpec, Signal};
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::{Outage, Setup};
use crate::job::{Job, Nature};

/// Their random stream.
const STREAM: u64 = 3;
/// The random stream of gangs that never preempt.
const NEVER_PREEMPTS_STREAM: u64 = 7;

/// Gives two thirds of all scenarios gangs that may be stopped, grow and shrink, queues with time slices and eviction
/// budgets, termination notices, and nodes that fail and come back.
pub(crate) fn draw(seed: u64, setup: &mut Setup, infeasible: &[Arc<str>], storm_ends: Time) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    if rng.random_bool(1.0 / 3.0) {
        return;
    }
    let elastic = [0.0, 0.3, 0.8][rng.random_range(0..3)];
    for job in &mut setup.jobs {
        draw_preemptibility(rng, &mut job.gang);
        // An infeasible gang must not become feasible with fewer members.
        if rng.random_bool(elastic) && !infeasible.contains(&job.gang.name) {
            draw_elastic(rng, job);
        }
    }
    draw_never_preempting(seed, setup);
    setup.queues.iter_mut().for_each(|queue| draw_turns(rng, queue));
    for (_, model) in &mut setup.pools {
        if rng.random_bool(0.5) {
            model.notice = Span::secs(rng.random_range(10..600));
        }
    }
    if rng.random_bool(0.6) {
        draw_outages(rng, setup, storm_ends);
    }
}

/// The priority of a gang, whether it may be stopped, and what it saves.
fn draw_preemptibility(rng: &mut ChaCha8Rng, gang: &mut GangSpec) {
    gang.priority = [0, 0, 10, 100, -5][rng.random_range(0..5)];
    let grace = match rng.random_range(0..3) {
        0 => Span::ZERO,
        1 => Span::secs(rng.random_range(1..120)),
        _ => Span::mins(rng.random_range(2..20)),
    };
    let checkpoint = Checkpoint {
        signal: rng.random_bool(0.6).then_some(Signal::SigUsr1),
        every: rng.random_bool(0.5).then(|| Span::mins(rng.random_range(0..40))),
        restart: Span::secs(rng.random_range(0..600)),
    };
    let min_runtime =
        if rng.random_bool(0.5) { Span::mins(rng.random_range(0..60)) } else { Span::ZERO };
    gang.disruption = Disruption {
        preemptible: rng.random_bool(0.7),
        min_runtime,
        grace,
        checkpoint: rng.random_bool(0.6).then_some(checkpoint),
        gentle: false,
    };
}

/// Some gangs never preempt; drawn from a stream of their own, so that the rest does not change.
fn draw_never_preempting(seed: u64, setup: &mut Setup) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(NEVER_PREEMPTS_STREAM);
    for job in &mut setup.jobs {
        job.gang.disruption.gentle = rng.random_bool(0.2);
    }
}

/// A gang that can run with fewer members than it was drawn with, and may scale otherwise than it declares.
fn draw_elastic(rng: &mut ChaCha8Rng, job: &mut Job) {
    for role in &mut job.gang.roles {
        role.min = rng.random_range(1..=role.min);
    }
    job.gang.scaling.efficiency = rng.random_range(500..=1_000);
    job.gang.scaling.resize = Span::secs(rng.random_range(0..300));
    job.nature = Nature {
        efficiency: rng.random_bool(0.3).then(|| rng.random_range(450..=1_000)),
        declines: if rng.random_bool(0.3) { rng.random_range(0..=1_000) } else { 0 },
    };
}

fn draw_turns(rng: &mut ChaCha8Rng, queue: &mut QueueSpec) {
    queue.time_slice = rng.random_bool(0.3).then(|| Span::mins(rng.random_range(5..90)));
    queue.reclaim_within = rng.random_bool(0.5).then(|| Span::mins(rng.random_range(0..60)));
    queue.evictions_per_hour = rng.random_bool(0.4).then(|| rng.random_range(0..6));
}

/// A few nodes that exist from the start fail and come back, some of them again and again; some give notice.
fn draw_outages(rng: &mut ChaCha8Rng, setup: &mut Setup, storm_ends: Time) {
    if setup.nodes.is_empty() {
        return;
    }
    for _ in 0..rng.random_range(1..=4) {
        let node = rng.random_range(0..setup.nodes.len());
        let notice =
            if rng.random_bool(0.4) { Span::secs(rng.random_range(1..900)) } else { Span::ZERO };
        for _ in 0..rng.random_range(1..=5) {
            let at = Time(rng.random_range(0..storm_ends.0));
            let lasts = Some(Span::secs(rng.random_range(1..1_800)));
            setup.outages.push(Outage { node, at, notice, lasts });
        }
    }
}
