//! Gangs that arrive in bursts: what the burst model learns.

use muster_core::time::{Span, Time};
use muster_forecast::{Arrival, BurstModel, Forecast, Goal, Model, Objective, forecast};
use proptest::prelude::*;

use crate::synthetic::{Rng, burst_model, inputs_at};

/// Sessions that start at random, about every other day: a burst every 20 minutes for 5 hours, each of `gangs`
/// gangs of `nodes` nodes.
fn sessions(days: u64, seed: u64, gangs: usize, nodes: u32) -> Vec<Arrival> {
    let mut rng = Rng(seed);
    let mut arrivals = Vec::new();
    let (mut at, end) = (Time::ZERO + Span::hours(3), Time::ZERO + Span::hours(days * 24));
    while at < end {
        for burst in 0..15 {
            let at = at + Span::mins(burst * 20);
            arrivals.extend(vec![Arrival { at, nodes_milli: nodes * 1_000 }; gangs]);
        }
        at += Span::from_secs_f64(36_000.0 + rng.next_f64() * 200_000.0);
    }
    arrivals.retain(|arrival| arrival.at < end);
    arrivals
}

fn at_hit_rate(rate: f64) -> Goal {
    Goal { objective: Objective::HitRate(rate), ..Goal::default() }
}

/// The forecast at a time, from earlier arrivals only.
fn forecast_at(arrivals: &[Arrival], now: Time, goal: &Goal) -> Forecast {
    let mut inputs = inputs_at(arrivals, 0);
    inputs.now = now;
    forecast(&inputs, goal).expect("enough history")
}

#[test]
fn nodes_are_kept_during_a_session_and_not_after_it() {
    let arrivals = sessions(30, 7, 3, 2);
    let goal = at_hit_rate(0.9);
    let last = arrivals.last().expect("some").at;
    let busy = forecast_at(&arrivals, last + Span::mins(5), &goal);
    assert_eq!((busy.model, busy.now()), (Model::Bursts, 6), "three gangs of two nodes, together");
    let quiet = forecast_at(&arrivals, last + Span::hours(9), &goal);
    assert_eq!(quiet.now(), 0, "the session is over");
}

#[test]
fn pool_size_covers_whole_gangs_or_none() {
    let arrivals = sessions(30, 11, 1, 9);
    let doubled: Vec<Arrival> = arrivals.iter().flat_map(|&arrival| [arrival; 2]).collect();
    let burst_model =
        burst_model(&doubled, doubled.last().expect("some").at + Span::mins(5), &Goal::default());
    let sizes: Vec<u32> = (-70..0)
        .map(|e| burst_model.size_at_price(burst_model.until(), 10f64.powf(f64::from(e) / 10.0)))
        .collect();
    assert!(sizes.iter().all(|&size| size == 0 || size == 9 || size >= 18), "{sizes:?}");
    assert!(sizes.contains(&0) && sizes.iter().any(|&size| size >= 18), "{sizes:?}");
}

#[test]
fn forecast_ignores_later_arrivals() {
    let arrivals = sessions(30, 5, 3, 2);
    let now = Time::ZERO + Span::hours(20 * 24);
    let past: Vec<Arrival> = arrivals.iter().copied().filter(|a| a.at <= now).collect();
    let goal = at_hit_rate(0.9);
    assert_eq!(forecast_at(&arrivals, now, &goal), forecast_at(&past, now, &goal));
}

#[test]
fn most_gangs_are_hit_with_fewer_idle_nodes_than_a_static_pool() {
    let arrivals = sessions(60, 3, 3, 2);
    let goal = at_hit_rate(0.9);
    let (mut learned, mut given) =
        (BurstModel::new(Time::ZERO, crate::synthetic::LEAD, goal.step, Span::hours(24)), 0);
    let (mut idle, mut steps, mut hits, mut gangs) = (0, 0, 0, 0);
    let mut now = Time::ZERO;
    let mut target = 0;
    while now < Time::ZERO + Span::hours(60 * 24) {
        let came = arrivals.partition_point(|arrival| arrival.at <= now);
        if now > Time::ZERO + Span::hours(7 * 24) {
            // Three gangs of two nodes: a pool of six hits them all, a pool of five two of them.
            hits += (came - given).min(target as usize / 2);
            gangs += came - given;
            idle += target;
            steps += 1;
        }
        learned.learn(&arrivals[given..came], now);
        given = came;
        let mut inputs = inputs_at(&arrivals, 0);
        (inputs.now, inputs.burst_model) = (now, Some(&learned));
        target = forecast(&inputs, &goal).map_or(0, |forecast| forecast.now());
        now += goal.step;
    }
    let hit_rate = hits as f64 / gangs as f64;
    assert!(hit_rate > 0.85, "{hit_rate}");
    assert!(f64::from(idle) < 0.57 * 6.0 * f64::from(steps), "{idle} of {}", 6 * steps);
}

#[test]
fn higher_cost_of_waiting_keeps_more_nodes_free() {
    let arrivals = sessions(30, 7, 3, 2);
    let now = arrivals.last().expect("some").at + Span::mins(5);
    let nodes = |waiting_hour| {
        let objective = Objective::Cost { waiting_hour, node_hour: 10.0 };
        forecast_at(&arrivals, now, &Goal { objective, ..Goal::default() }).now()
    };
    let sizes = [1.0, 10.0, 100.0, 1_000.0, 1e6].map(nodes);
    assert!(sizes.is_sorted() && sizes[0] == 0 && sizes[4] >= 6, "{sizes:?}");
}

#[test]
fn max_nodes_bounds_the_forecast() {
    let arrivals = sessions(30, 7, 3, 2);
    let now = arrivals.last().expect("some").at + Span::mins(5);
    let goal = Goal { max_nodes: Some(3), ..at_hit_rate(0.99) };
    assert!(forecast_at(&arrivals, now, &goal).nodes.iter().all(|&nodes| nodes <= 3));
}

#[test]
fn burst_model_survives_serialization() {
    let arrivals = sessions(10, 7, 3, 2);
    let learned = burst_model(&arrivals, Time::ZERO + Span::hours(240), &Goal::default());
    let text = serde_json::to_string(&learned).expect("json");
    let read: BurstModel = serde_json::from_str(&text).expect("a burst_model");
    assert_eq!(read.until(), learned.until());
    for rate in [0.5, 0.8, 0.9, 0.95, 0.99] {
        let size = |burst_model: &BurstModel| {
            burst_model.size_at_price(burst_model.until(), burst_model.price_for(rate))
        };
        assert_eq!(size(&read), size(&learned), "at {rate}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn incremental_learning_equals_learning_at_once(
        mut secs in prop::collection::vec((0u64..400_000, 0u32..40_000), 0..300),
        cuts in prop::collection::vec(0u64..400_000, 0..20),
    ) {
        secs.sort_unstable();
        let arrivals: Vec<Arrival> = secs.iter()
            .map(|&(at, nodes_milli)| Arrival { at: Time::ZERO + Span::secs(at), nodes_milli })
            .collect();
        let (goal, end) = (Goal::default(), Time::ZERO + Span::secs(400_000));
        let at_once = burst_model(&arrivals, end, &goal);
        let mut bit_by_bit = burst_model(&[], Time::ZERO, &goal);
        let mut given = 0;
        let mut cuts: Vec<Time> = cuts.iter().map(|&cut| Time::ZERO + Span::secs(cut)).collect();
        cuts.sort_unstable();
        for now in cuts.into_iter().chain([end]) {
            let came = arrivals.partition_point(|arrival| arrival.at <= now);
            bit_by_bit.learn(&arrivals[given..came], now);
            given = came;
        }
        prop_assert_eq!(at_once, bit_by_bit);
    }

    #[test]
    fn higher_hit_rate_never_keeps_fewer_nodes(
        mut secs in prop::collection::vec((0u64..800_000, 0u32..40_000), 1..300),
        rate in 0.5f64..0.98,
    ) {
        secs.sort_unstable();
        let arrivals: Vec<Arrival> = secs.iter()
            .map(|&(at, nodes_milli)| Arrival { at: Time::ZERO + Span::secs(at), nodes_milli })
            .collect();
        let learned = burst_model(&arrivals, Time::ZERO + Span::secs(800_000), &Goal::default());
        let size = |rate| learned.size_at_price(learned.until(), learned.price_for(rate));
        prop_assert!(size(rate + 0.02) >= size(rate));
    }
}
