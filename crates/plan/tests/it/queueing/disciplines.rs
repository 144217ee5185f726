//! Which gangs are backfilled before one that must wait, under the disciplines that promise it a start.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn only_the_first_that_must_wait_is_promised_a_start() {
    assert_snapshot!(check("
        policy easy
        node a[1..3] gpus=8
        gang one 1x8gpu for=1h
        gang two 1x8gpu for=2h
        plan
        gang big 3x8gpu for=1h
        gang next 3x8gpu for=1h
        plan
        +1h
        end one
        plan
        +1h
        end two
        plan
    "), @"
    admit one: a1[0-7]
    admit two: a2[0-7]
    big starts by 2h
    one runs
    two runs
    big waits #1: r0 fits 1 of 3, provisioning off
    next waits #2: r0 fits 1 of 3, provisioning off
    -- 1h
    big starts by 2h
    two runs
    big waits #1: r0 fits 2 of 3, provisioning off
    next waits #2: r0 fits 2 of 3, provisioning off
    -- 2h
    admit big: a1[0-7] a2[0-7] a3[0-7]
    next starts by 3h
    next waits #1: r0 fits 0 of 3, provisioning off
    ");
}

#[test]
fn gang_that_ends_before_the_promised_start_is_backfilled() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang big 2x8gpu for=1h
        gang late 1x4gpu for=61m
        gang just 1x4gpu for=1h
        gang short 1x4gpu for=30m
        plan
    "), @"
    admit first: a1[0-7]
    admit just: a2[0-3]
    admit short: a2[4-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    late waits #2: behind big
    ");
}

#[test]
fn longer_gang_is_backfilled_on_nodes_the_first_does_not_need() {
    assert_snapshot!(check("
        policy easy
        node a[1..4] gpus=8
        gang first 2x8gpu for=1h
        plan
        gang big 3x8gpu for=1h
        gang one 1x8gpu for=9h
        gang two 1x8gpu for=9h
        plan
        plan
    "), @"
    admit first: a1[0-7] a2[0-7]
    admit one: a4[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 2 of 3, provisioning off
    two waits #2: behind big
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 3, provisioning off
    one runs
    two waits #2: behind big
    ");
}

#[test]
fn devices_beside_the_promised_seats_are_free_throughout() {
    assert_snapshot!(check("
        policy easy
        node a1 gpus=8
        gang first 1x4gpu for=1h
        plan
        gang big 1x6gpu for=1h
        gang one 1x2gpu for=9h
        gang two 1x1gpu for=9h
        plan
        plan
    "), @"
    admit first: a1[0-3]
    admit one: a1[6-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 0 of 1, provisioning off
    two waits #2: behind big
    big starts by 1h
    first runs
    big waits #1: r0 fits 0 of 1, provisioning off
    one runs
    two waits #2: behind big
    ");
}

#[test]
fn a_promise_counts_those_that_start_in_the_same_cycle() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang one 1x8gpu for=30m
        gang two 1x8gpu for=20m
        gang big 2x8gpu for=1h
    "), @"
    admit one: a1[0-7]
    admit two: a2[0-7]
    big starts by 30m
    big waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_promised_rack_is_kept_and_the_other_is_open_to_all() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang one 1x8gpu for=1h if:rack=r1
        gang two 1x8gpu for=2h if:rack=r2
        plan
        gang big 2x8gpu for=1h topology=required:rack
        gang left 1x8gpu for=9h if:rack=r1
        gang any 1x8gpu for=9h
        gang short 1x8gpu for=1h
        plan
    "), @"
    admit one: a1[0-7]
    admit two: b1[0-7]
    admit any: b2[0-7]
    admit short: a2[0-7]
    big starts by 1h
    one runs
    two runs
    big waits #1: r0 fits 1 of 2, provisioning off
    left waits #2: behind big
    ");
}

#[test]
fn a_promise_of_one_kind_of_gpu_leaves_the_other_alone() {
    assert_snapshot!(check("
        policy easy
        node h[1..2] gpus=8
        node v[1..2] gpus=8 model=V100
        gang first 1x8gpu for=1h model=H100
        plan
        gang big 2x8gpu for=1h model=H100
        gang same 1x8gpu for=9h model=H100
        gang other 2x8gpu for=9h model=V100
        plan
    "), @"
    admit first: h1[0-7]
    admit other: v1[0-7] v2[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    same waits #2: behind big
    ");
}

#[test]
fn gang_that_takes_any_gpu_goes_beside_the_promised_kind() {
    assert_snapshot!(check("
        policy easy
        node h[1..2] gpus=8
        node v1 gpus=8 model=V100
        gang first 1x8gpu for=1h model=H100
        plan
        gang big 2x8gpu for=1h model=H100
        gang any 1x8gpu for=9h
        gang more 1x8gpu for=9h
        plan
    "), @"
    admit first: h1[0-7]
    admit any: v1[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    more waits #2: behind big
    ");
}

#[test]
fn outlived_estimate_is_extended_a_little_more_each_time() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang first 1x8gpu for=10m
        plan
        gang big 2x8gpu for=1h
        plan
        +10m
        plan
        +1m
        plan
        +4h
        gang long 1x8gpu for=30m
        gang short 1x8gpu for=20m
        plan
    "), @"
    admit first: a1[0-7]
    big starts by 10m
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 10m
    big starts by 11m
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 11m
    big starts by 12m6s
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 4h11m
    admit short: a2[0-7]
    big starts by 4h36m6s
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    long waits #2: behind big
    ");
}

#[test]
fn gang_without_an_estimate_is_predicted_an_hour() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang first 1x8gpu
        plan
        gang big 2x8gpu
        gang small 1x8gpu
        plan
    "), @"
    admit first: a1[0-7]
    admit small: a2[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    ");
}

/// Two short runs of ann, with estimates of an hour or more; then bob runs, and ann submits again.
const HISTORY: &str = "
    node a[1..3] gpus=8
    gang ann1 1x8gpu for=1h user=ann
    plan
    started ann1
    +10m
    end ann1
    gang ann2 1x8gpu for=1h user=ann
    plan
    started ann2
    +20m
    end ann2
    +1m
    gang bob 1x8gpu for=1h user=bob
    plan
    started bob
    gang big 3x8gpu for=1h
    gang ben 1x8gpu for=61m user=ben
    gang ann3 1x8gpu for=90m user=ann
    plan
";

#[test]
fn last_two_runs_of_a_user_count_more_than_the_estimate() {
    assert_snapshot!(check(&format!("policy easy-plus-plus\n{HISTORY}")), @"
    admit ann1: a1[0-7]
    -- 10m
    admit ann2: a1[0-7]
    -- 31m
    admit bob: a1[0-7]
    -- 31m
    admit ann3: a2[0-7]
    big starts by 1h31m
    bob runs
    big waits #1: r0 fits 2 of 3, provisioning off
    ben waits #2: behind big
    ");
}

#[test]
fn history_does_not_count_where_estimates_are_used() {
    assert_snapshot!(check(&format!("policy easy\n{HISTORY}")), @"
    admit ann1: a1[0-7]
    -- 10m
    admit ann2: a1[0-7]
    -- 31m
    admit bob: a1[0-7]
    -- 31m
    big starts by 1h31m
    bob runs
    big waits #1: r0 fits 2 of 3, provisioning off
    ben waits #2: behind big
    ann3 waits #3: behind big
    ");
}

#[test]
fn prediction_is_never_longer_than_the_estimate() {
    assert_snapshot!(check("
        policy easy-plus-plus
        node a[1..2] gpus=8
        gang ann[1..2] 1x8gpu for=1h user=ann
        plan
        started ann1
        started ann2
        +1h
        end ann1
        end ann2
        +1m
        gang ann3 1x8gpu for=30m user=ann
        plan
        gang big 2x8gpu
        plan
        started ann3
        +30m
        plan
    "), @"
    admit ann1: a1[0-7]
    admit ann2: a2[0-7]
    -- 1h1m
    admit ann3: a1[0-7]
    -- 1h1m
    big starts by 1h31m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 1h31m
    big starts by 1h34m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn gang_that_outlives_its_history_is_predicted_up_to_its_estimate() {
    assert_snapshot!(check("
        policy easy-plus-plus
        node a[1..2] gpus=8
        gang ann[1..2] 1x8gpu for=1h user=ann
        plan
        started ann1
        started ann2
        +10m
        end ann1
        end ann2
        +1m
        gang ann3 1x8gpu for=1h user=ann
        plan
        started ann3
        gang big 2x8gpu
        plan
        +10m
        plan
        +1m
        plan
        +39m
        plan
        +10m
        plan
    "), @"
    admit ann1: a1[0-7]
    admit ann2: a2[0-7]
    -- 11m
    admit ann3: a1[0-7]
    -- 11m
    big starts by 21m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 21m
    big starts by 22m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 22m
    big starts by 26m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 1h1m
    big starts by 1h11m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    -- 1h11m
    big starts by 1h17m
    ann3 runs
    big waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn a_gang_that_waiting_does_not_help_bars_what_it_waits_for() {
    assert_snapshot!(check("
        policy easy
        node a1 gpus=8 cpu=4 zone=a
        node m1 cpu=10
        pool p : zone=a price=10
        gang stuck 2x8gpu for=1h
        plan
        fail c0 stock-out
        plan
        gang small 1x8gpu for=1m never
        gang prep 1x8cpu for=1h never
        plan wake
        forgotten c0
        +3m
        plan
    "), @"
    order o0 for stuck: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    roll back o0: c0 StockOut
    admit prep: m1
    release c0
    stuck waits #1: r0 fits 1 of 2, offerings avoided until 3m
    small waits #2: r0 fits 0 of 1, provisioning off, behind stuck
    wake at 3m
    -- 3m
    order o1 for stuck: 1 x p/gpu8@a by 18m: a1[0-7] c1[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    prep runs
    ");
}

#[test]
fn nodes_are_bought_for_the_first_before_it_is_made_to_wait() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        pool p nodes=1 : zone=a price=10
        gang first 1x8gpu for=1h
        plan
        gang big 2x8gpu for=1h
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit first: a1[0-7]
    order o0 for big: 1 x p/gpu8@a by 15m: a2[0-7] c0[0-7]
    first runs
    next waits #1: r0 fits 0 of 2, pools full (room 0)
    ");
}

#[test]
fn the_shortest_goes_before_where_holes_are_filled_by_length() {
    assert_snapshot!(check("
        policy easy-sjbf
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang big 2x8gpu for=1h
        gang hour 1x8gpu for=1h
        gang half 1x8gpu for=30m
        plan
    "), @"
    admit first: a1[0-7]
    admit half: a2[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    hour waits #2: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_oldest_goes_before_where_holes_are_filled_by_age() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang big 2x8gpu for=1h
        gang hour 1x8gpu for=1h
        gang half 1x8gpu for=30m
        plan
    "), @"
    admit first: a1[0-7]
    admit hour: a2[0-7]
    big starts by 1h
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    half waits #2: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn shortest_first_serves_by_length_and_promises_the_shortest() {
    assert_snapshot!(check("
        policy sjf
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang long 1x8gpu for=5h
        gang short 2x8gpu for=10m
        gang urgent 2x8gpu for=9h prio=1
        plan
        cancel urgent
        plan
        end first
        plan
    "), @"
    admit first: a1[0-7]
    urgent starts by 1h
    first runs
    long waits #3: behind urgent
    short waits #2: r0 fits 1 of 2, provisioning off
    urgent waits #1: r0 fits 1 of 2, provisioning off
    short starts by 1h
    first runs
    long waits #2: behind short
    short waits #1: r0 fits 1 of 2, provisioning off
    admit short: a1[0-7] a2[0-7]
    long starts by 10m
    long waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gang_that_waited_long_for_its_length_goes_first() {
    assert_snapshot!(check("
        policy wfp
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang long 1x8gpu for=10h
        +30m
        gang short 1x8gpu for=10m
        gang wide 2x8gpu for=10m
        +30m
        plan
    "), @"
    admit first: a1[0-7]
    -- 1h
    wide starts by 1h6m
    first runs
    long waits #3: behind wide
    short waits #2: behind wide
    wide waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn fifo_promises_nothing() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang first 1x8gpu for=1h
        plan
        gang big 2x8gpu for=1h
        gang short 1x8gpu for=1m
        plan
    "), @"
    admit first: a1[0-7]
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    short waits #2: r0 fits 0 of 1, provisioning off, behind big
    ");
}

#[test]
fn an_elastic_gang_is_as_long_as_with_its_minimum_while_it_waits() {
    assert_snapshot!(check("
        policy sjf
        node a1 gpus=8
        gang first 1x8gpu for=1h
        plan
        started first
        gang elastic 1..4x8gpu for=30m
        gang rigid 1x8gpu for=1h
        +1h
        end first
        plan
    "), @"
    admit first: a1[0-7]
    -- 1h
    admit rigid: a1[0-7]
    elastic starts by 2h
    elastic waits #1: r0 fits 0 of 1, provisioning off
    ");
}
