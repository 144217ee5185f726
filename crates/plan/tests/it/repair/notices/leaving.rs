//! Gangs leave nodes under notice in time, and no gang is placed on them.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn no_gang_is_placed_on_a_node_under_notice() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        notice a1 1h
        gang train 1x8gpu for=10m
        gang next 1x8gpu for=10m
        plan
    "), @"
    admit train: a2[0-7]
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn an_elastic_gang_leaves_it_at_once() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +1h
        notice a2 30m
        plan
        resized big
        lost a2
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    resize big from 3 to 2: a1[0-7] a3[0-7]
    -- 1h
    big runs
    ");
}

#[test]
fn a_rigid_gang_that_fits_elsewhere_saves_its_work_and_goes_there() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h save=told restart=1m grace=2m
        plan
        started train
        +1h
        notice a1 30m
        plan
        stopped train
        look train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    train has 0 members, 1h done, 9h left, 1 restarts, 0 evictions
    -- 1h
    admit train: a2[0-7] a3[0-7]
    ");
}

#[test]
fn one_that_does_not_fit_elsewhere_stays_until_its_grace_is_just_enough() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h save=told restart=1m grace=2m
        plan
        started train
        +1h
        notice a1 30m
        plan wake
        +27m
        plan
        +1m
        plan
        +2m
        stopped train
        look train
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    train runs
    wake at 1h28m
    -- 1h27m
    train runs
    -- 1h28m
    stop train: a1 failing
    train has 0 members, 1h30m done, 8h30m left, 1 restarts, 0 evictions
    ");
}

#[test]
fn a_grace_longer_than_the_notice_is_used_as_far_as_it_goes() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h save=told restart=1m grace=10m
        plan
        started train
        +1h
        notice a1 2m
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    ");
}

#[test]
fn one_that_saves_nothing_stays_as_long_as_its_node() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        notice a1 30m
        plan
        +30m
        lost a1
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    train runs
    -- 1h30m
    stop train: a1 lost
    ");
}

#[test]
fn one_that_ends_before_that_is_left_alone_and_ends() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=2h save=told grace=2m
        plan
        started train
        +1h55m
        notice a1 30m
        plan wake
        +5m
        end train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h55m
    train runs
    wake at 2h23m
    -- 2h
    nothing
    ");
}

#[test]
fn one_that_ends_before_that_is_left_alone_though_it_would_fit_elsewhere() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=2h save=told grace=2m
        plan
        started train
        +1h55m
        notice a1 30m
        plan wake
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h55m
    train runs
    wake at 2h23m
    ");
}

#[test]
fn gang_that_outlives_its_estimate_leaves_in_time_all_the_same() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=2h save=told grace=2m
        plan
        started train
        +1h55m
        notice a1 30m
        plan
        +28m
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h55m
    train runs
    -- 2h23m
    stop train: a1 failing
    ");
}

#[test]
fn non_preemptible_gang_leaves_all_the_same() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h save=told grace=2m
        plan
        started train
        +1h
        notice a1 30m
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    ");
}

#[test]
fn minimum_runtime_does_not_hold_it_there() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h save=told grace=2m minrun=5h
        plan
        started train
        +1h
        notice a1 30m
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    ");
}

#[test]
fn leaving_a_node_under_notice_is_no_eviction() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        queue kind evictions=0
        gang train 2x8gpu queue=kind preemptible for=10h save=told grace=2m
        plan
        started train
        +1h
        notice a1 30m
        plan
        stopped train
        look train
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    train has 0 members, 1h done, 9h left, 1 restarts, 0 evictions
    ");
}

#[test]
fn it_goes_before_all_others_when_it_has_left() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h save=told grace=2m
        plan
        started train
        gang next 1x8gpu prio=9 for=1h
        plan
        +1h
        notice a1 2m
        plan
        stopped train
        plan
        node a3 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    firm runs
    train runs
    next waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    stop train: a1 failing
    firm runs
    next waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    next waits #2: r0 fits 0 of 1, provisioning off, behind train
    -- 1h
    admit train: a2[0-7] a3[0-7]
    firm runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn one_node_is_ordered_in_its_place() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10
        gang train 2x8gpu for=10h save=told grace=2m
        plan
        started train
        +1h
        notice a1 2m
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 failing
    -- 1h
    order o0 for train: 1 x p/gpu8@a by 1h15m: a2[0-7] c0[0-7]
    ");
}

#[test]
fn a_notice_that_is_taken_back_is_forgotten() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h save=told grace=2m
        plan
        started train
        +1h
        notice a1 30m
        plan
        notice a1 off
        +29m
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    train runs
    -- 1h29m
    train runs
    ");
}

#[test]
fn a_node_whose_notice_was_taken_back_takes_gangs_again() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h if:hostname=a2
        notice a1 1h
        gang train 1x8gpu for=10m
        plan
        notice a1 off
        plan
    "), @"
    admit firm: a2[0-7]
    train waits #1: r0 fits 0 of 1, provisioning off
    admit train: a1[0-7]
    firm runs
    ");
}

#[test]
fn two_notices_are_left_one_with_the_other() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        +1h
        notice a1 30m
        notice a3 10m
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h
    resize big from 4 to 2: a2[0-7] a4[0-7]
    ");
}

#[test]
fn elastic_gang_below_its_minimum_without_the_node_is_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 2..3x8gpu for=10h save=told grace=2m
        plan
        started big
        +1h
        notice a1 30m
        plan wake
        +28m
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    big runs
    wake at 1h28m
    -- 1h28m
    stop big: a1 failing
    ");
}

#[test]
fn order_does_not_use_a_node_under_notice() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10
        gang train 3x8gpu for=1h
        notice a1 1h
        plan
    "), @"order o0 for train: 2 x p/gpu8@a by 15m: a2[0-7] c0[0-7] c1[0-7]");
}

#[test]
fn order_with_seats_on_a_node_under_notice_is_drawn_up_anew() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10
        gang train 3x8gpu for=1h
        plan
        notice a1 1m
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] a2[0-7] c0[0-7]
    roll back o0: a1 unsuitable
    order o1 for train: 2 x p/gpu8@a by 15m: a2[0-7] c0[0-7] c1[0-7]
    ");
}

#[test]
fn bought_node_under_notice_before_completion_is_not_used() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=10
        gang train 3x8gpu for=1h
        plan
        ready c0
        notice c0 1m
        ready c1
        plan
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: a1[0-7] c0[0-7] c1[0-7]
    roll back o0: c0 unsuitable
    train waits #1: r0 fits 2 of 3, offerings avoided until 3m
    ");
}

#[test]
fn no_gang_is_preempted_on_a_node_under_notice() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h if:hostname=a2
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        notice a1 30m
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit firm: a2[0-7]
    admit low: a1[0-7]
    -- 1h
    firm runs
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn victim_on_a_failing_node_leaves_as_it_was_told() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 2x8gpu preemptible for=10h save=told grace=5m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        notice a2 1m
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7] a2[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 2 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    -- 1h
    admit high: a1[0-7]
    low is impossible: r0 never 2, at most 1
    ");
}
