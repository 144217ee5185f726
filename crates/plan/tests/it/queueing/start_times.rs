//! Start times for many gangs, and on nodes that are still booting.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn conservative_gives_every_gang_a_start_time_that_none_delays() {
    assert_snapshot!(check("
        policy conservative
        node a[1..4] gpus=8
        gang run 2x8gpu for=1h
        plan
        gang big 4x8gpu for=1h
        gang mid 3x8gpu for=1h
        gang slim 1x8gpu for=2h
        gang long 2x8gpu for=2h
        gang short 2x8gpu for=1h
        plan
    "), @"
    admit run: a1[0-7] a2[0-7]
    admit short: a3[0-7] a4[0-7]
    big starts by 1h
    mid starts by 2h
    slim starts by 2h
    long starts by 3h
    run runs
    big waits #1: r0 fits 2 of 4, provisioning off
    mid waits #2: r0 fits 2 of 3, provisioning off
    slim waits #3: behind big
    long waits #4: behind big
    ");
}

#[test]
fn a_hole_between_two_start_times_is_used() {
    assert_snapshot!(check("
        policy conservative
        node a[1..2] gpus=8
        gang run 1x8gpu for=2h
        plan
        gang both 2x8gpu for=1h
        gang after 1x8gpu for=3h
        gang fits 1x8gpu for=2h
        plan
    "), @"
    admit run: a1[0-7]
    admit fits: a2[0-7]
    both starts by 2h
    after starts by 3h
    run runs
    both waits #1: r0 fits 1 of 2, provisioning off
    after waits #2: behind both
    ");
}

#[test]
fn nodes_that_boot_for_another_are_counted_on_when_it_has_ended() {
    assert_snapshot!(check("
        policy easy
        pool p nodes=2 : zone=a price=10 boot=5m
        gang first 2x8gpu for=1h timeout=10m
        plan
        gang second 2x8gpu for=1h
        plan
    "), @"
    order o0 for first: 2 x p/gpu8@a by 10m: c0[0-7] c1[0-7]
    second starts by 1h5m
    first assembles o0: 0 of 2 by 10m
    second waits #1: r0 fits 0 of 2, pools full (room 0)
    ");
}

#[test]
fn a_start_time_is_worth_as_much_as_the_limit_above_it() {
    assert_snapshot!(check("
        policy easy
        node a[1..4] gpus=8
        queue team gpu=16
        gang x1 1x8gpu queue=team for=1h
        gang x2 1x8gpu queue=team for=3h
        plan
        gang x3 2x8gpu queue=team for=1h
        gang free 4x8gpu for=1h
        plan
    "), @"
    admit x1: a1[0-7]
    admit x2: a2[0-7]
    x3 starts by 3h
    x1 runs
    x2 runs
    x3 waits #1: queue team holds 16gpu, wants 16gpu, limit 16gpu
    free waits #2: r0 fits 2 of 4, provisioning off
    ");
}

#[test]
fn gangs_that_are_due_hold_start_times_and_go_first() {
    // No gang is due at first; the wide gang is after a day, and then no gang delays it.
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        gang base 3x8gpu for=30h
        plan
        gang wide 4x8gpu for=1h
        gang s1 1x8gpu for=40h
        plan
        +20h
        end s1
        gang s2 1x8gpu for=40h
        plan
        +5h
        end s2
        gang s3 1x8gpu for=40h
        gang s4 1x8gpu for=5h
        plan
    "), @"
    admit base: a1[0-7] a2[0-7] a3[0-7]
    admit s1: a4[0-7]
    base runs
    wide waits #1: r0 fits 1 of 4, provisioning off
    -- 20h
    wide starts by 1d6h
    base runs
    wide waits #1: r0 fits 1 of 4, provisioning off
    s2 waits #2: behind wide
    end s2: refused, the gang has moved on
    -- 1d1h
    admit s4: a4[0-7]
    wide starts by 1d6h
    s2 starts by 1d7h
    base runs
    wide waits #1: r0 fits 1 of 4, provisioning off
    s2 waits #2: behind wide
    s3 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gang_behind_another_under_a_limit_is_promised_nothing() {
    // The first waits for room under ann's limit, and the second behind it; the third waits for nodes.
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        queue team each=16
        gang run 1x8gpu queue=team user=ann for=2h
        plan
        gang first 2x8gpu queue=team user=ann for=1h prio=9
        gang second 1x4gpu queue=team user=ann for=1h
        gang third 2x8gpu user=bob for=1h
        plan
    "), @"
    admit run: a1[0-7]
    first starts by 2h
    run runs
    first waits #1: user in team holds 8gpu, wants 16gpu, limit 16gpu
    second waits #2: behind first
    third waits #3: r0 fits 1 of 2, provisioning off
    ");
}
