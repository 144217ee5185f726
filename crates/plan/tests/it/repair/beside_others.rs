//! Repair beside other gangs: on the same node, waiting, or preempted.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn two_gangs_on_the_lost_node_are_repaired_oldest_first() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x8gpu for=100h
        gang one 1x4gpu for=10h
        gang two 1x4gpu for=10h
        plan
        started one
        started two
        +1h
        lost a2
        plan
        stopped one
        stopped two
        plan
        node a3 gpus=4
        plan
    "), @"
    admit firm: a1[0-7]
    admit one: a2[0-3]
    admit two: a2[4-7]
    -- 1h
    stop one: a2 lost
    stop two: a2 lost
    firm runs
    -- 1h
    firm runs
    one waits #1: r0 fits 0 of 1, provisioning off
    two waits #2: r0 fits 0 of 1, provisioning off, behind one
    -- 1h
    admit one: a3[0-3]
    firm runs
    two waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gangs_with_shares_of_one_gpu_are_repaired_each_for_itself() {
    assert_snapshot!(check("
        node a[1..2] gpus=1
        gang half[1..2] 1x0.5gpu for=10h
        plan
        started half[1..2]
        +1h
        lost a1
        plan
        stopped half1
        plan
        stopped half2
        plan
    "), @"
    admit half1: a1[0]
    admit half2: a1[0]
    -- 1h
    stop half1: a1 lost
    stop half2: a1 lost
    -- 1h
    admit half1: a2[0]
    half2 is stopping
    -- 1h
    admit half2: a2[0]
    half1 runs
    ");
}

#[test]
fn victims_are_preempted_for_the_node_it_needs() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h prio=5
        gang low 1x8gpu preemptible for=10h
        plan
        started train
        started low
        +1h
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    admit low: a3[0-7]
    -- 1h
    stop train: a1 lost
    low runs
    -- 1h
    order o0 for train:  by 1h2m after all 1 of low: a2[0-7] a3[0-7]
    stop low: preempted by train
    low is stopping
    ");
}

#[test]
fn the_surplus_of_others_is_enough_for_it() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang train 2x8gpu for=10h
        gang big 1..2x8gpu for=10h
        plan
        started train
        started big
        +1h
        lost a1
        plan
        stopped train
        plan
        resized big
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    admit big: a3[0-7] a4[0-7]
    -- 1h
    stop train: a1 lost
    big runs
    -- 1h
    order o0 for train:  by 1h2m after 1 of big: a2[0-7] a4[0-7]
    resize big from 2 to 1: a3[0-7]
    big runs
    -- 1h
    admit train: a2[0-7] a4[0-7]
    big runs
    ");
}

#[test]
fn a_gang_of_lower_priority_is_repaired_before_one_of_higher_that_waits() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h prio=-5
        plan
        started train
        gang high 2x8gpu prio=5 for=1h
        plan
        +1h
        lost a1
        plan
        stopped train
        node a3 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    firm runs
    train runs
    high waits #1: r0 fits 0 of 2, provisioning off
    -- 1h
    stop train: a1 lost
    firm runs
    high waits #1: r0 fits 0 of 2, provisioning off
    -- 1h
    admit train: a3[0-7] a2[0-7]
    firm runs
    high waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn node_lost_under_a_victim_does_not_fail_the_order() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang low 3x8gpu preemptible for=10h grace=2m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        lost a3
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    order o0 for high:  by 1h4m after all 3 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h4m
    -- 1h
    admit high: a1[0-7]
    low is impossible: r0 never 3, at most 2
    ");
}

#[test]
fn gang_that_ends_in_spite_of_a_lost_node_has_ended() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        end train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    nothing
    ");
}

#[test]
fn a_cancelled_gang_is_not_repaired() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        cancel train
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: cancelled
    -- 1h
    nothing
    ");
}

#[test]
fn gang_that_fits_beside_its_kept_seats_may_start() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        node b1 cpu=64
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        gang light 1x32cpu for=10h
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    admit light: b1
    firm runs
    -- 1h
    train starts by 4d4h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    light runs
    ");
}

#[test]
fn a_node_that_is_not_ready_under_a_gang_is_not_lost() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        node a1 gpus=8 ready=no
        plan
        node a1 gpus=8
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    train runs
    -- 1h
    train runs
    ");
}

#[test]
fn it_keeps_its_seats_under_the_default_order_too() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=1h if:own=z
        gang train 2x8gpu for=10h
        plan
        started train
        started firm
        gang small 1x8gpu for=100h
        +30m
        lost a1
        plan
        stopped train
        plan
        +30m
        end firm
        node a3 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    -- 30m
    stop train: a1 lost
    small starts by 1h
    firm runs
    small waits #1: r0 fits 0 of 1, provisioning off
    -- 30m
    train starts by 1h
    small starts by 11h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    small waits #2: behind train
    -- 1h
    admit train: a3[0-7] a2[0-7]
    admit small: z1[0-7]
    ");
}
