//! Small gangs are moved aside where there is room enough but in the wrong places.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn one_that_may_be_elsewhere_moves_and_one_that_may_not_stays() {
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
fn nobody_moves_where_there_is_room_in_the_right_place() {
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
fn nobody_moves_to_tidy_up() {
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
fn who_would_not_fit_elsewhere_is_not_moved() {
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
fn where_everybody_must_stay_where_it_is_nobody_is_moved() {
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
fn who_is_not_preemptible_is_not_moved() {
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
fn who_has_not_run_for_its_minimum_runtime_is_not_moved() {
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
fn who_was_moved_once_is_not_moved_again() {
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

#[test]
fn two_move_where_both_fit_elsewhere() {
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
fn if_only_one_of_two_fits_elsewhere_neither_moves() {
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
fn a_rack_is_opened_for_who_must_be_close_together() {
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
fn who_is_moved_starts_again_at_once_and_keeps_its_work() {
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
