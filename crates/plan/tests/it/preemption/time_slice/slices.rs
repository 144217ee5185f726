//! When a slice is over, for which gangs, and what rotating may cost.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_is_rotated_out_when_its_slice_is_over() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +1h
        plan ways
        stopped one
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for two:  by 1h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
      two Wait in 9h for 80.00: 0 others lose 0s
    * two Rotate in 0s for 0.00: 1 others lose 8m
    -- 1h
    admit two: a1[0-7]
    one waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gang_runs_until_its_slice_is_over_and_the_planner_wakes_then() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +59m
        plan wake
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 59m
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    wake at 1h
    ");
}

#[test]
fn gang_is_not_rotated_if_no_gang_waits() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +5h
        plan
    "), @"
    admit one: a1[0-7]
    -- 5h
    one runs
    ");
}

#[test]
fn gang_is_not_rotated_if_the_waiting_gang_fits_elsewhere() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +1h
        node a2 gpus=8
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit two: a2[0-7]
    one runs
    ");
}

#[test]
fn lower_priority_gets_no_slice() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible prio=5 for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +2h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 2h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_higher_priority_does_not_wait_for_the_slice_to_end() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +10m
        gang two 1x8gpu queue=turns preemptible prio=5 for=10h save=told restart=1m
        plan
    "), @"
    admit one: a1[0-7]
    -- 10m
    order o0 for two:  by 12m after all 1 of one: a1[0-7]
    stop one: preempted by two
    one is stopping
    ");
}

#[test]
fn gang_of_another_queue_gets_no_slice() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue turns slice=1h
        queue other
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=other for=10h
        plan
        started one
        +2h
        plan
    "), @"
    admit one: a1[0-7]
    two starts by 10h
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 2h
    two starts by 10h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn non_preemptible_gang_is_not_rotated() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns for=10h save=told restart=1m
        gang two 1x8gpu queue=turns for=10h
        plan
        started one
        +2h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 2h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn minimum_runtime_counts_beyond_the_slice() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible minrun=3h for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +1h
        plan wake
        +2h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    wake at 3h
    -- 3h
    order o0 for two:  by 3h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    ");
}

/// Six minutes are five per cent of two hours.
#[test]
fn a_long_restart_makes_the_slice_longer() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=6m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=6m
        plan
        started one
        +1h
        plan wake
        +1h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    wake at 2h
    -- 2h
    order o0 for two:  by 2h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    ");
}

#[test]
fn policy_bounds_what_rotation_may_cost() {
    assert_snapshot!(check("
        policy fifo overhead=100
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=6m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=6m
        plan
        started one
        +1h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for two:  by 1h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    ");
}

#[test]
fn a_gang_that_saves_nothing_is_never_rotated() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=10m
        gang one 1x8gpu queue=turns preemptible for=10h
        gang two 1x8gpu queue=turns preemptible for=10h
        plan
        started one
        +10m
        plan
        +9h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 10m
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 9h10m
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

/// An hour after it last saved it would lose an hour; just after it has saved, nothing.
#[test]
fn a_gang_that_saves_by_itself_is_rotated_when_little_is_lost() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=20h save=1h
        gang two 1x8gpu queue=turns preemptible for=20h save=1h
        plan
        started one
        +1h30m
        plan
        +30m
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h30m
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 2h
    order o0 for two:  by 2h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    ");
}

#[test]
fn rotations_count_among_the_evictions_of_an_hour() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h evictions=1
        gang one[1..2] 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two[1..2] 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one[1..2]
        +1h
        plan
        stopped one1
        plan
        +1h
        plan
    "), @"
    admit one1: a1[0-7]
    admit one2: a2[0-7]
    two1 waits #1: r0 fits 0 of 1, provisioning off
    two2 waits #2: r0 fits 0 of 1, provisioning off, behind two1
    -- 1h
    order o0 for two1:  by 1h2m after all 1 of one1: a1[0-7]
    stop one1: two1's turn
    one1 is stopping
    one2 runs
    two2 waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit two1: a1[0-7]
    one1 waits #2: r0 fits 0 of 1, provisioning off, behind two2
    one2 runs
    two2 waits #1: r0 fits 0 of 1, provisioning off
    -- 2h
    order o1 for two2:  by 2h2m after all 1 of one2: a2[0-7]
    stop one2: two2's turn
    one1 waits #1: r0 fits 0 of 1, provisioning off
    one2 is stopping
    two1 runs
    ");
}

#[test]
fn an_elastic_gang_gives_up_its_surplus_before_its_slice_is_over() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1..2x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +10m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
    "), @"
    admit one: a1[0-7] a2[0-7]
    -- 10m
    order o0 for two:  by 12m after 1 of one: a2[0-7]
    resize one from 2 to 1: a1[0-7]
    one runs
    ");
}

#[test]
fn the_grace_is_given_at_the_end_of_a_slice() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m grace=3m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +1h
        plan
        +3m
        stopped one
        look one
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for two:  by 1h5m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    one has 0 members, 1h3m done, 8h57m left, 1 restarts, 1 evictions
    -- 1h3m
    admit two: a1[0-7]
    one waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn shares_of_a_gpu_take_turns_too() {
    assert_snapshot!(check("
        node a1 gpus=1
        queue turns slice=1h
        gang one[1..2] 1x0.5gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x0.5gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one[1..2]
        +1h
        plan
    "), @"
    admit one1: a1[0]
    admit one2: a1[0]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for two:  by 1h2m after all 1 of one1: a1[0]
    stop one1: two's turn
    one1 is stopping
    one2 runs
    ");
}
