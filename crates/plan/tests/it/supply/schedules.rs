//! Nodes for certain hours, by the clocks of a time zone, and for demand that is expected.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn scheduled_nodes_are_requested_early_enough() {
    assert_snapshot!(check("
        epoch 2026-01-05T07:00:00Z
        pool p schedule=0_8_*_*_*/UTC/10h/2 : zone=a price=10 boot=5m
        plan wake
        +54m59s
        plan
        +1s
        plan wake
        ready c[0..1]
        +5m
        plan wake
    "), @"
    nothing
    wake at 55m
    -- 54m59s
    nothing
    -- 55m
    stock c0 p/gpu8@a, c1 p/gpu8@a
    wake at 11h
    -- 1h
    nothing
    wake at 11h
    ");
}

#[test]
fn scheduled_nodes_go_after_the_hours_and_their_idle_time() {
    assert_snapshot!(check("
        epoch 2026-01-05T08:00:00Z
        pool p idle=10m schedule=0_8_*_*_*/UTC/1h/2 : zone=a price=10
        plan
        ready c[0..1]
        gang train 1x8gpu
        plan
        +55m
        end train
        plan wake
        +5m
        plan wake
        +5m
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    admit train: c0[0-7]
    -- 55m
    nothing
    wake at 1h
    -- 1h
    release c1
    wake at 1h5m
    -- 1h5m
    release c0
    ");
}

#[test]
fn a_node_in_use_counts_toward_what_is_scheduled() {
    assert_snapshot!(check("
        epoch 2026-01-05T08:00:00Z
        pool p schedule=0_8_*_*_*/UTC/10h/2 : zone=a price=10
        gang train 1x8gpu
        plan targets
        plan targets
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    stock c1 p/gpu8@a
    p should have 1 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 1, expected 0)
    train assembles o0: 0 of 1 by 15m
    p should have 1 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 1, expected 0)
    ");
}

#[test]
fn eight_o_clock_in_berlin_is_an_hour_earlier_after_the_clocks_go_forward() {
    assert_snapshot!(check("
        epoch 2026-03-28T00:00:00Z
        pool p schedule=0_8_*_*_*/Europe/Berlin/1h/1 : zone=a price=10 boot=10m
        plan wake
        +6h50m
        plan wake
        ready c0
        +2h
        plan
        +21h
        plan wake
    "), @"
    nothing
    wake at 6h50m
    -- 6h50m
    stock c0 p/gpu8@a
    wake at 8h
    -- 8h50m
    release c0
    -- 1d5h50m
    stock c1 p/gpu8@a
    wake at 1d7h
    ");
}

#[test]
fn eight_o_clock_in_berlin_is_an_hour_later_after_the_clocks_go_back() {
    assert_snapshot!(check("
        epoch 2026-10-24T00:00:00Z
        pool p schedule=0_8_*_*_*/Europe/Berlin/1h/1 : zone=a price=10 boot=10m
        plan wake
        +5h50m
        plan wake
        ready c0
        +2h
        plan
        +22h
        plan wake
    "), @"
    nothing
    wake at 5h50m
    -- 5h50m
    stock c0 p/gpu8@a
    wake at 7h
    -- 7h50m
    release c0
    -- 1d5h50m
    nothing
    wake at 1d6h50m
    ");
}

#[test]
fn a_schedule_that_spans_the_change_lasts_as_long_as_it_says() {
    assert_snapshot!(check("
        epoch 2026-03-28T22:00:00Z
        pool p idle=0s schedule=0_0_*_*_*/Europe/Berlin/4h/1 : zone=a price=10 boot=10m
        plan wake
        +50m
        plan wake
        ready c0
        +4h9m59s
        plan
        +1s
        plan
    "), @"
    nothing
    wake at 50m
    -- 50m
    stock c0 p/gpu8@a
    wake at 5h
    -- 4h59m59s
    nothing
    -- 5h
    release c0
    ");
}

#[test]
fn two_schedules_at_once_ask_for_the_larger_and_not_for_both() {
    assert_snapshot!(check("
        epoch 2026-01-05T08:00:00Z
        pool p schedule=0_8_*_*_*/UTC/10h/2 schedule=30_8_*_*_*/UTC/1h/3 : zone=a price=10 boot=5m
        plan targets
        ready c[0..1]
        +25m
        plan targets
        ready c2
        +65m
        plan targets
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    p should have 2 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 2, expected 0)
    -- 25m
    stock c2 p/gpu8@a
    p should have 3 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 3, expected 0)
    -- 1h30m
    release c0
    p should have 2 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 2, expected 0)
    ");
}

#[test]
fn expected_demand_is_provided_for_a_boot_ahead_of_its_hour() {
    assert_snapshot!(check("
        pool p forecast=8 : zone=a price=10 boot=5m
        expect p 0,3,0
        plan wake
        +55m
        plan wake
        ready c[0..2]
        +1h4m59s
        plan wake
        +1s
        plan wake
        +10m
        plan
    "), @"
    nothing
    wake at 55m
    -- 55m
    stock c0 p/gpu8@a, c1 p/gpu8@a, c2 p/gpu8@a
    wake at 1h
    -- 1h59m59s
    nothing
    wake at 2h
    -- 2h
    release c0
    release c1
    release c2
    wake at 2h55m
    -- 2h10m
    nothing
    ");
}

#[test]
fn a_forecast_is_bounded_by_what_its_pool_allows_it() {
    assert_snapshot!(check("
        pool p forecast=2 : zone=a price=10
        expect p 9
        plan targets
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    p should have 2 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 0, expected 2)
    ");
}

#[test]
fn forecast_that_only_reports_buys_nothing() {
    assert_snapshot!(check("
        pool p forecast=only : zone=a price=10
        expect p 3,3
        plan targets
    "), @"
    nothing
    p should have 0 free, 0 stopped (warm 0, buffer 0, spare 0, scheduled 0, expected 3)
    ");
}

#[test]
fn a_forecast_never_takes_away_what_is_in_use() {
    assert_snapshot!(check("
        pool p forecast=8 idle=1m : zone=a price=10
        expect p 2,0,0
        plan
        ready c[0..1]
        gang train 1x8gpu
        plan
        started train
        +1h
        plan
        +2h
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    admit train: c0[0-7]
    stock c2 p/gpu8@a
    -- 1h
    release c2
    release c1
    train runs
    -- 3h
    train runs
    ");
}

#[test]
fn nothing_is_expected_once_a_forecast_is_over() {
    assert_snapshot!(check("
        pool p forecast=8 idle=1m : zone=a price=10
        expect p 1
        plan
        ready c0
        +59m
        plan
        +1m
        plan
        +1m
        plan
    "), @"
    stock c0 p/gpu8@a
    -- 59m
    nothing
    -- 1h
    release c0
    -- 1h1m
    nothing
    ");
}
