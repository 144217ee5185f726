//! Moving one or several gangs makes room in the right place, and only where it is lacking.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_fits_elsewhere_is_moved_and_one_that_does_not_stays() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu preemptible for=10h save=told restart=1m if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told restart=1m
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan ways
        stopped two
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    order o0 for wide:  by 12m after all 1 of two: a2[0-7]
    stop two: moves
    one runs
    two is stopping
      wide Wait in 9h50m for 78.67: 0 others lose 0s
    * wide Move in 0s for 0.07: 1 others lose 4m
    -- 10m
    admit wide: a2[0-7]
    admit two: a1[0-3]
    one runs
    ");
}

#[test]
fn no_gang_is_moved_where_there_is_room_in_the_right_place() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang one 1x4gpu preemptible for=10h save=told if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told if:hostname=a2
        plan
        started one
        started two
        +10m
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit one: a1[0-3]
    admit two: a2[0-3]
    -- 10m
    admit wide: a3[0-7]
    one runs
    two runs
    ");
}

#[test]
fn no_gang_is_moved_to_tidy_up() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang one 1x4gpu preemptible for=10h save=told if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told if:hostname=a2
        plan
        started one
        started two
        +10m
        plan
    "), @"
    admit one: a1[0-3]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    ");
}

#[test]
fn two_gangs_are_moved_where_both_fit_elsewhere() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang hold[1..2] 1x4gpu for=10m if:hostname=a1
        gang two[1..2] 1x4gpu preemptible for=10h save=told restart=1m
        gang firm 1x8gpu for=10h
        plan
        started hold[1..2]
        started two[1..2]
        started firm
        +10m
        end hold[1..2]
        gang wide 1x8gpu for=1h if:hostname=a2
        plan ways
        stopped two1
        stopped two2
        plan
    "), @"
    admit hold1: a1[0-3]
    admit hold2: a1[4-7]
    admit two1: a2[0-3]
    admit two2: a2[4-7]
    admit firm: a3[0-7]
    -- 10m
    order o0 for wide:  by 12m after all 1 of two1, all 1 of two2: a2[0-7]
    stop two1: moves
    stop two2: moves
    two1 is stopping
    two2 is stopping
    firm runs
      wide Wait in 9h50m for 78.67: 0 others lose 0s
    * wide Move in 0s for 0.13: 2 others lose 8m
    -- 10m
    admit wide: a2[0-7]
    admit two1: a1[0-3]
    admit two2: a1[4-7]
    firm runs
    ");
}

#[test]
fn neither_is_moved_if_only_one_of_two_fits_elsewhere() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two[1..2] 1x4gpu preemptible for=10h save=told restart=1m if:hostname=a1,a2
        gang firm 1x8gpu for=10h
        plan
        started hold
        started one
        started two[1..2]
        started firm
        +10m
        end hold
        gang wide 1x8gpu for=1h if:hostname=a2
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two1: a2[0-3]
    admit two2: a2[4-7]
    admit firm: a3[0-7]
    -- 10m
    one runs
    two1 runs
    two2 runs
    firm runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn rack_is_freed_for_a_gang_that_requires_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang one 1x8gpu preemptible for=10h save=told restart=1m if:rack=r1
        gang hold 1x8gpu for=10m if:rack=r1
        gang two 1x8gpu preemptible for=10h save=told restart=1m
        plan
        started one
        started hold
        started two
        +10m
        end hold
        gang wide 2x8gpu for=1h topology=required:rack
        plan ways
        stopped two
        plan
    "), @"
    admit one: a1[0-7]
    admit hold: a2[0-7]
    admit two: b1[0-7]
    -- 10m
    order o0 for wide:  by 12m after all 1 of two: b1[0-7] b2[0-7]
    stop two: moves
    one runs
    two is stopping
      wide Wait in 9h50m for 157.33: 0 others lose 0s
    * wide Move in 0s for 0.13: 1 others lose 8m
    -- 10m
    admit wide: b1[0-7] b2[0-7]
    admit two: a2[0-7]
    one runs
    ");
}

#[test]
fn shares_of_gpus_are_moved_off_a_device_that_is_wanted_whole() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang two 1x0.5gpu preemptible for=10h save=told restart=1m
        gang hold[1..2] 1x0.5gpu for=10m
        gang one 1x0.5gpu for=10h
        plan
        started two
        started hold[1..2]
        started one
        +10m
        end hold[1..2]
        gang whole 1x1gpu for=1h
        plan
        stopped two
        plan
    "), @"
    admit two: a1[0]
    admit hold1: a1[0]
    admit hold2: a1[1]
    admit one: a1[1]
    -- 10m
    order o0 for whole:  by 12m after all 1 of two: a1[0]
    stop two: moves
    two is stopping
    one runs
    -- 10m
    admit whole: a1[0]
    admit two: a1[1]
    one runs
    ");
}
