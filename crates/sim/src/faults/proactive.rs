//! Draws the proactive capacity of pools, and random forecasts.
//!
//! It has random numbers of its own, so that a scenario without it does not change.

use muster_core::ahead::{Ahead, Buffer, Consolidate, ForecastSpec, Patience, Schedule};
use muster_core::time::{Span, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::{Setup, SimEvent};

/// Their random stream.
const STREAM: u64 = 2;

/// Gives the pools of half of all scenarios targets, maximum node ages and short timeouts, and lets some gangs be moved.
pub(crate) fn draw(
    seed: u64,
    setup: &mut Setup,
    faults: &mut Vec<(Time, SimEvent)>,
    storm_ends: Time,
) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    if rng.random_bool(0.5) {
        return;
    }
    setup.epoch = rng.random_range(1_700_000_000_000..1_800_000_000_000);
    for at in 0..setup.pools.len() {
        let pool = &mut setup.pools[at].0;
        pool.ahead = draw_ahead(rng);
        pool.consolidate = [Consolidate::WhenEmpty, Consolidate::WhenUnderused][at % 2];
        pool.expire_after = rng.random_bool(0.3).then(|| Span::mins(rng.random_range(60..600)));
        if rng.random_bool(0.4) {
            let mut stage = || Span::mins(rng.random_range(3..15));
            pool.patience = Patience { launch: stage(), register: stage(), gpus: stage() };
        }
        for offering in &mut pool.offerings {
            let start = rng.random_range(10..120);
            offering.start_time = rng.random_bool(0.7).then_some(Span::secs(start));
        }
        for _ in 0..rng.random_range(0..12) {
            let when = Time(rng.random_range(0..storm_ends.0));
            faults.push((when, SimEvent::Outlook(at as u16, rng.random_range(0..6))));
        }
    }
    for job in &mut setup.jobs {
        job.gang.disruption.preemptible = rng.random_bool(0.5);
        job.gang.disruption.min_runtime = Span::mins(rng.random_range(1..30));
    }
}

fn draw_ahead(rng: &mut ChaCha8Rng) -> Ahead {
    let buffer = match rng.random_range(0..3) {
        0 => Some(Buffer::Nodes(rng.random_range(0..4))),
        1 => Some(Buffer::Permille(rng.random_range(0..500))),
        _ => None,
    };
    let schedule = Schedule {
        cron: format!("{} */{} * * *", rng.random_range(0..60), rng.random_range(1..12)).into(),
        timezone: ["UTC", "Europe/Berlin", "America/New_York"][rng.random_range(0..3)].into(),
        duration: Span::mins(rng.random_range(1..300)),
        nodes: rng.random_range(1..8),
    };
    let forecast = ForecastSpec {
        max_nodes: rng.random_bool(0.5).then(|| rng.random_range(1..6)),
        only_tell: rng.random_bool(0.2),
        ..ForecastSpec::default()
    };
    Ahead {
        warm: rng.random_range(0..4),
        stopped: if rng.random_bool(0.4) { rng.random_range(1..4) } else { 0 },
        spare: if rng.random_bool(0.5) { rng.random_range(0..500) } else { 0 },
        buffer,
        schedules: if rng.random_bool(0.4) { vec![schedule] } else { Vec::new() },
        forecast: rng.random_bool(0.6).then_some(forecast),
    }
}
