//! Which nodes are released, when, and in which order.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn idle_nodes_are_released_after_their_time_most_expensive_first() {
    assert_snapshot!(check("
        pool p idle=10m warm=1 : zone=a price=10 max=1 ; zone=b price=30 max=1 ; zone=c price=20 max=1
        gang train 3x8gpu
        plan
        ready c[0..2]
        plan
        pool p idle=10m warm=1 : zone=a price=10 max=1 ; zone=b price=30 max=1 ; zone=c price=20 max=1
        end train
        plan
        +10m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a + 1 x p/gpu8@c + 1 x p/gpu8@b by 15m: c0[0-7] c1[0-7] c2[0-7]
    admit train: c0[0-7] c1[0-7] c2[0-7]
    nothing
    -- 10m
    release c2
    release c1
    ");
}

#[test]
fn prepaid_nodes_are_released_last() {
    assert_snapshot!(check("
        pool p idle=10m warm=1 : zone=a price=90 max=1 capacity=reserved ; zone=b price=30 max=1
        gang train 2x8gpu
        plan
        ready c[0..1]
        plan
        end train
        +10m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a + 1 x p/gpu8@b by 15m: c0[0-7] c1[0-7]
    admit train: c0[0-7] c1[0-7]
    -- 10m
    release c1
    ");
}

#[test]
fn node_that_is_hard_to_get_again_is_kept() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p idle=1h warm=1 : zone=a price=10 max=1 ; zone=b price=10
        gang train 2x8gpu
        plan
        ready c[0..2]
        plan
        gang more 1x8gpu if:zone=b
        plan
        fail c3 stock-out
        plan
        cancel more
        plan
        end train
        +1h
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]
    stock c2 p/gpu8@a
    admit train: c0[0-7] c1[0-7]
    order o1 for more: 1 x p/gpu8@b by 15m: c3[0-7]
    train runs
    roll back o1: c3 StockOut
    train runs
    release c3
    train runs
    -- 1h
    release c2
    release c0
    ");
}

#[test]
fn of_equal_nodes_the_one_idle_for_longest_is_released() {
    assert_snapshot!(check("
        pool p idle=10m warm=1 : zone=a price=10
        gang one 1x8gpu
        gang two 1x8gpu
        plan
        ready c[0..2]
        plan
        end two
        +5m
        end one
        +10m
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-7]
    stock c2 p/gpu8@a
    admit one: c0[0-7]
    admit two: c1[0-7]
    -- 15m
    release c1
    release c2
    ");
}

#[test]
fn pool_that_never_consolidates_keeps_every_node() {
    assert_snapshot!(check("
        pool p idle=1m consolidate=never : zone=a price=10
        gang train 2x8gpu
        plan
        ready c[0..1]
        plan
        end train
        +24h
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    admit train: c0[0-7] c1[0-7]
    -- 1d
    nothing
    ");
}

#[test]
fn pool_that_never_consolidates_releases_failed_and_coming_nodes() {
    assert_snapshot!(check("
        pool p idle=1m consolidate=never : zone=a price=10
        gang train 3x8gpu
        plan
        ready c0
        fail c1 boot-failed
        cancel train
        plan
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    roll back o0: cancelled
    release c1
    release c2
    ");
}

#[test]
fn an_unused_node_that_is_too_old_is_replaced() {
    assert_snapshot!(check("
        pool p warm=1 expire=24h : zone=a price=10
        plan
        ready c0
        plan wake
        +23h59m59s
        plan
        +1s
        plan
        lost c0
        forgotten c0
        plan
    "), @"
    stock c0 p/gpu8@a
    nothing
    wake at 1d
    -- 23h59m59s
    nothing
    -- 1d
    release c0
    stock c1 p/gpu8@a
    -- 1d
    nothing
    ");
}

#[test]
fn used_node_that_is_too_old_is_retired_and_goes_when_empty() {
    assert_snapshot!(check("
        pool p expire=24h : zone=a price=10
        gang one 1x4gpu
        plan
        ready c0
        plan
        started one
        +24h
        plan
        gang two 1x4gpu never
        plan
        end one
        plan
        lost c0
        forgotten c0
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-3]
    admit one: c0[0-3]
    -- 1d
    retire c0
    one runs
    -- 1d
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1d
    release c0
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1d
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn node_that_expires_while_its_order_assembles_starts_its_gang() {
    assert_snapshot!(check("
        pool p expire=10m warm=1 : zone=a price=10
        plan
        ready c0
        +9m
        gang train 2x8gpu
        plan
        +1m
        plan
        ready c1
        plan
        ready c2
        plan
    "), @"
    stock c0 p/gpu8@a
    -- 9m
    order o0 for train: 1 x p/gpu8@a by 24m: c0[0-7] c1[0-7]
    stock c2 p/gpu8@a
    -- 10m
    retire c0
    train assembles o0: 0 of 1 by 24m
    -- 10m
    admit train: c0[0-7] c1[0-7]
    -- 10m
    train runs
    ");
}

#[test]
fn a_stopped_node_grows_old_too() {
    assert_snapshot!(check("
        pool p stopped=1 expire=24h : zone=a price=10 start=1m
        plan
        ready c0
        plan
        lost c0
        parked c0
        +24h
        plan
    "), @"
    stock c0 p/gpu8@a
    park c0
    -- 1d
    release c0
    stock c1 p/gpu8@a
    ");
}

#[test]
fn all_warm_nodes_too_old_at_once_are_replaced() {
    assert_snapshot!(check("
        pool p warm=2 nodes=3 expire=24h : zone=a price=10
        plan
        ready c[0..1]
        +24h
        plan
        lost c0
        forgotten c0
        lost c1
        forgotten c1
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    -- 1d
    release c0
    release c1
    stock c2 p/gpu8@a
    -- 1d
    stock c3 p/gpu8@a
    ");
}

#[test]
fn surplus_stopped_nodes_are_released() {
    assert_snapshot!(check("
        pool p stopped=2 : zone=a price=10 start=1m
        plan
        ready c[0..1]
        plan
        lost c0
        parked c0
        lost c1
        parked c1
        pool p stopped=1 : zone=a price=10 start=1m
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    park c0
    park c1
    release c1
    ");
}

#[test]
fn idle_nodes_are_stopped_where_stopped_ones_are_wanted() {
    assert_snapshot!(check("
        pool p stopped=1 idle=10m : zone=a price=10 start=1m
        gang train 3x8gpu
        plan
        ready c[0..2]
        plan
        ready c3
        end train
        plan
        +10m
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    stock c3 p/gpu8@a
    admit train: c0[0-7] c1[0-7] c2[0-7]
    park c0
    -- 10m
    release c1
    release c2
    release c3
    ");
}

#[test]
fn kept_node_goes_when_a_gang_waits_for_room_it_cannot_use() {
    assert_snapshot!(check("
        pool p nodes=2 idle=5m consolidate=never : zone=a price=10; zone=b price=10
        gang first 2x8gpu for=1h if:zone=a
        plan
        ready c[0..1]
        plan
        started first
        +1h
        end first
        +1h
        plan
        gang other 2x8gpu for=1h if:zone=b
        plan
    "), @"
    order o0 for first: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    admit first: c0[0-7] c1[0-7]
    -- 2h
    nothing
    -- 2h
    release c0
    release c1
    other waits #1: r0 fits 0 of 2, pools full (room 0)
    ");
}

#[test]
fn idle_time_begins_when_other_workloads_are_gone() {
    assert_snapshot!(check("
        pool p idle=10m stopped=1 : zone=a price=10 start=1m max=1
        gang train 1x8gpu
        plan
        ready c0
        plan
        ready c0 others=yes
        end train
        +1h
        plan
        pool p idle=10m : zone=a price=10 max=1
        plan
        ready c0
        plan
        +9m
        plan
        +1m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    -- 1h
    nothing
    -- 1h
    nothing
    -- 1h
    nothing
    -- 1h9m
    nothing
    -- 1h10m
    release c0
    ");
}

#[test]
fn other_workloads_keep_a_node_briefly_not_ready_but_no_failed_one() {
    assert_snapshot!(check("
        pool p idle=10m : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        ready c0 others=yes
        end train
        ready c0 others=yes ready=no
        plan
        +1m
        plan
        +1h
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    nothing
    -- 1m
    nothing
    -- 1h1m
    release c0
    ");
}
