//! Well-known scenarios of gang provisioning.

use insta::assert_snapshot;
use muster_core::order::ClaimFailure;
use muster_core::time::Span;
use muster_core::verdict::{Blocker, Verdict};
use muster_testkit::build;

use crate::two_zones::{exact_cloud, job, play, two_zones};

#[test]
fn nothing_starts_with_seven_of_eight_until_the_other_zone_has_eight() {
    let mut setup = two_zones(
        16,
        exact_cloud(&[("a", 8, ClaimFailure::BootFailed), ("a", 9, ClaimFailure::StockOut)]),
    );
    setup.jobs = vec![job(build::within(build::gang("train", 8, 8), "zone"), 0, 600)];
    let (log, sim) = play(setup);
    assert_snapshot!(log[..5].join("\n"), @"
      0 g0 orders 8 in a, holds 0
    211 c7 released
    215 g0 rolled back: ClaimFailed
    215 c8 released
    228 g0 orders 8 in b, holds 0
    ");
    assert!(log.contains(&"  408 g0 starts with 8".to_owned()), "{log:#?}");
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
    let (log, _) = play(setup);
    // The second gang starts at its submission, on nodes the first one could not use.
    assert!(log.contains(&"  240 g1 starts with 6".to_owned()), "{log:#?}");
}

#[test]
fn exactly_the_four_missing_of_eight_nodes_are_claimed() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    let zone = [("topology.kubernetes.io/zone", "a")];
    setup.nodes = (0..4).map(|i| build::node(&format!("n{i}"), 8, &zone)).collect();
    setup.jobs = vec![job(build::gang("train", 8, 8), 0, 600)];
    let (log, sim) = play(setup);
    assert_eq!(log[0], "    0 g0 orders 4 in a, holds 4");
    assert_eq!(sim.accounts().meter().claims(), 4);
}

#[test]
fn two_gangs_at_one_pool_limit_never_block_each_other_for_ever() {
    let mut setup = two_zones(8, exact_cloud(&[]));
    setup.jobs = vec![job(build::gang("one", 6, 8), 0, 300), job(build::gang("two", 6, 8), 0, 300)];
    let (log, _) = play(setup);
    let log = log.join("\n");
    assert_snapshot!(log.lines().filter(|line| !line.contains("released")).collect::<Vec<_>>().join("\n"), @r"
    0 g0 orders 6 in a, holds 0
  180 g0 order complete
  180 g0 starts with 6
  480 g0 ends
  480 g1 starts with 6
  780 g1 ends
    ");
}

#[test]
fn node_without_gpus_never_counts_and_the_deadline_ends_the_order() {
    let mut setup = two_zones(16, exact_cloud(&[("a", 2, ClaimFailure::GpusMissing)]));
    let mut gang = build::gang("train", 2, 8);
    gang.provisioning.timeout = Span::mins(10);
    setup.jobs = vec![job(gang, 0, 60)];
    let (log, _) = play(setup);
    assert_snapshot!(log[..4].join("\n"), @"
      0 g0 orders 2 in a, holds 0
    600 g0 rolled back: DeadlinePassed
    600 g0 orders 1 in a, holds 1
    737 c1 released
    ");
}

#[test]
fn order_moves_on_within_seconds_after_a_stock_out() {
    let mut setup = two_zones(16, exact_cloud(&[("a", 1, ClaimFailure::StockOut)]));
    setup.jobs = vec![job(build::gang("train", 4, 8), 0, 60)];
    let (log, _) = play(setup);
    assert_eq!(log[1], "    4 g0 rolled back: ClaimFailed");
    assert!(log.iter().any(|line| line.contains("4 g0 orders 4 in b")), "{log:#?}");
}

#[test]
fn budget_that_is_too_small_is_reported() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    setup.pools[0].0.limits.hourly_spend = muster_core::money::Money::from_units(30.0);
    setup.jobs = vec![job(build::gang("train", 4, 8), 0, 60)];
    let (log, sim) = play(setup);
    assert!(log.is_empty(), "{log:#?}");
    let never = Blocker::NeverEnough { role: 0, most: 3, needs: 4, offered: true };
    let (_, verdict) = &sim.last_plan().verdicts[0];
    let Verdict::Impossible { blockers } = verdict else { panic!("{verdict:?}") };
    assert_eq!(blockers[0], never);
    assert!(matches!(blockers[1], Blocker::Budget { .. }), "{blockers:?}");
}

#[test]
fn idle_nodes_are_released_after_exactly_their_idle_time() {
    let mut setup = two_zones(16, exact_cloud(&[]));
    setup.jobs = vec![job(build::gang("train", 1, 8), 0, 60)];
    let (log, _) = play(setup);
    assert_eq!(log.last().map(String::as_str), Some("  840 c0 released"), "{log:#?}");
}

#[test]
fn same_seed_gives_the_same_facts() {
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
