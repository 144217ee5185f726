//! Nodes that are coming for no order, or stopped, are used before anything new is bought.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn coming_node_without_an_order_is_adopted_instead_of_bought() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang first 3x8gpu
        plan
        launched c0
        launched c1
        cancel first
        gang second 2x8gpu
        plan
        plan
    "), @"
    order o0 for first: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    roll back o0: cancelled
    second waits #1: not considered
    order o1 for second: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    release c2
    ");
}

#[test]
fn adopted_nodes_come_before_new_ones_and_the_rest_is_bought() {
    assert_snapshot!(check("
        pool p warm=2 : zone=a price=10
        plan
        launched c0
        gang train 4x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    stock c4 p/gpu8@a, c5 p/gpu8@a
    train assembles o0: 0 of 4 by 15m
    ");
}

#[test]
fn a_stopped_node_is_woken_instead_of_bought() {
    assert_snapshot!(check("
        pool p stopped=2 : zone=a price=10 start=1m
        plan
        ready c[0..1]
        plan
        lost c0
        parked c0
        lost c1
        parked c1
        plan
        gang train 3x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    park c0
    park c1
    nothing
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    stock c3 p/gpu8@a, c4 p/gpu8@a
    train assembles o0: 0 of 3 by 15m
    ");
}

#[test]
fn node_that_is_being_stopped_is_not_promised() {
    assert_snapshot!(check("
        pool p stopped=1 : zone=a price=10 start=1m
        plan
        ready c0
        plan
        gang train 1x8gpu
        plan
    "), @"
    stock c0 p/gpu8@a
    park c0
    order o0 for train: 1 x p/gpu8@a by 15m: c1[0-7]
    ");
}

#[test]
fn two_orders_never_adopt_the_same_node() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang first 3x8gpu
        plan
        cancel first
        gang one 2x8gpu
        gang two 2x8gpu
        plan
        plan
    "), @"
    order o0 for first: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    roll back o0: cancelled
    one waits #1: not considered
    two waits #2: not considered
    order o1 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    order o2 for two: 2 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    ");
}

#[test]
fn nodes_under_way_of_a_failed_order_serve_the_next_order() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : zone=a price=10 ; zone=b price=11
        gang train 4x8gpu
        plan
        launched c0
        launched c1
        fail c3 stock-out
        plan
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    roll back o0: c3 StockOut
    order o1 for train: 2 x p/gpu8@a + 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7] c4[0-7] c5[0-7]
    release c3
    release c2
    ");
}

#[test]
fn unneeded_nodes_of_a_failed_order_are_released_coming_ones_at_once() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p idle=10m : zone=a price=10
        gang train 3x8gpu
        plan
        ready c0
        fail c2 stock-out
        cancel train
        plan
        plan wake
        +10m
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    roll back o0: cancelled
    release c2
    release c1
    wake at 10m
    -- 10m
    release c0
    ");
}

#[test]
fn a_node_whose_time_is_up_is_not_adopted() {
    assert_snapshot!(check("
        pool p patience=4m warm=1 : zone=a price=10 ; zone=b price=11
        plan
        +4m
        gang train 1x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a
    -- 4m
    order o0 for train: 1 x p/gpu8@a by 19m: c1[0-7]
    release c0
    stock c2 p/gpu8@b
    -- 4m
    train assembles o0: 0 of 1 by 19m
    ");
}

#[test]
fn a_node_that_is_being_given_back_is_not_adopted() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang first 1x8gpu
        plan
        cancel first
        plan
        plan
        gang second 1x8gpu
        plan
    "), @"
    order o0 for first: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: cancelled
    release c0
    order o1 for second: 1 x p/gpu8@a by 15m: c1[0-7]
    ");
}

#[test]
fn a_failed_node_is_not_adopted() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang first 2x8gpu
        plan
        fail c0 throttled
        cancel first
        gang second 2x8gpu
        plan
        plan
    "), @"
    order o0 for first: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    roll back o0: cancelled
    second waits #1: not considered
    order o1 for second: 2 x p/gpu8@a by 15m: c1[0-7] c2[0-7]
    release c0
    ");
}

#[test]
fn nodes_of_another_kind_are_not_adopted() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=a type=s gpus=4 price=5
        gang first 1x4gpu
        plan
        cancel first
        gang second 1x8gpu
        plan
        plan
    "), @"
    order o0 for first: 1 x p/s@a by 15m: c0[0-3]
    roll back o0: cancelled
    second waits #1: not considered
    order o1 for second: 1 x p/gpu8@a by 15m: c1[0-7]
    release c0
    ");
}

#[test]
fn nodes_in_another_zone_are_not_adopted_by_a_gang_that_stays_in_one() {
    assert_snapshot!(check("
        node b1 gpus=8 zone=b
        pool p : zone=a price=10 ; zone=b price=20
        gang first 1x8gpu if:zone=a
        plan
        cancel first
        gang second 2x8gpu topology=required:zone
        plan
        plan
    "), @"
    order o0 for first: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: cancelled
    second waits #1: not considered
    order o1 for second: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    ");
}

#[test]
fn a_tier_that_a_queue_may_not_use_is_not_adopted_from() {
    assert_snapshot!(check("
        queue team parent=default tiers=gold
        pool s tier=spot warm=1 : zone=a price=1
        pool g tier=gold : zone=a price=10
        plan
        gang train 1x8gpu queue=team
        plan
    "), @"
    stock c0 s/gpu8@a
    order o0 for train: 1 x g/gpu8@a by 15m: c1[0-7]
    ");
}

#[test]
fn one_gang_adopts_what_another_gave_up_while_a_third_still_assembles() {
    assert_snapshot!(check("
        pool p nodes=4 : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        plan
        ready c2
        launched c3
        cancel two
        gang three 2x8gpu
        plan
        plan
        ready c3
        plan
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    order o1 for two: 2 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    roll back o1: cancelled
    one assembles o0: 0 of 2 by 15m
    three waits #1: not considered
    order o2 for three: 1 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    one assembles o0: 0 of 2 by 15m
    admit three: c2[0-7] c3[0-7]
    one assembles o0: 0 of 2 by 15m
    ");
}

#[test]
fn used_node_that_is_briefly_not_ready_is_not_adopted() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang one 1x8gpu
        plan
        ready c0
        plan
        started one
        ready c0 ready=no
        gang two 1x8gpu
        plan
        ready c0
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    admit one: c0[0-7]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-7]
    one runs
    one runs
    two assembles o1: 0 of 1 by 15m
    ");
}
