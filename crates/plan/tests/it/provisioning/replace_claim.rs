//! Replacing one failed node of an order, where that is cheaper than rolling the order back.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn one_node_that_fails_to_boot_is_replaced_while_the_others_stay() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        +2m
        ready c[0..2]
        fail c3 boot-failed
        plan
        plan
        ready c4
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    -- 2m
    top up o0: c4 p/gpu8@a for c3
    release c3
    -- 2m
    train assembles o0: 3 of 4 by 15m
    -- 2m
    admit train: c0[0-7] c1[0-7] c2[0-7] c4[0-7]
    ");
}

#[test]
fn a_stock_out_is_replaced_from_elsewhere_and_not_from_where_it_ran_out() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=11
        gang train 4x8gpu
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    top up o0: c4 p/gpu8@b for c3
    release c3
    train assembles o0: 3 of 4 by 15m
    ");
}

#[test]
fn with_nowhere_else_to_ask_a_stock_out_ends_the_order() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 StockOut
    ");
}

#[test]
fn gang_bound_to_one_zone_gets_no_replacement_from_another() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=11
        gang train 4x8gpu topology=required:zone
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 StockOut
    order o1 for train: 4 x p/gpu8@b by 15m: c4[0-7] c5[0-7] c6[0-7] c7[0-7]
    release c3
    ");
}

#[test]
fn gang_bound_to_one_zone_gets_a_replacement_within_it() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=a rack=r2 type=other price=14 ; zone=b price=11
        gang train 4x8gpu topology=required:zone
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    top up o0: c4 p/other@a for c3
    release c3
    ");
}

#[test]
fn the_replacement_is_of_the_same_kind() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        pool p : zone=a price=10 ; zone=b price=2 model=A100 ; zone=b price=3 gpus=16 type=big ; zone=b price=4 cpu=50 type=thin
        ready c[0..2]
        fail c3 stock-out
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 StockOut
    ");
}

#[test]
fn members_stay_where_they_may_run() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=11 ; zone=c price=12
        gang train 4x8gpu if:zone!=b
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    top up o0: c4 p/gpu8@c for c3
    release c3
    ");
}

#[test]
fn two_orders_that_lose_a_node_each_get_replacements_in_turn() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang one 4x8gpu
        gang two 4x8gpu
        plan
        ready c[0..2]
        ready c[4..6]
        fail c3 boot-failed
        fail c7 boot-failed
        plan
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
    admit one: c0[0-7] c1[0-7] c2[0-7] c4[0-7]
    top up o1: c9 p/gpu8@a for c7
    release c7
    ");
}

#[test]
fn a_stopped_node_takes_the_place_of_a_failed_one() {
    assert_snapshot!(check("
        pool p stopped=1 : zone=a price=10 start=30s
        plan
        ready c0
        plan
        gang train 4x8gpu
        plan
        lost c0
        parked c0
        ready c[1..3]
        fail c4 boot-failed
        plan
        ready c0
        plan
    "), @"
    stock c0 p/gpu8@a
    park c0
    order o0 for train: 4 x p/gpu8@a by 15m: c1[0-7] c2[0-7] c3[0-7] c4[0-7]
    top up o0: c0 p/gpu8@a for c4
    release c4
    admit train: c1[0-7] c2[0-7] c3[0-7] c0[0-7]
    stock c5 p/gpu8@a
    ");
}

#[test]
fn coming_node_without_an_order_replaces_a_failed_one() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x8gpu
        gang other 1x8gpu
        plan
        +1m
        launched c4
        cancel other
        plan
        ready c[0..1]
        launched c2
        fail c3 stock-out
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    order o1 for other: 1 x p/gpu8@a by 15m: c4[0-7]
    -- 1m
    roll back o1: cancelled
    train assembles o0: 0 of 4 by 15m
    -- 1m
    top up o0: c4 p/gpu8@a for c3
    release c3
    ");
}

#[test]
fn failed_claim_is_released() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c0
        ready c1 gpus=7
        fail c1 gpus-missing
        plan
        lost c1
        forgotten c1
        plan
        ready c2
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    top up o0: c2 p/gpu8@a for c1
    release c1
    train assembles o0: 1 of 2 by 15m
    admit train: c0[0-7] c2[0-7]
    ");
}

#[test]
fn an_overdue_node_is_replaced_too() {
    assert_snapshot!(check("
        pool p patience=5m : zone=a price=10
        gang train 4x8gpu timeout=30m
        plan
        ready c[0..2]
        +5m
        plan
        plan
        ready c4
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 30m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    -- 5m
    top up o0: c4 p/gpu8@a for c3
    release c3
    -- 5m
    train assembles o0: 3 of 4 by 30m
    -- 5m
    admit train: c0[0-7] c1[0-7] c2[0-7] c4[0-7]
    ");
}
