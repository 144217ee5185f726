//! Gangs that arrive independently: the forecast per hour, and sizes added up over a lead time.

use muster_core::time::{Span, Time};
use muster_forecast::{
    Arrival, CompoundPoisson, Goal, Hourly, Model, Objective, dispersion, forecast,
};

use crate::synthetic::{LEAD, Rng, fit, independent, inputs_at};

fn gangs(nodes_milli: &[u32]) -> Vec<Arrival> {
    nodes_milli.iter().map(|&nodes_milli| Arrival { at: Time::ZERO, nodes_milli }).collect()
}

/// A rate that rises through the weeks with a strong day: the same hour of the days before is always behind.
fn daily(hour: u64) -> f64 {
    let by_day = if (8..18).contains(&(hour % 24)) { 40.0 } else { 4.0 };
    by_day * (1.0 + hour as f64 / 200.0)
}

#[test]
fn growing_season_selects_the_seasonal_model() {
    let hours = 21 * 24;
    let arrivals = independent(hours, 1, 1_000, daily);
    let seasonal = fit(&arrivals, hours, &Goal::default());
    assert_eq!(seasonal.used, Hourly::Seasonal, "{:?}", seasonal.backtest);
    assert!(seasonal.backtest.seasonal.unwrap() < seasonal.backtest.same_hour);
    let at = |hour| seasonal.per_hour(Time::ZERO + Span::hours(hours + hour));
    assert!(at(12) > 4.0 * at(2), "noon {} and night {}", at(12), at(2));
}

#[test]
fn without_a_season_the_same_hour_forecast_is_used() {
    let hours = 21 * 24;
    let kept = (0..5).filter(|&seed| {
        let arrivals = independent(hours, seed, 1_000, |_| 3.0);
        fit(&arrivals, hours, &Goal::default()).used == Hourly::SameHour
    });
    assert!(kept.count() >= 4, "noise is not a season");
}

#[test]
fn independent_arrivals_have_dispersion_one_in_any_season() {
    let hours = 21 * 24;
    let end = Time::ZERO + Span::hours(hours);
    let arrivals = independent(hours, 3, 1_000, daily);
    let even = dispersion(&arrivals, Time::ZERO, end, LEAD);
    assert!((0.8..1.2).contains(&even), "{even}");
    let twice: Vec<Arrival> = arrivals.iter().flat_map(|&arrival| [arrival; 4]).collect();
    assert!(dispersion(&twice, Time::ZERO, end, LEAD) > 3.0, "gangs in fours do");
}

#[test]
fn pool_size_follows_the_season() {
    let hours = 21 * 24;
    let arrivals = independent(hours, 1, 1_000, daily);
    let goal = Goal::default();
    let seasonal = fit(&arrivals, hours, &goal);
    let nodes = |hour| {
        let mut inputs = inputs_at(&arrivals, hours);
        inputs.seasonal = Some(&seasonal);
        inputs.now += Span::hours(hour);
        forecast(&inputs, &goal).expect("enough history")
    };
    assert_eq!(nodes(1).model, Model::Independent(Hourly::Seasonal));
    assert!(nodes(12).now() >= 2 * nodes(2).now(), "{:?} {:?}", nodes(12), nodes(2));
}

#[test]
fn pool_of_eight_never_hits_a_gang_of_nine() {
    let rates = CompoundPoisson::new(&gangs(&[9_000]), 0.1).hit_rates(20);
    assert!(rates[..9].iter().all(|&rate| rate == 0.0), "{rates:?}");
    assert!(rates[9] > 0.9 && rates[17] == rates[9] && rates[18] > rates[9], "{rates:?}");
}

#[test]
fn hit_rates_match_a_simulated_pool() {
    // Gangs of half a node and of three, by chance, 6 per hour: counted, not worked out.
    let mut rng = Rng(17);
    let mut arrivals = independent(24 * 200, 5, 500, |_| 6.0);
    for arrival in &mut arrivals {
        if rng.next_f64() < 0.4 {
            arrival.nodes_milli = 3_000;
        }
    }
    let demand = CompoundPoisson::new(&arrivals, 6.0 * LEAD.as_secs_f64() / 3_600.0);
    let rates = demand.hit_rates(8);
    for (nodes, &rate) in rates.iter().enumerate() {
        let hit = |i: &usize| {
            let within = |j: &usize| arrivals[*i].at.since(arrivals[*j].at) < LEAD;
            let taken: u32 =
                (0..=*i).rev().take_while(within).map(|j| arrivals[j].nodes_milli).sum();
            taken as usize <= nodes * 1_000
        };
        let hits = (0..arrivals.len()).filter(hit).count() as f64 / arrivals.len() as f64;
        assert!((hits - rate).abs() < 0.01, "{nodes} nodes: {hits} counted, {rate} worked out");
    }
}

#[test]
fn gang_that_needs_no_free_node_is_always_hit() {
    let demand = CompoundPoisson::new(&gangs(&[0, 0, 0, 4_000]), 1.0);
    assert!((demand.hit_rates(0)[0] - 0.75).abs() < 1e-9);
    assert_eq!(demand.for_hit_rate(0.7, 100), 0);
    assert_eq!(CompoundPoisson::new(&[], 5.0).for_price(0.1, 100), 0, "and nobody needs none");
}

#[test]
fn price_decides_how_many_whole_gangs_are_covered() {
    let demand = CompoundPoisson::new(&gangs(&[4_000]), 0.5);
    assert_eq!(demand.for_price(1e-6, 100) % 4, 0, "whole gangs only");
    assert!(demand.for_price(1e-6, 100) >= 12);
    assert_eq!(demand.for_price(0.2, 100), 0, "four nodes cost more than half a gang");
}

#[test]
fn many_arrivals_need_their_mean_and_a_margin() {
    let demand = CompoundPoisson::new(&gangs(&[1_000]), 900.0);
    let nodes = demand.for_hit_rate(0.99, 2_000);
    assert!((900..1_100).contains(&nodes), "{nodes}");
}

#[test]
fn too_little_history_reports_the_missing_time() {
    let arrivals = independent(10, 1, 1_000, |_| 5.0);
    let goal = Goal { objective: Objective::HitRate(0.95), ..Goal::default() };
    let missing = forecast(&inputs_at(&arrivals, 10), &goal).unwrap_err().missing;
    assert_eq!(missing, Span::hours(38));
}

#[test]
fn no_arrivals_keep_no_nodes() {
    assert_eq!(muster_forecast::CompoundPoisson::new(&[], 3.0).for_hit_rate(0.99, 64), 0);
}
