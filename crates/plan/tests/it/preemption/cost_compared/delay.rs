//! What a delay costs, by priority, declared cost and deadline.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn waiting_and_preempting_are_compared() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn urgency_is_how_much_more_the_delay_of_a_higher_priority_counts() {
    assert_snapshot!(check("
        policy fifo urgency=1
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 8.00: 0 others lose 0s
      high Preempt in 0s for 72.00: 1 others lose 3d
    ");
}

#[test]
fn with_the_default_urgency_the_same_gang_is_stopped() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h
    order o0 for high:  by 9h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 80.00: 0 others lose 0s
    * high Preempt in 0s for 72.00: 1 others lose 3d
    ");
}

#[test]
fn a_delay_that_costs_little_is_waited_out() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h cost=0.01
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 9h for 0.90: 0 others lose 0s
      high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn a_delay_that_costs_nothing_is_waited_out() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h cost=0
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 9h for 0.00: 0 others lose 0s
      high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn expensive_delay_stops_even_a_long_run() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1000
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    order o0 for high:  by 19h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 10000.00: 0 others lose 0s
    * high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn where_only_one_way_meets_the_deadline_it_is_taken_whatever_it_costs() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=20h30m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    order o0 for high:  by 19h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 10.00: 0 others lose 0s
    * high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn a_deadline_that_waiting_meets_changes_nothing() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=22h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 10.00: 0 others lose 0s
      high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn missed_deadline_costs_no_gang_its_work() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=19h30m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 10.00: 0 others lose 0s
      high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn time_waited_already_counts_when_waiting_is_compared_again() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h50m
        gang high 1x8gpu prio=1 for=1h cost=20
        plan ways
        +12m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 10m for 33.33: 0 others lose 0s
      high Preempt in 0s for 78.67: 1 others lose 3d6h40m
    -- 10h2m
    order o0 for high:  by 10h4m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h12s for 240.67: 0 others lose 0s
    * high Preempt in 0s for 80.27: 1 others lose 3d8h16m
    ");
}

#[test]
fn planner_wakes_when_waiting_has_become_as_expensive() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h50m
        gang high 1x8gpu prio=1 for=1h cost=20
        plan wake
    "), @"
    admit low: a1[0-7]
    -- 9h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    wake at 10h13m36s
    ");
}

#[test]
fn the_grace_of_victims_is_part_of_the_delay() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=30m save=told
        plan
        started low
        +9h45m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h45m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 15m for 20.00: 0 others lose 0s
      high Preempt in 30m for 40.00: 1 others lose 0s
    ");
}
