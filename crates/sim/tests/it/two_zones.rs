//! A fixture for scenarios: a pool in two zones, and facts as short lines.

use std::cell::RefCell;
use std::rc::Rc;

use muster_core::gang::GangSpec;
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolLimits;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_core::{Fact, World};
use muster_plan::Policy;
use muster_sim::cloud::{CloudModel, Scripted};
use muster_sim::{Job, Setup, Sim, SimOptions};
use muster_testkit::build;

/// A cloud whose machines take exactly their boot time, with these scripted failures.
pub(crate) fn exact_cloud(script: &[(&str, u32, ClaimFailure)]) -> CloudModel {
    let line = |(zone, claim, fails): &(&str, u32, ClaimFailure)| Scripted {
        zone: (*zone).into(),
        claim: *claim,
        fails: *fails,
    };
    CloudModel { sigma: 0.0, script: script.iter().map(line).collect(), ..CloudModel::default() }
}

/// Zones `a` (10 per hour) and `b` (12 per hour) with 8-GPU nodes that boot in three minutes.
pub(crate) fn two_zones(nodes: u32, model: CloudModel) -> Setup {
    let mut pool = build::pool("gpu", vec![build::offering("a", 10.0), build::offering("b", 12.0)]);
    pool.limits = PoolLimits { nodes: Some(nodes), ..PoolLimits::default() };
    Setup {
        queues: vec![QueueSpec::open("default")],
        pools: vec![(pool, model)],
        ..Setup::default()
    }
}

/// A job of one gang.
pub(crate) fn job(gang: GangSpec, submit_s: u64, run_s: u64) -> Job {
    Job::new(gang, Time::ZERO + Span::secs(submit_s), Span::secs(run_s))
}

/// Runs to the end with every promise checked; returns the facts as lines.
pub(crate) fn play(setup: Setup) -> (Vec<String>, Sim) {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let mut sim = Sim::new(setup, Policy::default(), options).expect("a well-formed stage");
    let told = Rc::new(RefCell::new(Vec::new()));
    let lines = told.clone();
    sim.watch(Box::new(move |now, world, fact| lines.borrow_mut().extend(tell(now, world, fact))));
    sim.run(Time::ZERO + Span::hours(48));
    assert_eq!(sim.violations(), [], "promises are kept");
    drop(sim.unwatch());
    (Rc::try_unwrap(told).expect("the watcher is gone").into_inner(), sim)
}

/// The facts a scenario is about, a line each.
fn tell(now: Time, world: &World, fact: &Fact) -> Option<String> {
    let what = match fact {
        Fact::OrderPlaced { gang, claims, holds, .. } => {
            let zone = &world.offering(claims[0].1).spec.zone;
            format!("{gang:?} orders {} in {zone}, holds {}", claims.len(), holds.len())
        }
        Fact::OrderRolledBack { gang, reason, .. } => {
            let why = format!("{reason:?}");
            format!("{gang:?} rolled back: {}", why.split('(').next().unwrap_or_default())
        }
        Fact::OrderCompleted { gang, .. } => format!("{gang:?} order complete"),
        Fact::ClaimReleased { claim } => format!("{claim:?} released"),
        Fact::GangStarted { gang } => {
            format!("{gang:?} starts with {}", world.gang(*gang).map_or(0, |gang| gang.seats.len()))
        }
        Fact::GangStopped { gang, .. } => format!("{gang:?} stopped whole"),
        Fact::GangEnded { gang } => format!("{gang:?} ends"),
        Fact::GangRefused { why, .. } => format!("refused: {why}"),
        _ => return None,
    };
    Some(format!("{:>5} {what}", now.0 / 1_000))
}
