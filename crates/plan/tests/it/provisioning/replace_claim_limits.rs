//! When a failed node of an order is not replaced: too often, too late, too many, no room, not allowed.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn claims_of_an_order_are_replaced_twice_and_no_more() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu timeout=1h
        plan
        ready c[0..2]
        fail c3 boot-failed
        plan
        fail c4 boot-failed
        plan
        fail c5 boot-failed
        plan
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 1h: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    top up o0: c4 p/gpu8@a for c3
    release c3
    top up o0: c5 p/gpu8@a for c4
    release c4
    roll back o0: c5 BootFailed
    release c5
    train waits #1: r0 fits 3 of 4, offerings avoided until 3m
    ");
}

#[test]
fn operator_may_turn_replacements_off() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..2]
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 BootFailed
    ");
}

#[test]
fn replacement_that_would_come_too_late_is_not_requested() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu timeout=5m
        plan
        ready c[0..2]
        +2m
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 5m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    -- 2m
    roll back o0: c3 BootFailed
    ");
}

#[test]
fn replacement_that_comes_just_in_time_is_requested() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu timeout=5m
        plan
        ready c[0..2]
        +1m59s
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 5m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    -- 1m59s
    top up o0: c4 p/gpu8@a for c3
    release c3
    ");
}

#[test]
fn two_nodes_that_fail_at_once_end_the_order() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..1]
        fail c2 boot-failed
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c2 BootFailed
    ");
}

#[test]
fn a_node_that_was_ready_and_is_lost_ends_the_order() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..3] ready=no
        ready c[0..2]
        lost c2
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c2 Vanished
    ");
}

#[test]
fn the_last_room_of_a_pool_is_given_to_one_of_two_orders() {
    assert_snapshot!(check("
        pool p nodes=9 : zone=a price=10
        gang one 4x8gpu
        gang two 4x8gpu
        plan
        ready c[0..2]
        ready c[4..6]
        fail c3 boot-failed
        fail c7 boot-failed
        plan
        plan
    "), @"
    order o0 for one: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    order o1 for two: 4 x p/gpu8@a by 15m: c4[0-7] c5[0-7] c6[0-7] c7[0-7]
    top up o0: c8 p/gpu8@a for c3
    release c3
    two assembles o1: 3 of 4 by 15m
    o0 gets c4 from o1 for c8
    one assembles o0: 3 of 4 by 15m
    two assembles o1: 3 of 4 by 15m
    ");
}

#[test]
fn without_room_in_the_pool_nothing_is_replaced() {
    assert_snapshot!(check("
        pool p nodes=4 : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..2]
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 BootFailed
    ");
}

#[test]
fn without_budget_nothing_is_replaced() {
    assert_snapshot!(check("
        pool p budget=49 : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..2]
        fail c3 boot-failed
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 BootFailed
    ");
}

#[test]
fn a_replacement_that_has_likely_run_out_too_is_not_worth_waiting_for() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=11
        gang probe 1x8gpu if:zone=b
        plan
        fail c0 stock-out
        plan
        cancel probe
        +10m
        gang train 4x8gpu
        plan
        ready c1
        fail c4 stock-out
        plan
    "), @"
    order o0 for probe: 1 x p/gpu8@b by 15m: c0[0-7]
    roll back o0: c0 StockOut
    -- 10m
    order o1 for train: 4 x p/gpu8@a by 25m: c1[0-7] c2[0-7] c3[0-7] c4[0-7]
    release c0
    -- 10m
    roll back o1: c4 StockOut
    ");
}

#[test]
fn queue_gets_no_replacement_from_a_tier_it_may_not_use() {
    assert_snapshot!(check("
        queue team parent=default tiers=gold
        pool g tier=gold : zone=a price=10
        pool s tier=spot warm=1 : zone=b price=1
        plan
        gang train 4x8gpu queue=team
        plan
        ready c[1..3]
        fail c4 stock-out
        plan
    "), @"
    stock c0 s/gpu8@b
    order o0 for train: 4 x g/gpu8@a by 15m: c1[0-7] c2[0-7] c3[0-7] c4[0-7]
    roll back o0: c4 StockOut
    ");
}
