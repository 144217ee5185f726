//! What a pool keeps ready ahead of need: warm nodes and a buffer, within its limits and after waiting gangs.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_warm_pool_is_filled_kept_and_refilled_when_a_gang_takes_from_it() {
    assert_snapshot!(check("
        pool p warm=2 : zone=a price=10
        plan targets
        ready c[0..1]
        plan
        +24h
        plan
        gang train 1x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    p should have 2 free, 0 stopped (warm 2, buffer 0, spare 0, scheduled 0, expected 0)
    nothing
    -- 1d
    nothing
    -- 1d
    admit train: c0[0-7]
    stock c2 p/gpu8@a
    -- 1d
    train runs
    ");
}

#[test]
fn a_gang_that_finds_its_nodes_warm_starts_at_once() {
    assert_snapshot!(check("
        pool p warm=2 : zone=a price=10
        plan
        ready c[0..1]
        gang train 2x8gpu
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    admit train: c0[0-7] c1[0-7]
    stock c2 p/gpu8@a, c3 p/gpu8@a
    ");
}

#[test]
fn nodes_above_the_warm_target_are_released_when_a_gang_ends() {
    assert_snapshot!(check("
        pool p warm=1 idle=10m : zone=a price=10
        plan
        ready c0
        gang train 1x8gpu
        plan
        ready c1
        end train
        plan
        +10m
        plan
    "), @"
    stock c0 p/gpu8@a
    admit train: c0[0-7]
    stock c1 p/gpu8@a
    nothing
    -- 10m
    release c0
    ");
}

#[test]
fn a_buffer_of_nodes_stays_free_beside_what_is_used() {
    assert_snapshot!(check("
        pool p buffer=1 : zone=a price=10
        plan targets
        ready c0
        gang train 1x8gpu
        plan targets
        ready c1
        plan targets
    "), @"
    stock c0 p/gpu8@a
    p should have 1 free, 0 stopped (warm 0, buffer 1, spare 0, scheduled 0, expected 0)
    admit train: c0[0-7]
    stock c1 p/gpu8@a
    p should have 1 free, 0 stopped (warm 0, buffer 1, spare 0, scheduled 0, expected 0)
    train runs
    p should have 1 free, 0 stopped (warm 0, buffer 1, spare 0, scheduled 0, expected 0)
    ");
}

#[test]
fn a_buffer_in_percent_grows_with_what_is_used_and_is_rounded_up() {
    assert_snapshot!(check("
        pool p buffer=10% : zone=a price=10
        plan targets
        gang one 3x8gpu
        plan targets
        ready c[0..2]
        gang two 8x8gpu
        plan targets
        plan targets
    "), @"
    nothing
    order o0 for one: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    stock c3 p/gpu8@a
    p should have 1 free, 0 stopped (warm 0, buffer 1, spare 0, scheduled 0, expected 0)
    admit one: c0[0-7] c1[0-7] c2[0-7]
    order o1 for two: 8 x p/gpu8@a by 15m: c3[0-7] c4[0-7] c5[0-7] c6[0-7] c7[0-7] c8[0-7] c9[0-7] c10[0-7]
    stock c11 p/gpu8@a, c12 p/gpu8@a
    p should have 2 free, 0 stopped (warm 0, buffer 2, spare 0, scheduled 0, expected 0)
    one runs
    two assembles o1: 0 of 8 by 15m
    p should have 2 free, 0 stopped (warm 0, buffer 2, spare 0, scheduled 0, expected 0)
    ");
}

#[test]
fn a_buffer_comes_on_top_of_what_is_always_warm() {
    assert_snapshot!(check("
        pool p warm=1 buffer=2 : zone=a price=10
        plan targets
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a, c2 p/gpu8@a
    p should have 3 free, 0 stopped (warm 1, buffer 2, spare 0, scheduled 0, expected 0)
    ");
}

#[test]
fn the_most_that_any_reason_asks_for_counts_and_not_the_sum() {
    assert_snapshot!(check("
        pool p warm=3 schedule=0_0_*_*_*/UTC/10h/4 forecast=8 : zone=a price=10
        expect p 2,2,2
        plan targets
        expect p 6,6,6
        plan targets
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a, c2 p/gpu8@a, c3 p/gpu8@a
    p should have 4 free, 0 stopped (warm 3, buffer 0, spare 0, scheduled 4, expected 2)
    stock c4 p/gpu8@a, c5 p/gpu8@a
    p should have 6 free, 0 stopped (warm 3, buffer 0, spare 0, scheduled 4, expected 6)
    ");
}

#[test]
fn limits_hold_for_what_is_kept_ahead_of_need() {
    assert_snapshot!(check("
        pool n warm=5 nodes=2 : zone=a price=10
        pool g warm=5 gpus=23 : zone=a price=10
        pool b warm=5 budget=35 : zone=a price=10
        pool m warm=5 : zone=a price=10 max=1 ; zone=b price=20 max=2
        plan targets
    "), @"
    stock c0 n/gpu8@a, c1 n/gpu8@a
    stock c2 g/gpu8@a, c3 g/gpu8@a
    stock c4 b/gpu8@a, c5 b/gpu8@a, c6 b/gpu8@a
    stock c7 m/gpu8@a, c8 m/gpu8@b, c9 m/gpu8@b
    n should have 5 free, 0 stopped (warm 5, buffer 0, spare 0, scheduled 0, expected 0)
    g should have 5 free, 0 stopped (warm 5, buffer 0, spare 0, scheduled 0, expected 0)
    b should have 5 free, 0 stopped (warm 5, buffer 0, spare 0, scheduled 0, expected 0)
    m should have 5 free, 0 stopped (warm 5, buffer 0, spare 0, scheduled 0, expected 0)
    ");
}

#[test]
fn limits_hold_with_orders_and_stock_in_one_plan() {
    assert_snapshot!(check("
        pool p warm=3 nodes=4 : zone=a price=10
        gang train 2x8gpu
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    stock c2 p/gpu8@a, c3 p/gpu8@a
    ");
}

#[test]
fn waiting_gangs_come_before_expected_ones() {
    assert_snapshot!(check("
        pool p warm=3 nodes=4 : zone=a price=10
        plan
        gang train 4x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a, c2 p/gpu8@a
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    train assembles o0: 0 of 4 by 15m
    ");
}

#[test]
fn a_warm_pool_gives_way_to_a_gang_that_needs_other_nodes_of_it() {
    assert_snapshot!(check("
        pool p warm=2 nodes=2 idle=10m : zone=a price=1 ; zone=a gpus=16 type=big price=30
        plan
        ready c[0..1]
        plan
        gang train 1x16gpu
        plan wake
        +10m
        plan
        lost c0
        forgotten c0
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    nothing
    train waits #1: r0 fits 0 of 1, pools full (room 0)
    wake at 10m
    -- 10m
    release c0
    release c1
    train waits #1: r0 fits 0 of 1, pools full (room 0)
    -- 10m
    order o0 for train: 1 x p/big@a by 25m: c2[0-15]
    ");
}

#[test]
fn nothing_is_stocked_from_an_offering_that_is_avoided() {
    assert_snapshot!(check("
        pool p warm=1 : zone=a price=10
        plan
        fail c0 stock-out
        plan wake
        forgotten c0
        plan wake
        +2m59s
        plan
        +1s
        plan
    "), @"
    stock c0 p/gpu8@a
    release c0
    wake at 3m
    nothing
    wake at 3m
    -- 2m59s
    nothing
    -- 3m
    stock c1 p/gpu8@a
    ");
}

#[test]
fn stock_comes_from_elsewhere_when_the_cheapest_ran_out() {
    assert_snapshot!(check("
        pool p warm=2 : zone=a price=10 ; zone=b price=12
        plan
        fail c0 stock-out
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    release c0
    stock c2 p/gpu8@b
    nothing
    ");
}

#[test]
fn stock_is_bought_where_it_is_paid_for_already() {
    assert_snapshot!(check("
        pool p warm=3 : zone=a price=1 ; zone=b price=50 capacity=reserved max=2
        plan
    "), @"stock c0 p/gpu8@b, c1 p/gpu8@b, c2 p/gpu8@a");
}

#[test]
fn lowered_target_releases_coming_nodes_at_once() {
    assert_snapshot!(check("
        pool p warm=3 idle=10m : zone=a price=10
        plan
        ready c0
        pool p warm=1 idle=10m : zone=a price=10
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a, c2 p/gpu8@a
    release c1
    release c2
    ");
}

#[test]
fn orders_come_first_and_warm_nodes_under_way_are_theirs() {
    assert_snapshot!(check("
        pool p warm=2 : zone=a price=10
        plan
        gang train 2x8gpu
        plan
        ready c[0..1]
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    stock c2 p/gpu8@a, c3 p/gpu8@a
    admit train: c0[0-7] c1[0-7]
    ");
}

#[test]
fn nothing_is_bought_to_grow_onto_beyond_a_limit() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p grow=yes : zone=a price=10
        queue team gpu=16
        gang wide 1..4x8gpu preemptible for=10h queue=team
        plan
        started wide
        plan
    "), @"
    admit wide: a1[0-7]
    stock c0 p/gpu8@a
    wide runs
    ");
}
