//! Gang provisioning as its users know it, one scenario each.

use insta::assert_snapshot;
use muster_core::order::ClaimFailure;
use muster_core::time::Span;
use muster_core::verdict::{Blocker, Verdict};
use muster_testkit::build;

use crate::stage::{exact_cloud, job, play, two_zones};

#[test]
fn eight_are_asked_seven_come_nothing_starts_until_the_other_zone_has_eight() {
    let mut setup = two_zones(
        16,
        exact_cloud(&[("a", 8, ClaimFailure::BootFailed), ("a", 9, ClaimFailure::StockOut)]),
    );
    setup.jobs = vec![job(build::within(build::gang("train", 8, 8), "zone"), 0, 600)];
    let (told, sim) = play(setup);
    assert_snapshot!(told[..5].join("\n"), @"
      0 g0 orders 8 in a, holds 0
    211 c7 released
    215 g0 rolled back: ClaimFailed
    215 c8 released
    228 g0 orders 8 in b, holds 0
    ");
    assert!(told.contains(&"  408 g0 starts with 8".to_owned()), "{told:#?}");
    assert_eq!(sim.accounts().outcomes()[0].partial_gpu_ms, 0);
}

#[test]
fn ready_nodes_of_a_failed_order_go_to_the_next_gang_that_fits() {
    let mut setup = two_zones(
        16,
        exact_cloud(&[("a", 8, ClaimFailure::BootFailed), ("a", 9, ClaimFailure::StockOut)]),
    );
    setup.jobs = vec![
        job(build::within(build::gang("train", 8, 8), "zone"), 0, 600),
        job(build::gang("eval", 6, 8), 240, 60),
    ];
    let (told, _) = play(setup);
    // The second gang starts the moment it comes, on nodes the first one could not use.
    assert!(told.contains(&"  240 g1 starts with 6".to_owned()), "{told:#?}");
}

#[test]
fn four_of_eight_are_there_so_exactly_four_are_claimed() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    let zone = [("topology.kubernetes.io/zone", "a")];
    setup.nodes = (0..4).map(|i| build::node(&format!("n{i}"), 8, &zone)).collect();
    setup.jobs = vec![job(build::gang("train", 8, 8), 0, 600)];
    let (told, sim) = play(setup);
    assert_eq!(told[0], "    0 g0 orders 4 in a, holds 4");
    assert_eq!(sim.accounts().meter().claims(), 4);
}

#[test]
fn two_gangs_race_for_one_pool_limit_and_neither_blocks_the_other_for_ever() {
    let mut setup = two_zones(8, exact_cloud(&[]));
    setup.jobs = vec![job(build::gang("one", 6, 8), 0, 300), job(build::gang("two", 6, 8), 0, 300)];
    let (told, _) = play(setup);
    let told = told.join("\n");
    assert_snapshot!(told.lines().filter(|line| !line.contains("released")).collect::<Vec<_>>().join("\n"), @r"
    0 g0 orders 6 in a, holds 0
  180 g0 order complete
  180 g0 starts with 6
  480 g0 ends
  480 g1 starts with 6
  780 g1 ends
    ");
}

#[test]
fn a_node_without_its_gpus_never_counts_and_the_deadline_ends_the_order() {
    let mut setup = two_zones(16, exact_cloud(&[("a", 2, ClaimFailure::GpusMissing)]));
    let mut gang = build::gang("train", 2, 8);
    gang.provisioning.timeout = Span::mins(10);
    setup.jobs = vec![job(gang, 0, 60)];
    let (told, _) = play(setup);
    assert_snapshot!(told[..4].join("\n"), @"
      0 g0 orders 2 in a, holds 0
    600 g0 rolled back: DeadlinePassed
    600 g0 orders 1 in a, holds 1
    737 c1 released
    ");
}

#[test]
fn a_stock_out_sends_the_order_on_within_seconds() {
    let mut setup = two_zones(16, exact_cloud(&[("a", 1, ClaimFailure::StockOut)]));
    setup.jobs = vec![job(build::gang("train", 4, 8), 0, 60)];
    let (told, _) = play(setup);
    assert_eq!(told[1], "    4 g0 rolled back: ClaimFailed");
    assert!(told.iter().any(|line| line.contains("4 g0 orders 4 in b")), "{told:#?}");
}

#[test]
fn a_budget_too_small_is_said_so() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    setup.pools[0].0.limits.hourly_spend = muster_core::money::Money::from_units(30.0);
    setup.jobs = vec![job(build::gang("train", 4, 8), 0, 60)];
    let (told, sim) = play(setup);
    assert!(told.is_empty(), "{told:#?}");
    let never = Blocker::NeverEnough { role: 0, most: 3, needs: 4, offered: true };
    let (_, verdict) = &sim.last_plan().verdicts[0];
    let Verdict::Impossible { blockers } = verdict else { panic!("{verdict:?}") };
    assert_eq!(blockers[0], never);
    assert!(matches!(blockers[1], Blocker::Budget { .. }), "{blockers:?}");
}

#[test]
fn idle_nodes_are_given_back_after_exactly_their_idle_time() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    setup.jobs = vec![job(build::gang("train", 1, 8), 0, 60)];
    let (told, _) = play(setup);
    assert_eq!(told.last().map(String::as_str), Some("  840 c0 released"), "{told:#?}");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let stage = || {
        let mut setup =
            two_zones(12, muster_sim::cloud::CloudModel { boot_failed: 0.1, ..Default::default() });
        setup.jobs = (0..12)
            .map(|i| job(build::gang(&format!("g{i}"), 1 + i % 5, 8), 30 * u64::from(i), 400))
            .collect();
        setup
    };
    assert_eq!(play(stage()).0, play(stage()).0);
}
