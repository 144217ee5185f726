//! Deadlines, the cost of waiting, and what would help waiting gangs.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn the_earliest_deadline_goes_first() {
    assert_snapshot!(check("
        policy edf
        node a1 gpus=8
        gang late 1x8gpu for=1h deadline=9h
        gang none 1x8gpu for=1h
        gang soon 1x8gpu for=1h deadline=3h
    "), @"
    admit soon: a1[0-7]
    late starts by 1h
    late waits #1: r0 fits 0 of 1, provisioning off
    none waits #2: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_deadline_that_cannot_be_met_is_told_at_once_with_what_would_help() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        gang long 2x8gpu for=4h
        plan
        gang dead 2x8gpu for=1h deadline=3h
        gang fine 2x8gpu for=1h deadline=9h
        plan
    "), @"
    admit long: a1[0-7] a2[0-7]
    dead starts by 4h
    long runs
    dead waits #1: r0 fits 0 of 2, provisioning off, late by 2h (with 2 more like a1; at priority 1 instead of [long])
    fine waits #2: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_deadline_that_is_lost_is_not_helped_by_anything() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        gang long 1x8gpu for=4h
        plan
        gang lost 1x8gpu for=2h deadline=1h
        plan
    "), @"
    admit long: a1[0-7]
    long runs
    lost waits #1: r0 fits 0 of 1, provisioning off, late by 5h ()
    ");
}

#[test]
fn a_gang_near_its_deadline_is_due_and_holds_a_start_time() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        gang long 1x8gpu for=2h
        plan
        gang wide 2x8gpu for=1h deadline=3h
        gang short 1x8gpu for=3h
        plan
    "), @"
    admit long: a1[0-7]
    wide starts by 2h
    long runs
    wide waits #1: r0 fits 1 of 2, provisioning off
    short waits #2: behind wide
    ");
}

#[test]
fn what_an_hour_costs_weighs_in_the_order() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        gang cheap 1x8gpu for=1h
        gang dear 1x8gpu for=2h cost=100
    "), @"
    admit dear: a1[0-7]
    cheap waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn waiting_is_chosen_when_it_costs_less_than_nodes() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        pool p : price=100
        gang long 1x8gpu for=30m
        plan
        gang patient 1x8gpu for=1h cost=10
        gang hasty 1x8gpu for=1h cost=1000
        gang says-nothing 1x8gpu for=1h
        plan
    "), @"
    admit long: a1[0-7]
    order o0 for hasty: 1 x p/gpu8@ by 15m: c0[0-7]
    order o1 for says-nothing: 1 x p/gpu8@ by 15m: c1[0-7]
    long runs
    patient waits #1: r0 fits 0 of 1, waiting until 30m costs 5.00, buying 105.50
    ");
}

#[test]
fn a_start_that_is_put_off_is_bought_in_the_end() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        pool p : price=100
        gang long 1x8gpu for=30m
        plan
        gang patient 1x8gpu for=1h cost=10
        plan
        +10h
        plan
        +10h
        plan
    "), @"
    admit long: a1[0-7]
    long runs
    patient waits #1: r0 fits 0 of 1, waiting until 30m costs 5.00, buying 105.50
    -- 10h
    order o0 for patient: 1 x p/gpu8@ by 10h15m: c0[0-7]
    long runs
    -- 20h
    roll back o0: too late
    long runs
    ");
}

#[test]
fn buying_beats_missing_the_deadline() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        pool p : price=100
        gang long 1x8gpu for=2h
        plan
        gang patient 1x8gpu for=1h cost=1 deadline=2h
        plan
    "), @"
    admit long: a1[0-7]
    order o0 for patient: 1 x p/gpu8@ by 15m: c0[0-7]
    long runs
    ");
}

#[test]
fn the_cheaper_of_two_offerings_depends_on_what_the_delay_costs() {
    assert_snapshot!(check("
        policy muster
        pool p : type=slow price=10 boot=14m ; type=quick price=20 boot=1m
        gang calm 1x8gpu for=2h
        gang hurried 1x8gpu for=2h cost=500
    "), @"
    order o0 for hurried: 1 x p/quick@ by 15m: c0[0-7]
    order o1 for calm: 1 x p/slow@ by 15m: c1[0-7]
    ");
}

#[test]
fn why_says_what_would_let_it_start() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang one 1x8gpu for=1h prio=5 topology=required:rack
        gang two 2x8gpu for=2h prio=9 topology=required:rack
        plan
        gang wide 2x8gpu for=1h topology=required:rack
        gang wider 3x8gpu for=1h
        plan
        why wide
        why wider
    "), @"
    admit two: a1[0-7] a2[0-7]
    admit one: b1[0-7]
    wide starts by 1h
    one runs
    two runs
    wide waits #1: r0 fits 1 of 2, provisioning off
    wider waits #2: r0 fits 1 of 3, provisioning off
    wide is expected to start: 1h
      now with 1 more like b1
      now at priority 6 instead of [one]
      now with 1 of r0
    wider is expected to start: 2h
      now with 2 more like a1
      now at priority 10 instead of [two]
      now with 1 of r0
    ");
}

#[test]
fn preferred_closeness_would_help_where_required_does_not_fit() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang one 1x8gpu for=1h if:rack=r1
        gang two 1x8gpu for=2h if:rack=r2
        plan
        gang wide 2x8gpu for=1h topology=required:rack
        plan
        why wide
    "), @"
    admit one: a1[0-7]
    admit two: b1[0-7]
    one runs
    two runs
    wide waits #1: r0 fits 1 of 2, provisioning off
    wide is expected to start: 1h
      now if closeness were a wish
      now with 1 more like a1
      now at priority 1 instead of [two]
      now with 1 of r0
    ");
}

#[test]
fn why_counts_nodes_of_pools_too() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        pool p nodes=3 : zone=a price=10
        gang busy 2x8gpu for=1h
        gang wide 4x8gpu for=1h
        gang tall 1x8gpu for=1h
        plan
        plan
        why wide
    "), @"
    order o0 for busy: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    order o1 for tall: 1 x p/gpu8@a by 15m: c1[0-7]
    wide waits #1: r0 fits 0 of 4, pools full (room 2)
    busy assembles o0: 0 of 1 by 15m
    wide waits #1: r0 fits 0 of 4, pools full (room 1)
    tall assembles o1: 0 of 1 by 15m
    wide is expected to start: never
      now with 4 more of p/gpu8@a
    ");
}

#[test]
fn higher_priority_names_the_fewest_and_lowest_victims() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        gang low 1x8gpu prio=1 for=1h
        gang mid 1x8gpu prio=5 for=1h
        gang top 1x8gpu prio=9 for=1h
        plan
        gang one 1x8gpu for=1h
        gang two 2x8gpu for=1h prio=3
        plan
        why one
        why two
    "), @"
    admit top: a1[0-7]
    admit mid: a2[0-7]
    admit low: a3[0-7]
    low runs
    mid runs
    top runs
    one waits #2: r0 fits 0 of 1, provisioning off
    two waits #1: r0 fits 0 of 2, provisioning off
    one is expected to start: 1h
      now with 1 more like a1
      now at priority 2 instead of [low]
    two is expected to start: 1h
      now with 2 more like a1
      now at priority 6 instead of [low mid]
    ");
}
