//! Orders that do not become complete are rolled back as a whole.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn one_failed_claim_rolls_the_whole_order_back() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10
        gang train 4x8gpu
        plan
        ready c0
        launched c1
        fail c2 stock-out
        plan
        gang small 2x8gpu prio=1
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: a1[0-7] c0[0-7] c1[0-7] c2[0-7]
    roll back o0: c2 StockOut
    admit small: a1[0-7] c0[0-7]
    release c2
    release c1
    train waits #1: r0 fits 0 of 4, offerings avoided until 3m
    ");
}

#[test]
fn an_order_is_given_up_at_its_deadline_and_not_before() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu timeout=10m
        plan wake
        ready c0
        +9m59s
        plan
        +1s
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 10m: c0[0-7] c1[0-7]
    wake at 10m
    -- 9m59s
    train assembles o0: 1 of 2 by 10m
    -- 10m
    roll back o0: too late
    ");
}

#[test]
fn an_order_complete_at_its_deadline_is_complete() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu timeout=10m
        plan
        +10m
        ready c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 10m: c0[0-7]
    -- 10m
    admit train: c0[0-7]
    ");
}

#[test]
fn a_held_node_lost_rolls_back_and_blames_no_offering() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c0 ready=no
        lost a1
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    roll back o0: a1 lost
    order o1 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    ");
}

#[test]
fn a_held_node_that_is_no_longer_ready_counts_as_lost() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        node a1 gpus=8 zone=a ready=no
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    roll back o0: a1 lost
    ");
}

#[test]
fn a_ready_node_of_the_order_lost_is_a_failed_claim() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c0
        lost c0
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    roll back o0: c0 Vanished
    ");
}

#[test]
fn a_claim_that_disappears_is_a_failed_claim() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        forgotten c1
        plan
        forgotten c1
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    top up o0: c2 p/gpu8@a for c1
    release c1
    train assembles o0: 0 of 2 by 15m
    ");
}

#[test]
fn a_node_smaller_than_promised_is_as_good_as_none() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu/50cpu
        plan
        ready c0 cpu=10
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    top up o0: c1 p/gpu8@a for c0
    release c0
    train assembles o0: 0 of 1 by 15m
    ");
}

#[test]
fn nodes_left_by_a_failed_order_serve_the_next_gang() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 3x8gpu
        gang small 2x8gpu never
        plan
        ready c[0..1]
        fail c2 stock-out
        plan
        policy fifo-overtake
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    small waits #1: r0 fits 0 of 2, provisioning off
    roll back o0: c2 StockOut
    small waits #1: not considered
    admit small: c0[0-7] c1[0-7]
    release c2
    train waits #1: r0 fits 2 of 3, offerings avoided until 3m
    ");
}
