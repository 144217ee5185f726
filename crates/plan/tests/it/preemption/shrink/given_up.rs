//! Which gangs give up seats, and how many.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn members_above_the_minimum_are_given_up_for_a_waiting_gang() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 2..4x8gpu for=10h
        plan
        started big
        +10m
        gang next 2x8gpu for=1h
        plan ways
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 2 of big: a3[0-7] a4[0-7]
    resize big from 4 to 2: a1[0-7] a2[0-7]
    big runs
      next Wait in 9h50m for 157.33: 0 others lose 0s
    * next Shrink in 0s for 0.13: 1 others lose 16m
    -- 10m
    admit next: a3[0-7] a4[0-7]
    big runs
    ");
}

#[test]
fn only_as_many_as_are_needed_are_given_up() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a4[0-7]
    resize big from 4 to 3: a1[0-7] a2[0-7] a3[0-7]
    big runs
    ");
}

#[test]
fn never_more_than_what_is_above_the_minimum() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 3..4x8gpu for=10h
        plan
        started big
        +10m
        gang next 2x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_higher_priority_gets_them_too() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu prio=5 for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn a_lower_priority_does_not() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu prio=5 for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn surplus_is_given_up_before_any_gang_is_stopped() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..2x8gpu for=10h resize=10m
        gang low 1x8gpu preemptible for=10h
        plan
        started big
        started low
        +10s
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a2[0-7]
    admit big: a1[0-7] a3[0-7]
    -- 10s
    order o0 for high:  by 2m10s after 1 of big: a3[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    low runs
      high Wait in 9h59m50s for 79.98: 0 others lose 0s
    * high Shrink in 0s for 1.33: 1 others lose 2h40m
    ");
}

#[test]
fn surplus_and_a_victim_together_where_neither_is_enough() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..2x8gpu for=10h
        gang low 1x8gpu preemptible for=10h
        plan
        started big
        started low
        +10m
        gang high 2x8gpu prio=1 for=1h
        plan
        resized big
        stopped low
        plan
    "), @"
    admit low: a2[0-7]
    admit big: a1[0-7] a3[0-7]
    -- 10m
    order o0 for high:  by 12m after 1 of big, all 1 of low: a2[0-7] a3[0-7]
    resize big from 2 to 1: a1[0-7]
    stop low: preempted by high
    big runs
    low is stopping
    -- 10m
    admit high: a2[0-7] a3[0-7]
    big runs
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_preemptible_gang_with_surplus_loses_that_and_not_everything() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu preemptible for=10h
        plan
        started big
        +10m
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for high:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn if_its_surplus_is_not_enough_it_is_stopped_whole() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu preemptible for=10h
        plan
        started big
        +10m
        gang high 2x8gpu prio=1 for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for high:  by 12m after all 2 of big: a1[0-7] a2[0-7]
    stop big: preempted by high
    big is stopping
    ");
}

#[test]
fn what_is_free_and_surplus_are_combined() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        queue team gpu=16
        gang big 1..3x8gpu for=10h queue=team
        plan
        started big
        +10m
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7] a3[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn the_surplus_of_two_gangs_is_combined() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang one 1..2x8gpu for=10h
        gang two 1..2x8gpu for=10h
        plan
        started one
        started two
        +10m
        gang next 2x8gpu for=1h
        plan
        resized one
        plan
        resized two
        plan
    "), @"
    admit one: a1[0-7] a3[0-7]
    admit two: a2[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of one, 1 of two: a3[0-7] a4[0-7]
    resize one from 2 to 1: a1[0-7]
    resize two from 2 to 1: a2[0-7]
    one runs
    two runs
    -- 10m
    one runs
    two runs
    next assembles o0: 0 of 0, 1 leaving by 12m
    -- 10m
    admit next: a3[0-7] a4[0-7]
    one runs
    two runs
    ");
}

#[test]
fn the_one_with_the_cheaper_pause_shrinks() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang slow 1..2x8gpu for=10h resize=10m
        gang quick 1..2x8gpu for=10h resize=10s
        plan
        started slow
        started quick
        +10m
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit slow: a1[0-7] a3[0-7]
    admit quick: a2[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of quick: a4[0-7]
    resize quick from 2 to 1: a2[0-7]
    slow runs
    quick runs
      next Wait in 9h50m for 78.67: 0 others lose 0s
    * next Shrink in 0s for 0.02: 1 others lose 2m40s
    ");
}

#[test]
fn members_that_leave_a_node_to_itself_go_first() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 2..3x4gpu for=10h
        gang firm 1x4gpu for=10h
        plan
        started big
        started firm
        +10m
        gang next 1x4gpu for=1h
        plan
    "), @"
    admit firm: a2[0-3]
    admit big: a1[0-3] a1[4-7] a2[4-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[4-7]
    resize big from 3 to 2: a1[0-3] a1[4-7]
    big runs
    firm runs
    ");
}

#[test]
fn surplus_in_two_racks_does_not_make_a_required_rack() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang one 1..2x8gpu for=10h if:rack=r1
        gang two 1..2x8gpu for=10h if:rack=r2
        plan
        started one
        started two
        +10m
        gang next 2x8gpu for=1h topology=required:rack
        plan
    "), @"
    admit one: a1[0-7] a2[0-7]
    admit two: b1[0-7] b2[0-7]
    -- 10m
    one runs
    two runs
    next waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn gang_that_requires_a_rack_gets_surplus_of_one_rack() {
    assert_snapshot!(check("
        node a[1..3] gpus=8 rack=r1
        node b[1..3] gpus=8 rack=r2
        gang one 2..3x8gpu for=10h if:rack=r1
        gang two 1..3x8gpu for=10h if:rack=r2
        plan
        started one
        started two
        +10m
        gang next 2x8gpu for=1h topology=required:rack
        plan
    "), @"
    admit one: a1[0-7] a2[0-7] a3[0-7]
    admit two: b1[0-7] b2[0-7] b3[0-7]
    -- 10m
    order o0 for next:  by 12m after 2 of two: b2[0-7] b3[0-7]
    resize two from 3 to 1: b1[0-7]
    one runs
    two runs
    ");
}

#[test]
fn of_two_roles_each_keeps_its_minimum() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..2x8gpu+1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 2x8gpu for=1h
        plan
        resized big
        plan
        gang more 1x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a3[0-7] | a2[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 2 of big: a3[0-7] a4[0-7]
    resize big from 4 to 2: a1[0-7] | a2[0-7]
    big runs
    -- 10m
    admit next: a3[0-7] a4[0-7]
    big runs
    -- 10m
    big runs
    next runs
    more waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn shares_of_gpus_are_given_up_one_by_one() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang big 1..4x0.5gpu for=10h
        plan
        started big
        +10m
        gang next 1x0.5gpu for=1h
        gang whole 1x1gpu for=1h
        plan
    "), @"
    admit big: a1[0]*2 a1[1]*2
    -- 10m
    order o0 for next:  by 12m after 1 of big: a1[1]
    resize big from 4 to 3: a1[0]*2 a1[1]
    big runs
    whole waits #1: r0 fits 0 of 1, provisioning off
    ");
}
