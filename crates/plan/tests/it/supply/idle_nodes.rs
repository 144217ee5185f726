//! Idle nodes are released.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn an_idle_node_is_released_after_its_pools_time_and_not_before() {
    assert_snapshot!(check("
        pool p idle=10m : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        +1h
        end train
        plan wake
        +9m59s
        plan
        +1s
        plan
        plan
        lost c0
        forgotten c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    -- 1h
    nothing
    wake at 1h10m
    -- 1h9m59s
    nothing
    -- 1h10m
    release c0
    -- 1h10m
    nothing
    -- 1h10m
    nothing
    ");
}

#[test]
fn use_starts_the_idle_time_anew() {
    assert_snapshot!(check("
        pool p idle=10m : zone=a price=10
        gang one 1x4gpu
        plan
        ready c0
        plan
        end one
        +9m
        gang two 1x4gpu
        plan
        +1m
        end two
        plan
        +9m
        plan
        +1m
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-3]
    admit one: c0[0-3]
    -- 9m
    admit two: c0[0-3]
    -- 10m
    nothing
    -- 19m
    nothing
    -- 20m
    release c0
    ");
}

#[test]
fn a_node_wanted_this_cycle_is_not_released() {
    assert_snapshot!(check("
        pool p idle=10m : zone=a price=10
        gang one 2x8gpu
        plan
        ready c[0..1]
        plan
        end one
        +10m
        gang two 1x8gpu
        plan
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    admit one: c0[0-7] c1[0-7]
    -- 10m
    admit two: c0[0-7]
    release c1
    ");
}

#[test]
fn a_node_held_by_an_order_is_not_idle() {
    assert_snapshot!(check("
        pool p idle=5m : zone=a price=10
        gang one 1x8gpu
        plan
        ready c0
        plan
        end one
        +5m
        gang two 2x8gpu
        plan
        +6m
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    admit one: c0[0-7]
    -- 5m
    order o1 for two: 1 x p/gpu8@a by 20m: c0[0-7] c1[0-7]
    -- 11m
    two assembles o1: 0 of 1 by 20m
    ");
}

#[test]
fn no_gang_is_placed_on_a_node_that_is_being_released() {
    assert_snapshot!(check("
        pool p idle=0s : zone=a price=10
        gang one 1x8gpu
        plan
        ready c0
        plan
        end one
        plan
        gang two 1x8gpu never
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    admit one: c0[0-7]
    release c0
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn nodes_that_came_with_the_cluster_are_never_released() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p idle=0s : zone=a price=10
        +24h
        plan
    "), @"
    -- 1d
    nothing
    ");
}

#[test]
fn a_node_that_comes_up_after_its_order_is_gone_is_released() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        cancel train
        plan
        ready c[0..1]
        gang next 1x8gpu never
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    roll back o0: cancelled
    admit next: c0[0-7]
    ");
}

#[test]
fn the_claim_of_a_lost_node_is_released() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        lost c0
        plan
        stopped train
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    stop train: c0 lost
    release c0
    order o1 for train: 1 x p/gpu8@a by 15m: c1[0-7]
    ");
}
