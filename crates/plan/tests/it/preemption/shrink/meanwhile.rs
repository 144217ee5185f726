//! When gangs are shrunk, and what becomes of it: declined, lost, not wanted any more, grown back.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_being_resized_is_not_shrunk_again() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
        gang more 1x8gpu for=1h
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a3[0-7]
    resize big from 3 to 2: a1[0-7] a2[0-7]
    big runs
    -- 10m
    big runs
    next assembles o0: 0 of 0, 1 leaving by 12m
    more waits #1: r0 fits 0 of 1, provisioning off
    -- 10m
    admit next: a3[0-7]
    order o1 for more:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn gang_not_started_yet_is_not_shrunk() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        gang next 1x8gpu for=1h
        plan
        started big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    big runs
    next waits #1: r0 fits 0 of 1, provisioning off
    order o0 for next:  by 2m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn surplus_of_a_gang_that_ends_soon_is_waited_for() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h resize=10m
        plan
        started big
        +9h58m
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 9h58m
    big runs
    next waits #1: r0 fits 0 of 1, provisioning off
    * next Wait in 2m for 0.27: 0 others lose 0s
      next Shrink in 0s for 1.33: 1 others lose 2h40m
    ");
}

#[test]
fn shrinking_gang_that_ends_by_itself_has_given_up_its_surplus() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
        end big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    -- 10m
    admit next: a2[0-7]
    ");
}

#[test]
fn shrunk_gang_grows_again_when_the_preemptor_is_cancelled() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
        cancel next
        plan
        resized big
        plan wake
        +5m
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    -- 10m
    roll back o0: cancelled
    big runs
    -- 10m
    big runs
    wake at 15m
    -- 15m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn a_gang_that_declines_to_shrink_has_shrunk_all_the_same() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
        declined big
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

#[test]
fn a_node_it_is_giving_up_and_that_is_lost_is_not_missed() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        gang next 1x8gpu for=1h
        plan
        lost a2
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
    roll back o0: a2 lost
    big runs
    -- 10m
    big runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn what_was_given_up_comes_back_when_the_other_has_ended_and_not_before() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=4h
        plan
        started big
        run 30m
        gang next 1x8gpu for=1h
        run 5h
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 40m
    order o0 for next:  by 42m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    admit next: a2[0-7]
    -- 1h40m
    next ends
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 4h40m
    big ends
    ");
}

/// It has to settle before it grows.
#[test]
fn successive_gangs_do_not_make_it_grow_and_shrink_each_time() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        run 10m
        gang s1 1x8gpu for=10m
        run 10m
        gang s2 1x8gpu for=10m
        run 10m
        gang s3 1x8gpu for=10m
        run 30m
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 20m
    order o0 for s1:  by 22m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    admit s1: a2[0-7]
    -- 30m
    s1 ends
    admit s2: a2[0-7]
    -- 40m
    s2 ends
    admit s3: a2[0-7]
    -- 50m
    s3 ends
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn surplus_on_a_node_under_notice_is_not_used() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        notice a2 1h
        gang next 1x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    resize big from 2 to 1: a1[0-7]
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}
