//! Decisions that undo each other without end.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn kueue_3779_two_borrowers_do_not_take_back_and_forth_from_each_other() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue red sure=8
        queue blue sure=8
        gang r[1..4] 1x8gpu queue=red preemptible for=2h save=10m restart=1m
        plan
        started r[1..4]
        run 20m
        gang b[1..4] 1x8gpu queue=blue preemptible for=2h save=10m restart=1m
        run 5h
    "), @"
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    admit r3: a3[0-7]
    admit r4: a4[0-7]
    -- 30m
    order o0 for b1:  by 32m after all 1 of r1: a1[0-7]
    stop r1: reclaimed by b1
    admit b1: a1[0-7]
    -- 2h
    r2 ends
    r3 ends
    r4 ends
    admit r1: a2[0-7]
    admit b2: a3[0-7]
    admit b3: a4[0-7]
    -- 2h30m
    b1 ends
    admit b4: a1[0-7]
    -- 3h40m
    r1 ends
    -- 4h
    b2 ends
    b3 ends
    -- 4h30m
    b4 ends
    ");
}

#[test]
fn kueue_7101_reclaimed_gang_does_not_stop_its_preemptor() {
    assert_snapshot!(check("
        policy fair
        node a[1..2] gpus=8
        queue red sure=8 weight=5
        queue blue sure=8
        gang b[1..2] 1x8gpu queue=blue preemptible prio=100 for=2h save=10m restart=1m
        plan
        started b[1..2]
        run 20m
        gang r1 1x8gpu queue=red preemptible for=2h save=10m restart=1m
        run 4h
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by r1
    admit r1: a1[0-7]
    -- 2h
    b2 ends
    admit b1: a2[0-7]
    -- 2h30m
    r1 ends
    -- 3h40m
    b1 ends
    ");
}

#[test]
fn kueue_14543_opposed_priorities_and_guarantees_do_not_loop() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=8
        queue blue
        gang blow 1x8gpu queue=blue preemptible prio=1 for=2h save=10m restart=1m
        gang bhigh 1x8gpu queue=blue preemptible prio=9 for=2h save=10m restart=1m
        plan
        started blow
        started bhigh
        run 20m
        gang r1 1x8gpu queue=red preemptible for=1h save=10m restart=1m
        run 4h
    "), @"
    admit bhigh: a1[0-7]
    admit blow: a2[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 1 of blow: a2[0-7]
    stop blow: reclaimed by r1
    admit r1: a2[0-7]
    -- 1h30m
    r1 ends
    admit blow: a2[0-7]
    -- 2h
    bhigh ends
    -- 3h10m
    blow ends
    ");
}

#[test]
fn kueue_12541_infeasible_gang_does_not_keep_the_planner_busy() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=16 firm=always
        queue blue
        gang b[1..2] 1x8gpu queue=blue preemptible for=2h
        plan
        started b[1..2]
        +20m
        gang r1 3x8gpu queue=red for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 20m
    b1 runs
    b2 runs
    r1 is impossible: r0 never 3, at most 2
    ");
}

#[test]
fn kueue_12541_unequal_sizes_under_fair_share_settle() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red sure=16
        queue blue sure=8
        gang b1 3x8gpu queue=blue preemptible for=3h save=10m restart=1m
        plan
        started b1
        run 20m
        gang r[1..2] 1x8gpu queue=red preemptible for=1h save=10m restart=1m
        run 6h
    "), @"
    admit b1: a1[0-7] a2[0-7] a3[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 3 of b1: a1[0-7]
    stop b1: reclaimed by r1
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    -- 1h30m
    r1 ends
    r2 ends
    admit b1: a1[0-7] a2[0-7] a3[0-7]
    -- 4h10m
    b1 ends
    ");
}
