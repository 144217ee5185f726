//! Timeouts of an order, and of each stage of its claims.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_machine_that_is_not_launched_in_time_ends_its_order() {
    assert_snapshot!(check("
        pool p patience=4m/20m/20m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan wake
        +3m59s
        plan
        +1s
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    wake at 30m
    -- 3m59s
    train assembles o0: 0 of 1 by 30m
    -- 4m
    top up o0: c1 p/gpu8@a for c0
    release c0
    -- 4m
    train assembles o0: 0 of 1 by 30m
    ");
}

#[test]
fn a_machine_that_does_not_join_in_time_ends_its_order() {
    assert_snapshot!(check("
        pool p patience=20m/4m/20m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan wake
        +3m
        launched c0
        plan wake
        +3m59s
        plan
        +1s
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    wake at 30m
    -- 3m
    train assembles o0: 0 of 1 by 30m
    wake at 7m
    -- 6m59s
    train assembles o0: 0 of 1 by 30m
    -- 7m
    top up o0: c1 p/gpu8@a for c0
    release c0
    -- 7m
    train assembles o0: 0 of 1 by 30m
    ");
}

#[test]
fn a_node_that_does_not_show_its_gpus_in_time_ends_its_order() {
    assert_snapshot!(check("
        pool p patience=20m/20m/4m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan
        +2m
        launched c0
        plan
        +1m
        ready c0 gpus=7
        plan wake
        +3m59s
        ready c0 gpus=7
        plan
        +1s
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    -- 2m
    train assembles o0: 0 of 1 by 30m
    -- 3m
    train assembles o0: 0 of 1 by 30m
    wake at 7m
    -- 6m59s
    train assembles o0: 0 of 1 by 30m
    -- 7m
    top up o0: c1 p/gpu8@a for c0
    release c0
    -- 7m
    train assembles o0: 0 of 1 by 30m
    ");
}

#[test]
fn every_stage_has_its_own_time() {
    assert_snapshot!(check("
        pool p patience=4m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan wake
        +3m59s
        launched c0
        plan wake
        +3m59s
        ready c0 gpus=0
        plan wake
        +3m59s
        ready c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    wake at 30m
    -- 3m59s
    train assembles o0: 0 of 1 by 30m
    wake at 7m59s
    -- 7m58s
    train assembles o0: 0 of 1 by 30m
    wake at 11m58s
    -- 11m57s
    admit train: c0[0-7]
    ");
}

#[test]
fn being_seen_again_without_gpus_does_not_start_the_time_anew() {
    assert_snapshot!(check("
        pool p patience=4m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan
        launched c0
        ready c0 gpus=6
        +3m
        ready c0 gpus=7
        launched c0
        plan wake
        +1m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    -- 3m
    train assembles o0: 0 of 1 by 30m
    wake at 4m
    -- 4m
    top up o0: c1 p/gpu8@a for c0
    release c0
    ");
}

#[test]
fn no_stage_is_given_less_time_than_a_boot_takes() {
    assert_snapshot!(check("
        pool p patience=1s : zone=a price=10 boot=8m
        gang train 1x8gpu
        plan wake
        +7m59s
        plan
        +1s
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    wake at 15m
    -- 7m59s
    train assembles o0: 0 of 1 by 15m
    -- 8m
    roll back o0: c0 overdue: Launch
    ");
}

#[test]
fn the_deadline_of_the_order_comes_before_that_of_a_stage() {
    assert_snapshot!(check("
        pool p patience=20m : zone=a price=10
        gang train 2x8gpu timeout=5m
        plan wake
        ready c0
        +5m
        plan
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 5m: c0[0-7] c1[0-7]
    wake at 5m
    -- 5m
    roll back o0: too late
    -- 5m
    release c1
    train waits #1: r0 fits 1 of 2, offerings avoided until 8m
    ");
}

#[test]
fn deadline_is_the_reason_when_both_are_over() {
    assert_snapshot!(check("
        pool p patience=5m : zone=a price=10
        gang train 2x8gpu timeout=5m
        plan
        ready c0
        +5m
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 5m: c0[0-7] c1[0-7]
    -- 5m
    roll back o0: too late
    ");
}

#[test]
fn an_overdue_claim_speaks_against_its_offering_once() {
    assert_snapshot!(check("
        pool p patience=4m : zone=a price=10
        gang train 1x8gpu timeout=30m
        plan
        +4m
        plan
        plan
        plan wake
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    -- 4m
    top up o0: c1 p/gpu8@a for c0
    release c0
    -- 4m
    train assembles o0: 0 of 1 by 30m
    -- 4m
    train assembles o0: 0 of 1 by 30m
    wake at 8m
    ");
}

#[test]
fn overdue_claim_without_an_order_is_released_and_avoided() {
    assert_snapshot!(check("
        pool p warm=1 patience=4m : zone=a price=10
        plan wake
        +3m59s
        plan
        +1s
        plan
        plan wake
        +3m
        plan
    "), @"
    stock c0 p/gpu8@a
    -- 3m59s
    nothing
    -- 4m
    release c0
    -- 4m
    nothing
    wake at 7m
    -- 7m
    stock c1 p/gpu8@a
    ");
}
