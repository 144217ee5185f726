//! Transient failures are retried with backoff and a bound; others end the order.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn claim_the_provider_puts_off_is_retried_with_backoff() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 throttled
        plan wake
        +4s
        plan
        +1s
        plan
        fail c0 throttled
        plan wake
        +10s
        plan
        fail c0 throttled
        plan wake
        +20s
        plan
        launched c0
        ready c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    train assembles o0: 0 of 1 by 15m
    wake at 5s
    -- 4s
    train assembles o0: 0 of 1 by 15m
    -- 5s
    retry c0 (1)
    -- 5s
    train assembles o0: 0 of 1 by 15m
    wake at 15s
    -- 15s
    retry c0 (2)
    -- 15s
    train assembles o0: 0 of 1 by 15m
    wake at 35s
    -- 35s
    retry c0 (3)
    -- 35s
    admit train: c0[0-7]
    ");
}

#[test]
fn claim_the_provider_keeps_putting_off_is_given_up() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        pool q : zone=b price=11
        gang train 2x8gpu timeout=30m
        plan
        fail c0 throttled
        +5s
        plan
        fail c0 throttled
        +10s
        plan
        fail c0 throttled
        +20s
        plan
        fail c0 throttled
        +40s
        plan
        fail c0 throttled
        plan
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 30m: c0[0-7] c1[0-7]
    -- 5s
    retry c0 (1)
    -- 15s
    retry c0 (2)
    -- 35s
    retry c0 (3)
    -- 1m15s
    retry c0 (4)
    -- 1m15s
    top up o0: c2 p/gpu8@a for c0
    release c0
    -- 1m15s
    train assembles o0: 0 of 2 by 30m
    ");
}

#[test]
fn claims_that_are_put_off_together_are_retried_together() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 3x8gpu
        plan
        fail c0 throttled
        fail c2 throttled
        plan wake
        +5s
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    train assembles o0: 0 of 3 by 15m
    wake at 5s
    -- 5s
    retry c0 (1)
    retry c2 (1)
    ");
}

#[test]
fn being_put_off_says_nothing_against_an_offering() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 throttled
        gang other 1x8gpu
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for other: 1 x p/gpu8@a by 15m: c1[0-7]
    train assembles o0: 0 of 1 by 15m
    ");
}

#[test]
fn one_claim_put_off_and_one_gone_for_good_end_the_order() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 3x8gpu timeout=4m
        plan
        ready c2
        fail c0 throttled
        fail c1 stock-out
        plan
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 4m: c0[0-7] c1[0-7] c2[0-7]
    roll back o0: c1 StockOut
    release c1
    release c0
    train waits #1: r0 fits 1 of 3, offerings avoided until 3m
    ");
}

#[test]
fn nothing_is_retried_after_the_deadline_of_the_order() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu timeout=4m
        plan
        +3m55s
        fail c0 throttled
        +5s
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 4m: c0[0-7]
    -- 4m
    roll back o0: too late
    ");
}

#[test]
fn the_time_of_the_order_bounds_all_its_retries() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu timeout=4m
        plan
        +3m58s
        fail c0 throttled
        plan wake
        +2s
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 4m: c0[0-7]
    -- 3m58s
    train assembles o0: 0 of 1 by 4m
    wake at 4m
    -- 4m
    roll back o0: too late
    -- 4m
    release c0
    train waits #1: r0 fits 0 of 1, offerings avoided until 7m
    ");
}

#[test]
fn permanent_failures_of_every_kind_end_the_order_and_are_remembered() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : zone=a price=10
        pool q : zone=b price=11
        pool r : zone=c price=12
        pool s : zone=d price=13
        gang train 1x8gpu
        plan
        fail c0 stock-out
        plan
        plan
        fail c1 boot-failed
        plan
        plan
        fail c2 gpus-missing
        plan
        plan
        forgotten c3
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    order o1 for train: 1 x q/gpu8@b by 15m: c1[0-7]
    release c0
    roll back o1: c1 BootFailed
    order o2 for train: 1 x r/gpu8@c by 15m: c2[0-7]
    release c1
    roll back o2: c2 GpusMissing
    order o3 for train: 1 x s/gpu8@d by 15m: c3[0-7]
    release c2
    roll back o3: c3 Vanished
    release c3
    train waits #1: r0 fits 0 of 1, offerings avoided until 3m
    ");
}

#[test]
fn claim_without_an_order_is_retried_and_then_released() {
    assert_snapshot!(check("
        pool p warm=1 : zone=a price=10
        plan
        fail c0 throttled
        plan wake
        +5s
        plan
        fail c0 throttled
        +10s
        plan
        fail c0 throttled
        +20s
        plan
        fail c0 throttled
        +40s
        plan
        fail c0 throttled
        plan
        forgotten c0
        plan
    "), @"
    stock c0 p/gpu8@a
    nothing
    wake at 5s
    -- 5s
    retry c0 (1)
    -- 15s
    retry c0 (2)
    -- 35s
    retry c0 (3)
    -- 1m15s
    retry c0 (4)
    -- 1m15s
    release c0
    -- 1m15s
    nothing
    ");
}

#[test]
fn the_same_failure_told_twice_is_one_failure() {
    assert_snapshot!(check("
        pool p warm=1 : zone=a price=10
        plan
        fail c0 stock-out
        +2m
        fail c0 stock-out
        plan
        plan wake
    "), @"
    stock c0 p/gpu8@a
    -- 2m
    release c0
    -- 2m
    nothing
    wake at 3m
    ");
}

#[test]
fn being_put_off_told_twice_does_not_put_it_off_longer() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        fail c0 throttled
        +3s
        fail c0 throttled
        +2s
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    -- 5s
    retry c0 (1)
    ");
}
