//! Where gangs grow: on which nodes, and in which roles.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_requires_a_rack_grows_only_in_its_rack() {
    assert_snapshot!(check("
        node a1 gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang firm 1x8gpu for=10h if:rack=r2
        gang big 1..3x8gpu for=10h topology=required:rack if:rack=r1
        plan
        started firm
        started big
        +10m
        node a2 gpus=8 rack=r1
        plan
    "), @"
    admit firm: b1[0-7]
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    firm runs
    ");
}

#[test]
fn it_grows_only_on_nodes_it_may_run_on() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=ssd
        gang big 1..2x8gpu for=10h if:disk=ssd
        plan
        started big
        +10m
        node b1 gpus=8
        plan
        node b2 gpus=8 label:disk=ssd
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    -- 10m
    resize big from 1 to 2: a1[0-7] b2[0-7]
    ");
}

#[test]
fn roles_grow_in_step() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang big 1..3x8gpu+1..3x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] a3[0-7] a5[0-7] | a2[0-7] a4[0-7] a6[0-7]");
}

#[test]
fn a_rigid_role_stays_as_it_is() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1x8gpu+1..4x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] | a2[0-7] a3[0-7] a4[0-7]");
}

#[test]
fn shares_of_gpus_grow_one_by_one() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang big 1..4x0.5gpu for=10h
        plan
    "), @"admit big: a1[0]*2 a1[1]*2");
}

#[test]
fn members_without_gpus_grow_too() {
    assert_snapshot!(check("
        node a1 cpu=16
        gang big 1..8x4cpu for=10h
        plan
    "), @"admit big: a1*4");
}

#[test]
fn no_nodes_are_bought_for_growth() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang big 1..2x8gpu for=10h
        plan
        ready c0
        plan
        started big
        +10m
        plan
    "), @"
    order o0 for big: 1 x p/gpu8@a by 15m: c0[0-7]
    admit big: c0[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn nodes_that_cost_money_are_not_kept_for_growth() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        pool p warm=1 : zone=a price=10
        plan
        ready c0
        +10m
        plan
    "), @"
    admit big: a1[0-7]
    stock c0 p/gpu8@a
    big runs
    -- 10m
    big runs
    ");
}

#[test]
fn nodes_of_a_pool_that_says_so_are_grown_into() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        pool p warm=1 grow=yes : zone=a price=10
        plan
        ready c0
        +10m
        plan
    "), @"
    admit big: a1[0-7]
    stock c0 p/gpu8@a, c1 p/gpu8@a
    big runs
    -- 10m
    resize big from 1 to 2: a1[0-7] c0[0-7]
    release c1
    ");
}

#[test]
fn it_does_not_grow_onto_a_node_under_notice() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        notice a2 1h
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn seats_that_an_order_holds_are_not_grown_into() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..3x8gpu for=10h prio=5
        plan
        started big
        node a2 gpus=8
        pool p : zone=a price=10
        gang wide 2x8gpu for=1h
        +10m
        plan
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    order o0 for wide: 1 x p/gpu8@a by 25m: a2[0-7] c0[0-7]
    big runs
    -- 10m
    big runs
    wide assembles o0: 0 of 1 by 25m
    ");
}

#[test]
fn gang_starting_larger_on_returned_nodes_starts_after_their_order() {
    assert_snapshot!(check("
        node a1 gpus=8
        node b1 gpus=16
        gang first 1x16gpu for=1h
        plan
        started first
        pool p : zone=a price=10
        gang wide 2x8gpu for=1h
        +10m
        plan
        end first
        node a2 gpus=8
        gang small 1..3x8gpu for=1h
        plan
    "), @"
    admit first: b1[0-15]
    -- 10m
    order o0 for wide: 1 x p/gpu8@a by 25m: a1[0-7] c0[0-7]
    first runs
    -- 10m
    roll back o0: not needed
    admit wide: b1[0-7] b1[8-15]
    admit small: a2[0-7] a1[0-7]
    ");
}
