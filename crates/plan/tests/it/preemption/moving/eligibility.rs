//! Which gangs are not moved.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_does_not_fit_elsewhere_is_not_moved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang one 1x5gpu preemptible for=10h save=told if:hostname=a1
        gang two 1x5gpu preemptible for=10h save=told if:hostname=a2
        plan
        started one
        started two
        +10m
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit one: a1[0-4]
    admit two: a2[0-4]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn no_gang_is_moved_where_all_are_bound_to_their_place() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
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
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn non_preemptible_gang_is_not_moved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu for=10h save=told
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_rigid_gang_that_saves_nothing_is_not_moved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn an_elastic_gang_may_be_moved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue small gpu=4
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1..2x4gpu preemptible for=10h queue=small
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan ways
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
    * wide Move in 0s for 0.67: 1 others lose 40m
    ");
}

#[test]
fn gang_within_its_minimum_runtime_is_not_moved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told minrun=1h
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_higher_priority_is_not_moved_for_a_lower_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1 prio=5
        gang one 1x4gpu for=10h if:hostname=a1 prio=5
        gang two 1x4gpu preemptible for=10h save=told prio=5
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_queue_that_allows_no_evictions_allows_no_moves() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue kind evictions=0
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told queue=kind
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gang_that_was_moved_once_is_not_moved_again() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told restart=1m
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=10m
        plan
        stopped two
        plan
        started wide
        started two
        +10m
        end wide
        end one
        gang next 1x8gpu if:hostname=a1 for=1h
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
    -- 10m
    admit wide: a2[0-7]
    admit two: a1[0-3]
    one runs
    -- 20m
    two runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}
