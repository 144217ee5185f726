//! Random worlds keep every promise, and a planted bug against each promise is detected.

use muster_sim::faults::{Sabotage, Verified, run_seed};
use muster_testkit::Promise;

/// A few here, in debug; `make test` runs hundreds in release, and `cargo xtask faults` as many as wanted.
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
    // And the worlds had every kind of fault.
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

/// Seeds that once broke a promise, and how.
const MENDED: [(u64, &str); 5] = [
    (46, "a pool that keeps its nodes was said to leak them"),
    (144, "a gang waited for ever for room that kept nodes of another zone had"),
    (511, "nodes kept for members that a gang was to get were said to be idle"),
    (3215, "a gang gave up its order for room that a limit did not leave it"),
    (6044, "what would help the late was worked out with nodes that come taken for others"),
];

#[test]
fn seeds_that_once_broke_a_promise_keep_it() {
    for (seed, what) in MENDED {
        let violations = run_seed(seed, None, None).violations;
        assert!(violations.is_empty(), "seed {seed}, {what}: {violations:#?}");
    }
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in [3, 17] {
        let (once, again) = (run_seed(seed, None, None), run_seed(seed, None, None));
        assert_eq!((once.steps, once.rollbacks), (again.steps, again.rollbacks), "seed {seed}");
    }
}

/// Plants a bug and expects it to be detected as the promise it breaks, within a few seeds.
fn is_detected(promise: Promise) {
    bug_is_detected(Sabotage::Against(promise), "");
}

/// Plants a bug and expects it to be detected in these words, within a few seeds.
fn bug_is_detected(bug: Sabotage, words: &str) {
    let noticed = (0..400).any(|seed| {
        let found = run_seed(seed, Some(bug), None).violations;
        found.iter().any(|broken| broken.promise == bug.promise() && broken.what.contains(words))
    });
    assert!(noticed, "the planted bug {} went unnoticed", bug.name());
}

#[test]
fn start_without_one_member_is_detected() {
    is_detected(Promise::NoPartialStart);
}

#[test]
fn two_members_on_one_device_are_detected() {
    is_detected(Promise::NoOvercommit);
}

#[test]
fn leaked_node_is_detected() {
    is_detected(Promise::NoLeak);
}

#[test]
fn skipped_rollback_is_detected() {
    is_detected(Promise::AtomicRollback);
}

#[test]
fn order_without_deadline_is_detected() {
    is_detected(Promise::NoHoldAndWait);
}

#[test]
fn overtaking_under_fifo_is_detected() {
    is_detected(Promise::NoStarvation);
}

#[test]
fn member_left_running_is_detected() {
    is_detected(Promise::WholeGangDisruption);
}

#[test]
fn restart_with_lost_writes_is_detected() {
    is_detected(Promise::CrashSafety);
}

#[test]
fn intake_that_stops_at_bad_input_is_detected() {
    is_detected(Promise::BadInputIsAFinding);
}

#[test]
fn lending_to_non_preemptible_gangs_is_detected() {
    is_detected(Promise::Isolation);
}

#[test]
fn stop_without_grace_is_detected() {
    bug_is_detected(Sabotage::NoGrace, "without its grace");
}

#[test]
fn exceeded_grace_is_detected() {
    bug_is_detected(Sabotage::Overstays, "after it was told to");
}

#[test]
fn shrink_below_the_minimum_is_detected() {
    bug_is_detected(Sabotage::TakesTooMany, "below the minimum of a role");
}

#[test]
fn eviction_without_an_order_is_detected() {
    bug_is_detected(Sabotage::ForNobody, "has no order that waits for it");
}

#[test]
fn useless_eviction_is_detected() {
    bug_is_detected(Sabotage::InVain, "which gave its order up");
}

#[test]
fn evictions_over_the_budget_of_a_queue_are_detected() {
    bug_is_detected(Sabotage::NoBudget, "were evicted within an hour");
}

#[test]
fn stop_of_a_non_preemptible_gang_is_detected() {
    bug_is_detected(Sabotage::NoProtection, "was stopped (");
}

#[test]
fn start_on_a_node_with_notice_is_detected() {
    bug_is_detected(Sabotage::NoNotice, "which is about to go");
}
