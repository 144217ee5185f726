//! Which gangs grow: where it pays, and where it gains most.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_gang_that_is_nearly_done_is_left_alone() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=10m
        plan
        started big
        +1h55m
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 1h55m
    big runs
    ");
}

#[test]
fn a_pause_that_costs_more_than_growth_brings_is_not_taken() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=31m
        plan
        started big
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    big runs
    ");
}

#[test]
fn a_pause_that_brings_more_than_twice_what_it_costs_is_taken() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=29m
        plan
        started big
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn gang_that_gains_most_per_gpu_gets_it() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang poor 1..2x8gpu for=10h efficiency=600
        gang good 1..2x8gpu for=10h efficiency=950
        plan
    "), @"
    admit poor: a1[0-7]
    admit good: a2[0-7] a3[0-7]
    ");
}

#[test]
fn members_that_bring_nothing_are_not_added() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h efficiency=500
        plan
        started big
        +10m
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn members_that_bring_nothing_are_not_there_from_the_start_either() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h efficiency=500
        plan
    "), @"admit big: a1[0-7]");
}

#[test]
fn measured_efficiency_counts_and_not_the_declared_one() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h efficiency=950
        plan
        started big
        +1h
        measured big 500
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 1h
    big runs
    ");
}

/// So one of them is done early, and the other no later.
#[test]
fn members_that_bring_in_proportion_go_to_one_gang_after_the_other() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang one 1..4x8gpu for=10h
        gang two 1..4x8gpu for=10h
        plan
    "), @"
    admit one: a1[0-7] a3[0-7] a4[0-7] a5[0-7]
    admit two: a2[0-7] a6[0-7]
    ");
}

#[test]
fn where_each_further_member_brings_less_equal_gangs_get_equal_shares() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang one 1..4x8gpu for=10h efficiency=800
        gang two 1..4x8gpu for=10h efficiency=800
        plan
    "), @"
    admit one: a1[0-7] a3[0-7] a5[0-7]
    admit two: a2[0-7] a4[0-7] a6[0-7]
    ");
}

#[test]
fn the_one_with_less_left_to_do_grows() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang old 1..2x8gpu for=10h
        plan
        started old
        +10h
        node a2 gpus=8
        gang young 1..2x8gpu for=10h
        plan
        started young
        +10m
        node a3 gpus=8
        plan
    "), @"
    admit old: a1[0-7]
    -- 10h
    admit young: a2[0-7]
    old runs
    -- 10h10m
    resize old from 1 to 2: a1[0-7] a3[0-7]
    young runs
    ");
}

#[test]
fn the_queue_that_has_least_grows_first() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red
        queue blue
        gang r 2..3x8gpu for=10h queue=red
        gang b 1..2x8gpu for=10h queue=blue
        plan
        started r
        started b
        +10m
        node a4 gpus=8
        plan
    "), @"
    admit b: a1[0-7]
    admit r: a2[0-7] a3[0-7]
    -- 10m
    resize b from 1 to 2: a1[0-7] a4[0-7]
    r runs
    ");
}

#[test]
fn weight_counts_there_too() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red weight=4
        queue blue
        gang r 2..3x8gpu for=10h queue=red
        gang b 1..2x8gpu for=10h queue=blue
        plan
        started r
        started b
        +10m
        node a4 gpus=8
        plan
    "), @"
    admit r: a1[0-7] a2[0-7]
    admit b: a3[0-7]
    -- 10m
    resize r from 2 to 3: a1[0-7] a2[0-7] a4[0-7]
    b runs
    ");
}

#[test]
fn gang_that_grows_is_faster_from_then_on() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=4h
        plan
        started big
        +2h
        look big
        node a2 gpus=8
        plan
        resized big
        +1h30s
        look big
    "), @"
    admit big: a1[0-7]
    big has 1 members, 1h done, 3h left, 0 restarts, 0 evictions
    -- 2h
    resize big from 1 to 2: a1[0-7] a2[0-7]
    big has 2 members, 2h done, 2h left, 0 restarts, 0 evictions
    ");
}

#[test]
fn over_a_day_it_does_not_change_back_and_forth() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=20h
        plan
        started big
        run 1h
        gang s[1..3] 1x8gpu for=2h
        run 1h
        gang t[1..2] 1x8gpu for=2h
        run 12h every 30m
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h10m
    order o0 for s1:  by 1h12m after 1 of big: a4[0-7]
    resize big from 4 to 3: a1[0-7] a2[0-7] a3[0-7]
    admit s1: a4[0-7]
    order o1 for s2:  by 1h12m after 1 of big: a3[0-7]
    resize big from 3 to 2: a1[0-7] a2[0-7]
    admit s2: a3[0-7]
    order o2 for s3:  by 1h12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    admit s3: a2[0-7]
    -- 3h30m
    s1 ends
    s2 ends
    s3 ends
    admit t1: a2[0-7]
    admit t2: a3[0-7]
    resize big from 1 to 2: a1[0-7] a4[0-7]
    -- 5h30m
    t1 ends
    t2 ends
    resize big from 2 to 4: a1[0-7] a4[0-7] a2[0-7] a3[0-7]
    ");
}

#[test]
fn gang_that_would_get_too_little_leaves_it_to_others() {
    assert_snapshot!(check("
        node a1 gpus=3
        gang soon 2..8x1gpu for=10m resize=10m
        gang long 1..2x1gpu for=10h
        plan
        started soon
        started long
        +1m
        node a2 gpus=1
        plan
    "), @"
    admit soon: a1[0] a1[1]
    admit long: a1[2]
    -- 1m
    resize long from 1 to 2: a1[2] a2[0]
    soon runs
    ");
}
