//! Victims are stopped with all members and all roles, and only for a gang that then starts.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_higher_priority_takes_the_seats_of_a_lower_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 2x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
        stopped low
        plan
        started high
        +1h
        end high
        plan
    "), @"
    admit low: a1[0-7] a2[0-7]
    -- 10m
    order o0 for high:  by 12m after all 2 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h50m for 1573.33: 0 others lose 0s
    * high Preempt in 0s for 2.67: 1 others lose 2h40m
    -- 10m
    admit high: a1[0-7] a2[0-7]
    low waits #1: r0 fits 0 of 2, provisioning off
    -- 1h10m
    admit low: a1[0-7] a2[0-7]
    ");
}

#[test]
fn one_member_of_each_of_ten_gangs_is_never_taken() {
    assert_snapshot!(check("
        node a[1..10] gpus=2
        gang low[1..10] 2x1gpu preemptible for=10h
        plan
        started low1
        started low2
        started low3
        started low4
        started low5
        started low6
        started low7
        started low8
        started low9
        started low10
        +10m
        gang high 2x2gpu prio=10 for=1h
        plan ways
    "), @"
    admit low1: a1[0] a1[1]
    admit low2: a2[0] a2[1]
    admit low3: a3[0] a3[1]
    admit low4: a4[0] a4[1]
    admit low5: a5[0] a5[1]
    admit low6: a6[0] a6[1]
    admit low7: a7[0] a7[1]
    admit low8: a8[0] a8[1]
    admit low9: a9[0] a9[1]
    admit low10: a10[0] a10[1]
    -- 10m
    order o0 for high:  by 12m after all 2 of low1, all 2 of low2: a1[0-1] a2[0-1]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    low3 runs
    low4 runs
    low5 runs
    low6 runs
    low7 runs
    low8 runs
    low9 runs
    low10 runs
      high Wait in 9h50m for 393.33: 0 others lose 0s
    * high Preempt in 0s for 0.67: 2 others lose 40m
    ");
}

#[test]
fn free_nodes_and_nodes_of_victims_are_combined() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 10m
    order o0 for high:  by 12m after all 1 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h50m for 1573.33: 0 others lose 0s
    * high Preempt in 0s for 1.33: 1 others lose 1h20m
    ");
}

#[test]
fn nodes_are_bought_and_victims_evicted_for_the_rest_when_ready() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p nodes=1 : zone=a price=10
        gang firm 1x8gpu for=100h
        gang low 1x8gpu preemptible for=10h
        plan
        started firm
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
        plan
        ready c0
        plan
        stopped low
        plan
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-7]
    -- 10m
    order o0 for high: 1 x p/gpu8@a by 27m after all 1 of low: a2[0-7] c0[0-7]
    firm runs
    low runs
    -- 10m
    firm runs
    low runs
    high assembles o0: 0 of 1, 1 leaving by 27m
    -- 10m
    stop low: preempted by high
    firm runs
    low is stopping
    -- 10m
    admit high: a2[0-7] c0[0-7]
    firm runs
    low waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn no_gang_is_stopped_for_a_preemptor_that_would_still_not_fit() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h
        gang low 1x8gpu preemptible for=10h
        plan
        started firm
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-7]
    -- 10m
    firm runs
    low runs
    high waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn equal_priorities_never_stop_each_other() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang first 1x8gpu preemptible for=10h prio=5
        plan
        started first
        +1h
        gang second 1x8gpu prio=5 for=1h
        plan ways
    "), @"
    admit first: a1[0-7]
    -- 1h
    first runs
    second waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn lower_priority_stops_no_gang() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang first 1x8gpu preemptible for=10h prio=5
        plan
        started first
        +1h
        gang second 1x8gpu prio=4 for=1h
        plan ways
    "), @"
    admit first: a1[0-7]
    -- 1h
    first runs
    second waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn non_preemptible_gang_is_never_stopped() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang firm 1x8gpu for=10h
        plan
        started firm
        +1h
        gang high 1x8gpu prio=1000 for=1h
        plan ways
    "), @"
    admit firm: a1[0-7]
    -- 1h
    firm runs
    high waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn within_its_minimum_runtime_a_gang_is_left_alone_and_after_it_is_not() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h minrun=30m
        plan
        started low
        +29m
        gang high 1x8gpu prio=1 for=1h
        plan wake
        +1m
        plan
    "), @"
    admit low: a1[0-7]
    -- 29m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    wake at 30m
    -- 30m
    order o0 for high:  by 32m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn a_gang_that_has_not_started_yet_can_be_stopped() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        gang high 1x8gpu prio=1 for=1h
        plan ways
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    order o0 for high:  by 2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 10h for 800.00: 0 others lose 0s
    * high Preempt in 0s for 0.00: 1 others lose 0s
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn minimum_runtime_does_not_protect_a_gang_not_started_yet() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h minrun=1h
        plan
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low: a1[0-7]
    order o0 for high:  by 2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn every_role_of_the_preemptor_must_fit() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=10
        gang low[1..2] 1x8gpu/2cpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        gang high 1x8cpu+2x8gpu/2cpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1, all 1 of low2: a1 | a1[0-7] a2[0-7]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    ");
}

#[test]
fn no_gang_is_stopped_if_one_role_does_not_fit() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node b1 cpu=200
        gang firm 1x200cpu for=20h
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started firm
        started low[1..2]
        +1h
        gang high 1x200cpu+2x8gpu prio=1 for=1h
        plan
    "), @"
    admit firm: b1
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    firm runs
    low1 runs
    low2 runs
    high waits #1: r1 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_victim_with_several_roles_is_stopped_in_all_of_them() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=100
        gang low 1x50cpu+1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped low
        plan
    "), @"
    admit low: a1 | a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 2 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    admit high: a1[0-7] a2[0-7]
    low waits #1: r1 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_gang_that_was_cancelled_is_not_stopped_once_more_for_another() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        cancel low
        gang high 1x8gpu prio=1 for=1h
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    stop low: cancelled
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7]
    ");
}

#[test]
fn gangs_without_gpus_preempt_each_other_too() {
    assert_snapshot!(check("
        node a1 cpu=16
        gang low[1..4] 1x4cpu preemptible for=10h
        plan
        started low[1..4]
        +1h
        gang high 2x4cpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1
    admit low2: a1
    admit low3: a1
    admit low4: a1
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1, all 1 of low2: a1*2
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    low3 runs
    low4 runs
    ");
}

#[test]
fn surplus_is_given_up_beside_gangs_that_are_stopped() {
    assert_snapshot!(check("
        node a[1..5] gpus=8
        gang wide 1..3x8gpu preemptible for=10h
        plan
        started wide
        gang rigid 2x8gpu preemptible for=10h
        plan
        started rigid
        +1h
        gang high 4x8gpu prio=1 for=1h
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7] a3[0-7]
    admit rigid: a4[0-7] a5[0-7]
    wide runs
    -- 1h
    order o0 for high:  by 1h2m after 2 of wide, all 2 of rigid: a2[0-7] a3[0-7] a4[0-7] a5[0-7]
    resize wide from 3 to 1: a1[0-7]
    stop rigid: preempted by high
    wide runs
    rigid is stopping
    ");
}
