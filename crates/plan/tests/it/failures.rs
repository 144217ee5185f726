//! Orders that do not come together are given up whole.

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
    release c1
    release c2
    admit small: a1[0-7] c0[0-7]
    train waits #1: r0 fits 0 of 4, offerings avoided until 3m
    ");
}

#[test]
fn the_next_offering_is_tried_and_the_failed_one_left_alone() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=12
        gang train 2x8gpu
        plan
        fail c0 stock-out
        plan
        plan
        gang other 1x8gpu
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    roll back o0: c0 StockOut
    release c0
    release c1
    order o1 for train: 2 x p/gpu8@b by 15m: c2[0-7] c3[0-7]
    order o2 for other: 1 x p/gpu8@b by 15m: c4[0-7]
    train assembles o1: 0 of 2 by 15m
    ");
}

#[test]
fn nobody_is_sent_to_an_offering_that_failed_this_very_cycle() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=12
        gang train 1x8gpu
        plan
        fail c0 boot-failed
        gang other 1x8gpu
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 BootFailed
    release c0
    order o1 for other: 1 x p/gpu8@b by 15m: c1[0-7]
    ");
}

#[test]
fn a_failed_offering_is_back_after_a_while() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 stock-out
        plan
        plan wake
        +2m59s
        plan
        +1s
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    release c0
    train waits #1: r0 fits 0 of 1, offerings avoided until 3m
    wake at 3m
    -- 2m59s
    train waits #1: r0 fits 0 of 1, offerings avoided until 3m
    -- 3m
    order o1 for train: 1 x p/gpu8@a by 18m: c1[0-7]
    ");
}

#[test]
fn each_further_failure_doubles_the_pause() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 stock-out
        plan
        +3m
        plan
        fail c1 stock-out
        plan
        plan wake
        +6m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    release c0
    -- 3m
    order o1 for train: 1 x p/gpu8@a by 18m: c1[0-7]
    -- 3m
    roll back o1: c1 StockOut
    release c1
    -- 3m
    train waits #1: r0 fits 0 of 1, offerings avoided until 9m
    wake at 9m
    -- 9m
    order o2 for train: 1 x p/gpu8@a by 24m: c2[0-7]
    ");
}

#[test]
fn a_node_that_comes_up_ends_the_streak() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 stock-out
        plan
        +3m
        plan
        +1m
        ready c1
        plan
        gang next 1x8gpu
        plan
        fail c2 stock-out
        plan
        plan wake
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    release c0
    -- 3m
    order o1 for train: 1 x p/gpu8@a by 18m: c1[0-7]
    -- 4m
    admit train: c1[0-7]
    -- 4m
    order o2 for next: 1 x p/gpu8@a by 19m: c2[0-7]
    train runs
    -- 4m
    roll back o2: c2 StockOut
    release c2
    train runs
    -- 4m
    train runs
    next waits #1: r0 fits 0 of 1, offerings avoided until 7m
    wake at 7m
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
    release c1
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
fn a_gang_whose_orders_keep_failing_cools_off() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=11 ; zone=c price=12
        gang train 1x8gpu attempts=2
        plan
        fail c0 stock-out
        plan
        plan
        fail c1 stock-out
        plan
        plan wake
        gang other 1x8gpu prio=1
        plan
        +30m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    release c0
    order o1 for train: 1 x p/gpu8@b by 15m: c1[0-7]
    roll back o1: c1 StockOut
    release c1
    train waits #1: r0 fits 0 of 1, cooling off until 30m
    wake at 30m
    order o2 for other: 1 x p/gpu8@c by 15m: c2[0-7]
    train waits #1: r0 fits 0 of 1, cooling off until 30m
    -- 30m
    roll back o2: too late
    release c2
    order o3 for train: 1 x p/gpu8@a by 45m: c3[0-7]
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
    release c0
    order o1 for train: 2 x p/gpu8@a by 15m: c1[0-7] c2[0-7]
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
    release c0
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
    release c0
    release c1
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
    roll back o0: c1 Vanished
    release c0
    release c1
    train waits #1: r0 fits 0 of 2, offerings avoided until 3m
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
    roll back o0: c0 GpusMissing
    release c0
    train waits #1: r0 fits 0 of 1, offerings avoided until 3m
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
    release c2
    small waits #1: r0 fits 0 of 2, provisioning off
    admit small: c0[0-7] c1[0-7]
    train waits #1: r0 fits 2 of 3, offerings avoided until 3m
    ");
}
