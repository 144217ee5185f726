//! Seats whose members are gone or going are given up before those of members that run.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn empty_seats_are_given_up_before_those_of_members_that_run() {
    assert_snapshot!(check("
        node a[1..5] gpus=8
        gang big 2..4x8gpu for=10h
        plan
        started big
        spare big a[1..2]
        +10m
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7] a5[0-7]
    resize big from 4 to 3: a1[0-7] a3[0-7] a4[0-7]
    big runs
    ");
}

#[test]
fn members_that_run_are_given_up_when_empty_seats_are_not_enough() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        spare big a1
        +10m
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 2 of big: a1[0-7] a4[0-7]
    resize big from 4 to 2: a2[0-7] a3[0-7]
    big runs
    ");
}

#[test]
fn seats_given_back_are_free_at_once_and_never_below_the_minimum() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 2..4x8gpu for=10h
        plan
        started big
        back big a[1..3]
        back big a[1..2]
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    back big a[1..3]: refused, fewer members than the role's minimum
    admit next: a1[0-7] a2[0-7]
    big runs
    ");
}

#[test]
fn free_room_is_used_before_anything_is_given_up() {
    assert_snapshot!(check("
        node a[1..5] gpus=8
        gang big 2..4x8gpu for=10h
        plan
        started big
        +10m
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a4[0-7] a5[0-7]
    resize big from 4 to 3: a1[0-7] a2[0-7] a3[0-7]
    big runs
    ");
}
