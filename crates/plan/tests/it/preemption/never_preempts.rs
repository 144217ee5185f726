//! For a gang that never preempts no gang is stopped by priority; the guarantee of its queue is reclaimed all the
//! same.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn no_gang_is_stopped_for_it_and_no_higher_priority_helps() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang low 2x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h never-preempts
        plan ways
        why high
        end low
        plan
    "), @"
    admit low: a1[0-7] a2[0-7]
    -- 10m
    high starts by 10h
    low runs
    high waits #1: r0 fits 0 of 2, provisioning off
    high is expected to start: 10h
      now with 2 more like a1
    -- 10m
    admit high: a1[0-7] a2[0-7]
    ");
}

#[test]
fn it_is_served_before_waiting_gangs_of_lower_priority() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu
        plan
        started low
        gang next 1x8gpu prio=1
        gang high 1x8gpu prio=10 never-preempts
        end low
        plan
    "), @"
    admit low: a1[0-7]
    admit high: a1[0-7]
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn higher_priority_helps_where_only_the_queue_position_is_in_the_way() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 1x8gpu
        plan
        started low
        gang wide 2x8gpu prio=9
        gang small 1x8gpu never-preempts for=10h
        plan
        why small
    "), @"
    admit low: a1[0-7]
    low runs
    wide waits #1: r0 fits 1 of 2, provisioning off
    small waits #2: r0 fits 0 of 1, provisioning off, behind wide
    small is expected to start: never
      now at priority 10 instead of []
    ");
}

#[test]
fn no_gang_of_its_queue_shrinks_for_it() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 2..4x8gpu for=10h
        plan
        started big
        +10m
        gang next 2x8gpu prio=10 for=1h never-preempts
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn no_gang_is_moved_for_it() {
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
        gang wide 1x8gpu prio=10 for=1h never-preempts
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
fn no_gang_is_preempted_for_what_it_cannot_buy() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p nodes=1 : zone=a price=10
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h never-preempts
        plan
    "), @"
    admit low: a1[0-7]
    -- 10m
    low runs
    high waits #1: r0 fits 0 of 2, pools full (room 1)
    ");
}

#[test]
fn no_gang_of_another_queue_is_stopped_where_priority_counts_across() {
    for never_preempts in [false, true] {
        let case = check(&format!(
            "
            policy fifo-overtake
            node a1 gpus=8
            queue red
            queue blue
            gang low 1x8gpu preemptible for=10h queue=red
            plan
            started low
            +10m
            gang high 1x8gpu prio=10 for=1h queue=blue {}
            plan
        ",
            if never_preempts { "never-preempts" } else { "" }
        ));
        assert_eq!(case.contains("stop low: preempted by high"), !never_preempts, "{case}");
    }
}

#[test]
fn guarantee_of_its_queue_is_reclaimed() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang l1 1x8gpu queue=lender for=1h never-preempts
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    b2 runs
    ");
}

#[test]
fn guarantee_is_reclaimed_from_members_above_a_minimum_too() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang big 1..2x8gpu queue=borrower for=10h
        plan
        started big
        +1h
        gang l1 1x8gpu queue=lender for=1h never-preempts
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn it_gets_a_time_slice_in_a_queue_with_slices() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m prio=10 never-preempts
        plan
        started two
        gang three 1x8gpu queue=turns for=10h prio=10 never-preempts
        +59m
        plan
        +1m
        plan
    "), @"
    admit two: a1[0-7]
    one waits #1: r0 fits 0 of 1, provisioning off
    -- 59m
    one waits #2: r0 fits 0 of 1, provisioning off, behind three
    two runs
    three waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for three:  by 1h2m after all 1 of two: a1[0-7]
    stop two: three's turn
    one waits #1: r0 fits 0 of 1, provisioning off
    two is stopping
    ");
}

#[test]
fn its_failed_search_does_not_spare_searches_for_other_gangs() {
    assert_snapshot!(check("
        policy fifo-overtake
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang soft 1x8gpu prio=10 never-preempts
        gang hard 1x8gpu prio=10
        plan
    "), @"
    admit low: a1[0-7]
    -- 10m
    order o0 for hard:  by 12m after all 1 of low: a1[0-7]
    stop low: preempted by hard
    low is stopping
    soft waits #1: r0 fits 0 of 1, provisioning off
    ");
}
