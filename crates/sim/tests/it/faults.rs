//! Random worlds keep every promise, and a planted bug against each promise is noticed.

use muster_sim::faults::{Sabotage, Verified, run_seed};
use muster_testkit::Promise;

/// A few here, in debug; `make test` runs hundreds in release, and anybody can run ten thousand.
const SEEDS: u64 = 25;

#[test]
fn no_promise_is_broken_under_random_faults() {
    let all: Vec<_> = (0..SEEDS).map(|seed| run_seed(seed, None, None)).collect();
    for Verified { seed, violations, .. } in &all {
        assert!(
            violations.is_empty(),
            "replay with: cargo xtask faults --seed {seed}\n{violations:#?}"
        );
    }
    // And the worlds were worth it.
    assert!(all.iter().map(|seed| seed.rollbacks).sum::<u64>() > 50, "orders fail");
    assert!(all.iter().map(|seed| seed.restarts).sum::<u64>() > 2, "gangs lose nodes");
    assert!(all.iter().map(|seed| seed.disruptions.evictions()).sum::<u64>() > 20, "some make way");
    assert!(
        all.iter().map(|seed| seed.disruptions.resizes()).sum::<u64>() > 20,
        "some change size"
    );
    assert!(all.iter().map(|seed| seed.disruptions.notices).sum::<u64>() > 5, "some are warned");
    assert!(all.iter().any(|seed| seed.nodes > 80), "some worlds are large");
    assert!(all.iter().all(|seed| seed.nodes <= 200), "none is larger than promised");
}

/// Seeds that once broke something, and what.
const MENDED: [(u64, &str); 5] = [
    (46, "a pool that keeps its nodes was said to leak them"),
    (144, "a gang waited for ever for room that kept nodes of another zone had"),
    (511, "nodes kept for members that a gang was to get were said to be idle"),
    (3215, "a gang gave up its order for room that a limit did not leave it"),
    (6044, "what would help the late was worked out with nodes that come taken for others"),
];

#[test]
fn what_once_broke_is_mended() {
    for (seed, what) in MENDED {
        let violations = run_seed(seed, None, None).violations;
        assert!(violations.is_empty(), "seed {seed}, {what}: {violations:#?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 17] {
        let (once, again) = (run_seed(seed, None, None), run_seed(seed, None, None));
        assert_eq!((once.steps, once.rollbacks), (again.steps, again.rollbacks), "seed {seed}");
    }
}

/// Plants a bug and expects it to be noticed as the promise it breaks, within a few seeds.
fn is_noticed(promise: Promise) {
    bug_is_noticed(Sabotage::Against(promise), "");
}

/// Plants a bug and expects it to be noticed in these words, within a few seeds.
fn bug_is_noticed(bug: Sabotage, words: &str) {
    let noticed = (0..400).any(|seed| {
        let found = run_seed(seed, Some(bug), None).violations;
        found.iter().any(|broken| broken.promise == bug.promise() && broken.what.contains(words))
    });
    assert!(noticed, "the planted bug {} went unnoticed", bug.name());
}

#[test]
fn a_host_that_starts_one_member_too_few_is_noticed() {
    is_noticed(Promise::NoPartialStart);
}

#[test]
fn a_host_that_seats_two_members_on_one_device_is_noticed() {
    is_noticed(Promise::NoOvercommit);
}

#[test]
fn a_host_that_forgets_to_give_nodes_back_is_noticed() {
    is_noticed(Promise::NoLeak);
}

#[test]
fn a_host_that_swallows_rollbacks_is_noticed() {
    is_noticed(Promise::AtomicRollback);
}

#[test]
fn an_order_that_never_expires_is_noticed() {
    is_noticed(Promise::NoHoldAndWait);
}

#[test]
fn a_planner_that_lets_others_overtake_is_noticed() {
    is_noticed(Promise::NoStarvation);
}

#[test]
fn a_host_that_leaves_a_member_running_is_noticed() {
    is_noticed(Promise::WholeGangDisruption);
}

#[test]
fn a_restart_that_lost_its_last_writes_is_noticed() {
    is_noticed(Promise::CrashSafety);
}

#[test]
fn an_intake_that_stops_at_bad_input_is_noticed() {
    is_noticed(Promise::BadInputIsAFinding);
}

#[test]
fn planner_that_lends_to_non_preemptible_gangs_is_noticed() {
    is_noticed(Promise::Isolation);
}

#[test]
fn a_host_that_leaves_no_grace_is_noticed() {
    bug_is_noticed(Sabotage::NoGrace, "without its grace");
}

#[test]
fn a_gang_that_overstays_its_grace_is_noticed() {
    bug_is_noticed(Sabotage::Overstays, "after it was told to");
}

#[test]
fn a_gang_shrunk_below_its_minimum_is_noticed() {
    bug_is_noticed(Sabotage::TakesTooMany, "below the minimum of a role");
}

#[test]
fn an_eviction_for_one_without_an_order_is_noticed() {
    bug_is_noticed(Sabotage::ForNobody, "has no order that waits for it");
}

#[test]
fn an_eviction_in_vain_is_noticed() {
    bug_is_noticed(Sabotage::InVain, "which gave its order up");
}

#[test]
fn evictions_over_the_budget_of_a_queue_are_noticed() {
    bug_is_noticed(Sabotage::NoBudget, "were evicted within an hour");
}

#[test]
fn a_planner_that_stops_who_may_not_be_stopped_is_noticed() {
    bug_is_noticed(Sabotage::NoProtection, "was stopped (");
}

#[test]
fn a_start_on_a_node_that_is_about_to_go_is_noticed() {
    bug_is_noticed(Sabotage::NoNotice, "which is about to go");
}
