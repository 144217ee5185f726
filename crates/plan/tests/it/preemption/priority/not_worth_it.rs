//! No gang is stopped where waiting costs less, and none again and again.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_is_nearly_done_is_waited_for() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h59m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h59m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1m for 1.33: 0 others lose 0s
      high Preempt in 0s for 79.87: 1 others lose 3d7h52m
    ");
}

#[test]
fn gang_that_outlives_its_estimate_is_preempted_in_the_end() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=2h
        plan
        started low
        +1h50m
        gang high 1x8gpu prio=1 for=1h
        plan ways
        +11m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 10m for 13.33: 0 others lose 0s
      high Preempt in 0s for 14.67: 1 others lose 14h40m
    -- 2h1m
    order o0 for high:  by 2h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 12m6s for 30.80: 0 others lose 0s
    * high Preempt in 0s for 16.13: 1 others lose 16h8m
    ");
}

#[test]
fn victim_searches_in_a_cycle_are_bounded_by_the_policy() {
    assert_snapshot!(check("
        policy fifo-overtake searches=1
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h
        gang low 1x4gpu preemptible for=10h
        plan
        started firm
        started low
        +1h
        gang wide 2x8gpu prio=2 for=1h
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-3]
    -- 1h
    firm runs
    low runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    high waits #2: r0 fits 0 of 1, provisioning off, search spent
    ");
}

#[test]
fn ten_rounds_of_high_and_low_stop_no_gang_twice_for_nothing() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=6h save=10m restart=1m
        plan
        started low[1..2]
        run 1h
        gang high 1x8gpu prio=1 for=1h
        run 8h
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h10m
    order o0 for high:  by 1h12m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    admit high: a1[0-7]
    -- 2h10m
    high ends
    admit low1: a1[0-7]
    -- 6h
    low2 ends
    -- 7h10m
    low1 ends
    ");
}
