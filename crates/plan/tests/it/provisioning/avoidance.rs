//! Offerings that fail are avoided for a while, and a gang whose orders keep failing pauses.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn next_offering_is_tried_and_the_failed_one_avoided() {
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
    order o1 for train: 2 x p/gpu8@b by 15m: c2[0-7] c3[0-7]
    release c0
    release c1
    order o2 for other: 1 x p/gpu8@b by 15m: c4[0-7]
    train assembles o1: 0 of 2 by 15m
    ");
}

#[test]
fn no_order_uses_an_offering_that_failed_in_this_cycle() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=12
        gang train 1x8gpu
        plan
        fail c0 stock-out
        gang other 1x8gpu
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    other waits #1: not considered
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
    -- 3m
    order o1 for train: 1 x p/gpu8@a by 18m: c1[0-7]
    release c0
    -- 3m
    roll back o1: c1 StockOut
    -- 3m
    release c1
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
    -- 3m
    order o1 for train: 1 x p/gpu8@a by 18m: c1[0-7]
    release c0
    -- 4m
    admit train: c1[0-7]
    -- 4m
    order o2 for next: 1 x p/gpu8@a by 19m: c2[0-7]
    train runs
    -- 4m
    roll back o2: c2 StockOut
    train runs
    -- 4m
    release c2
    train runs
    next waits #1: r0 fits 0 of 1, offerings avoided until 7m
    wake at 7m
    ");
}

#[test]
fn a_gang_whose_orders_keep_failing_cools_off() {
    assert_snapshot!(check("
        policy fifo top-ups=0
        pool p : zone=a price=10 ; zone=b price=11 ; zone=c price=12
        gang train 1x8gpu attempts=2
        plan
        fail c0 boot-failed
        plan
        plan
        fail c1 boot-failed
        plan
        plan wake
        gang other 1x8gpu prio=1
        plan
        +30m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 BootFailed
    order o1 for train: 1 x p/gpu8@b by 15m: c1[0-7]
    release c0
    roll back o1: c1 BootFailed
    release c1
    train waits #1: r0 fits 0 of 1, cooling off until 30m
    wake at 30m
    order o2 for other: 1 x p/gpu8@c by 15m: c2[0-7]
    train waits #1: r0 fits 0 of 1, cooling off until 30m
    -- 30m
    roll back o2: too late
    train waits #1: not considered
    ");
}
