//! Moving is compared with waiting, preempting and buying.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn waiting_is_chosen_where_the_other_ends_before_its_restart_would() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=12m save=told restart=30m
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
    one runs
    two runs
    wide waits #1: r0 fits 0 of 1, provisioning off
    * wide Wait in 2m for 0.27: 0 others lose 0s
      wide Move in 0s for 2.00: 1 others lose 2h
    ");
}

#[test]
fn moving_is_chosen_where_preempting_would_lose_more() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang low 1x4gpu preemptible for=10h
        plan
        gang two 1x4gpu preemptible for=10h save=told restart=1m prio=1
        plan
        started hold
        started low
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h prio=1
        plan ways
    "), @"
    admit hold: a1[0-3]
    admit low: a1[4-7]
    admit two: a2[0-3]
    hold runs
    low runs
    -- 10m
    order o0 for wide:  by 12m after all 1 of two: a2[0-7]
    stop two: moves
    low runs
    two is stopping
      wide Wait in 9h50m for 78.67: 0 others lose 0s
    * wide Move in 0s for 0.07: 1 others lose 4m
    ");
}

#[test]
fn preempting_is_chosen_where_moving_would_lose_more() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang low 1x4gpu preemptible for=10h
        plan
        gang two 1x4gpu preemptible for=10h save=told restart=1h prio=1
        plan
        started hold
        started low
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h prio=1
        plan ways
    "), @"
    admit hold: a1[0-3]
    admit low: a1[4-7]
    admit two: a2[0-3]
    hold runs
    low runs
    -- 10m
    order o0 for wide:  by 12m after all 1 of low: a1[0-7]
    stop low: preempted by wide
    low is stopping
    two runs
      wide Wait in 9h50m for 786.67: 0 others lose 0s
    * wide Preempt in 0s for 0.67: 1 others lose 40m
    ");
}

#[test]
fn nodes_are_bought_where_moving_would_lose_more() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=1 boot=1m
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told restart=10h if:hostname=a2,a1
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h cost=1
        plan ways
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    order o0 for wide: 1 x p/gpu8@a by 25m: c0[0-7]
    one runs
    two runs
      wide Wait in 9h50m for 9.83: 0 others lose 0s
    * wide Buy in 1m for 1.03: 0 others lose 0s
      wide Move in 0s for 5.00: 1 others lose 1d16h
    ");
}

#[test]
fn moved_gang_restarts_at_once_and_keeps_its_work() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told restart=1m grace=1m
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan
        +1m
        stopped two
        look two
        plan
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    order o0 for wide:  by 13m after all 1 of two: a2[0-7]
    stop two: moves
    one runs
    two is stopping
    two has 0 members, 11m done, 9h49m left, 1 restarts, 1 evictions
    -- 11m
    admit wide: a2[0-7]
    admit two: a1[0-3]
    one runs
    ");
}
