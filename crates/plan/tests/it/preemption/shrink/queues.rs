//! Surplus across queues, and under their limits.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn surplus_beyond_the_guarantee_is_given_up_across_queues() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red
        queue blue
        gang big 1..2x8gpu prio=9 for=10h queue=red
        plan
        started big
        +10m
        gang next 1x8gpu for=1h queue=blue
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn surplus_within_the_guarantee_is_kept_across_queues() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=16
        queue blue firm=always
        gang big 1..2x8gpu for=10h queue=red
        plan
        started big
        +10m
        gang next 1x8gpu for=1h queue=blue
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn gang_at_its_queue_limit_gets_surplus_of_the_same_queue() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=16
        gang big 1..2x8gpu for=10h queue=team
        plan
        started big
        +10m
        gang next 1x8gpu for=1h queue=team
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    -- 10m
    admit next: a2[0-7]
    big runs
    ");
}
