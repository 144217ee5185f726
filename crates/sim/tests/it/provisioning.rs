//! Gang provisioning end to end, against clouds that refuse, delay and fail: every responsibility of the provisioner, and
//! the typical course of an order.

use std::sync::Arc;

use insta::assert_snapshot;
use muster_core::id::PoolIdx;
use muster_core::money::Money;
use muster_core::order::ClaimFailure;
use muster_core::pool::OfferingSpec;
use muster_core::time::{Span, Time};
use muster_core::verdict::{Blocker, Verdict};
use muster_plan::Policy;
use muster_sim::cloud::{Availability, CloudModel};
use muster_sim::{Sim, SimOptions};
use muster_testkit::build;

use crate::fact_log::{in_one_zone, one_gpu, play, pool, setup};
use crate::two_zones::{exact_cloud, job};

#[test]
fn nothing_starts_when_one_of_eight_fails_and_the_order_moves_elsewhere() {
    let mut stage = setup(pool(), exact_cloud(&[("a", 8, ClaimFailure::BootFailed)]));
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy { top_ups: 0, ..Policy::default() }, 2);
    assert_snapshot!(log.text(), @"
       0 train orders 8 in a, holds 0
     211 train rolled back: ClaimFailed
     211 train orders 8 in b, holds 0
     211 released
     391 train starts with 8
     811 released x7
     991 ends
    1591 released x8
    ");
    let outcome = log.sim.accounts().outcomes()[0];
    assert_eq!((outcome.partial_gpu_ms, outcome.restarts), (0, 0));
    assert!(log.sim.world().claims().is_empty(), "nothing is left behind");
}

#[test]
fn failed_claim_alone_is_replaced_where_that_is_cheaper() {
    let mut stage = setup(pool(), exact_cloud(&[("a", 8, ClaimFailure::BootFailed)]));
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_snapshot!(log.text(), @"
       0 train orders 8 in a, holds 0
     211 topped up in a
     211 released
     391 train starts with 8
     991 ends
    1591 released x8
    ");
    assert_eq!(log.sim.accounts().outcomes()[0].partial_gpu_ms, 0);
    assert_eq!(log.sim.accounts().meter().claims(), 9);
}

#[test]
fn nodes_of_a_failed_order_are_reused_when_the_gang_may_run_anywhere() {
    let mut stage = setup(pool(), exact_cloud(&[("a", 8, ClaimFailure::BootFailed)]));
    stage.jobs = vec![job(build::gang("train", 8, 1), 0, 600)];
    let log = play(stage, Policy { top_ups: 0, ..Policy::default() }, 2);
    assert_snapshot!(log.text(), @"
       0 train orders 8 in a, holds 0
     211 train rolled back: ClaimFailed
     211 train orders 1 in b, holds 7
     211 released
     391 train starts with 8
     991 ends
    1591 released x8
    ");
    assert_eq!(log.sim.accounts().meter().claims(), 9, "only the one that failed is bought again");
}

#[test]
fn exactly_the_four_missing_of_eight_nodes_are_claimed() {
    let mut stage = setup(pool(), exact_cloud(&[]));
    let zone = [("topology.kubernetes.io/zone", "a")];
    stage.nodes = (0..4).map(|i| build::node(&format!("n{i}"), 1, &zone)).collect();
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_eq!(log.lines[0], "    0 train orders 4 in a, holds 4");
    assert_eq!(log.sim.accounts().meter().claims(), 4);
    assert_eq!(log.waited(0), Some(180));
}

#[test]
fn two_gangs_at_one_pool_limit_start_one_after_the_other() {
    let mut racing = pool();
    racing.limits.nodes = Some(10);
    let mut stage = setup(racing, exact_cloud(&[]));
    stage.jobs = vec![job(in_one_zone("one", 6), 0, 300), job(in_one_zone("two", 6), 0, 300)];
    let log = play(stage, Policy::default(), 2);
    assert_snapshot!(log.text(), @"
       0 one orders 6 in a, holds 0
     180 one starts with 6
     480 ends
     480 two starts with 6
     780 ends
    1380 released x6
    ");
    assert_eq!(log.sim.unfinished(), 0);
}

#[test]
fn many_gangs_at_one_pool_limit_are_all_served() {
    let mut racing = pool();
    racing.limits.gpus = Some(9);
    let model = CloudModel { boot_failed: 0.1, gpus_missing: 0.05, ..CloudModel::default() };
    let mut stage = setup(racing, model);
    stage.jobs = (0..12).map(|i| job(in_one_zone(&format!("g{i}"), 2 + i % 7), 0, 300)).collect();
    let log = play(stage, Policy::default(), 24);
    assert_eq!(log.sim.unfinished(), 0, "{}", log.text());
    assert!(log.sim.accounts().outcomes().iter().all(|job| job.partial_gpu_ms == 0));
}

#[test]
fn budget_that_is_too_small_is_reported_and_nothing_is_bought() {
    let mut poor = pool();
    poor.limits.hourly_spend = Money::from_units(15.9);
    let mut stage = setup(poor, exact_cloud(&[]));
    stage.jobs = vec![job(build::gang("train", 8, 1), 0, 60)];
    let log = play(stage, Policy::default(), 1);
    let never = Blocker::NeverEnough { role: 0, most: 7, needs: 8, offered: true };
    let limit = Money::from_units(15.9).expect("an amount");
    let budget = Blocker::Budget { pool: PoolIdx(0), limit, left: limit };
    let verdict = Verdict::Impossible { blockers: [never, budget].into_iter().collect() };
    assert_eq!(log.sim.explain().verdicts[0].1, verdict);
    assert_eq!(log.sim.accounts().meter().claims(), 0);
}

#[test]
fn spent_budget_is_reported_and_waited_for() {
    let mut poor = pool();
    poor.limits.hourly_spend = Money::from_units(16.0);
    let mut stage = setup(poor, exact_cloud(&[]));
    stage.jobs =
        vec![job(build::gang("one", 6, 1), 0, 1_200), job(build::gang("two", 4, 1), 60, 60)];
    let mut sim = Sim::new(stage, Policy::default(), SimOptions::default()).expect("a stage");
    while sim.next_at().is_some_and(|at| at <= Time::ZERO + Span::mins(10)) {
        sim.step();
    }
    let plan = sim.explain();
    let Verdict::Waiting { blockers, .. } = &plan.verdicts[1].1 else {
        panic!("it waits: {plan:?}");
    };
    assert!(blockers.contains(&Blocker::PoolsFull { room: 2 }), "{blockers:?}");
    sim.run(Time::ZERO + Span::hours(2));
    assert_eq!(sim.unfinished(), 0);
}

#[test]
fn capacity_of_all_roles_is_computed_together() {
    let mut large = build::pool("gpu", vec![build::offering("a", 20.0)]);
    let cpu = OfferingSpec {
        instance_type: "cpu".into(),
        gpus: 0,
        gpu: None,
        ..build::offering("a", 1.0)
    };
    large.offerings.push(cpu);
    let mut stage = setup(large, exact_cloud(&[]));
    // 4 x 8 GPUs fill four nodes, 2 x 4 share a fifth, and the driver needs all cores of a sixth.
    let mut gang = build::gang("train", 4, 8);
    gang.roles.push(build::role("eval", 2, 4));
    let mut driver = build::role("driver", 1, 0);
    driver.request.amounts = build::amounts(100, 10);
    gang.roles.push(driver);
    stage.jobs = vec![job(build::within(gang, "zone"), 0, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_snapshot!(log.text(), @"
       0 train orders 6 in a, holds 0
     180 train starts with 7
     780 ends
    1380 released x6
    ");
}

#[test]
fn gang_that_requires_a_zone_gets_it_although_another_is_cheaper() {
    let mut tight = pool();
    tight.offerings[0].max = Some(7);
    let mut stage = setup(tight, exact_cloud(&[]));
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_eq!(log.lines[..2], ["    0 train orders 8 in b, holds 0", "  180 train starts with 8"]);
}

#[test]
fn node_that_never_shows_its_gpus_is_released() {
    let mut stage = setup(pool(), exact_cloud(&[("a", 4, ClaimFailure::GpusMissing)]));
    stage.jobs = vec![job(in_one_zone("train", 4), 0, 600)];
    let log = play(stage, Policy::default(), 3);
    assert_snapshot!(log.text(), @"
       0 train orders 4 in a, holds 0
     737 train rolled back: Overdue
     737 train orders 4 in b, holds 0
     737 released
     917 train starts with 4
    1337 released x3
    1517 ends
    2117 released x4
    ");
    assert!(log.sim.world().claims().is_empty(), "nothing is left behind");
}

#[test]
fn throttled_claims_are_retried_until_all_nodes_are_ready() {
    let mut stage = setup(pool(), CloudModel { throttled: 0.5, ..exact_cloud(&[]) });
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_eq!(log.sim.unfinished(), 0, "{}", log.text());
    assert!(log.times("asked again") > 0, "{}", log.text());
    assert_eq!(log.sim.accounts().outcomes()[0].partial_gpu_ms, 0);
}

#[test]
fn claims_are_not_retried_for_ever_at_a_provider_that_throttles() {
    let mut warm = pool();
    warm.ahead.warm = 1;
    let mut stage = setup(warm, CloudModel { throttled: 1.0, ..exact_cloud(&[]) });
    stage.jobs = vec![job(in_one_zone("train", 2), 0, 600)];
    let log = play(stage, Policy::default(), 12);
    assert_eq!(log.times("starts"), 0);
    // A claim is tried five times; its offering then backs off for minutes.
    let asked = log.times("asked again");
    assert!(asked < 12 * 60 * 2, "{asked} times in twelve hours");
}

#[test]
fn outage_of_one_region_sends_the_gang_to_the_other() {
    let mut regions = build::pool("gpu", Vec::new());
    for (zone, region, price) in [("a", "x", 2.0), ("b", "x", 2.1), ("c", "y", 3.0)] {
        regions.offerings.push(OfferingSpec { region: region.into(), ..one_gpu(zone, price) });
    }
    let mut model = exact_cloud(&[]);
    let nothing = Arc::new(Availability::new(Span::hours(24), vec![0]).expect("a record"));
    model.recorded = ["a", "b"].map(|zone| (zone.into(), nothing.clone())).into_iter().collect();
    let mut stage = setup(regions, model);
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600), job(in_one_zone("next", 8), 60, 600)];
    let log = play(stage, Policy::default(), 2);
    assert_snapshot!(log.text(), @"
       0 train orders 8 in a, holds 0
       4 train rolled back: ClaimFailed
       4 train orders 8 in b, holds 0
       4 released x8
       8 train rolled back: ClaimFailed
       8 train orders 8 in c, holds 0
       8 released x8
      60 next orders 8 in c, holds 0
     188 train starts with 8
     240 next starts with 8
     788 ends
     840 ends
    1388 released x8
    1440 released x8
    ");
}

#[test]
fn region_is_used_again_after_its_outage() {
    let mut model = exact_cloud(&[]);
    let back = Availability::new(Span::hours(2), vec![0, 99, 99, 99]).expect("a record");
    model.recorded.insert("a".into(), Arc::new(back));
    let mut stage = setup(build::pool("gpu", vec![one_gpu("a", 2.0)]), model);
    stage.jobs = vec![job(in_one_zone("train", 8), 0, 600)];
    let log = play(stage, Policy::default(), 6);
    assert_eq!(log.sim.unfinished(), 0, "{}", log.text());
    // It is tried now and then, and soon after it is back.
    assert!(log.waited(0) < Some(2 * 3_600 + 15 * 60), "{:?}", log.waited(0));
    assert!(log.times("orders") < 60, "{}", log.times("orders"));
}
