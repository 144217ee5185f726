//! When gangs grow and how far: after waiting gangs, under every limit, and not all the time.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn it_starts_with_more_members_where_there_is_room() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..4x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn it_never_has_more_than_its_maximum() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn it_grows_when_room_appears() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn it_does_not_grow_before_it_has_started() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        node a2 gpus=8
        plan
        started big
        plan
    "), @"
    admit big: a1[0-7]
    big runs
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn it_does_not_grow_again_before_it_has_settled() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        +1m
        node a3 gpus=8
        plan wake
        +4m
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 11m
    big runs
    wake at 15m
    -- 15m
    resize big from 2 to 3: a1[0-7] a2[0-7] a3[0-7]
    ");
}

#[test]
fn the_policy_says_how_long_that_is() {
    assert_snapshot!(check("
        policy fifo settle=1h
        node a1 gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        +5m
        node a3 gpus=8
        plan wake
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 15m
    big runs
    wake at 1h10m
    ");
}

#[test]
fn waiting_gangs_go_before_growth() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        gang next 1x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    admit next: a2[0-7]
    big runs
    ");
}

#[test]
fn growth_keeps_off_nodes_that_the_oldest_gang_waits_for() {
    assert_snapshot!(check("
        policy fifo
        node a[1..2] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        gang next 3x8gpu prio=-1 for=1h
        node a3 gpus=8
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 1 of 3, provisioning off
    ");
}

#[test]
fn a_booked_start_is_not_delayed_by_growth() {
    assert_snapshot!(check("
        policy easy
        node a[1..3] gpus=8
        gang firm 2x8gpu for=1h
        gang big 1..2x8gpu for=10h
        plan
        started firm
        started big
        +10m
        gang wide 2x8gpu prio=-1 for=1h
        plan
        end firm
        plan
    "), @"
    admit firm: a1[0-7] a2[0-7]
    admit big: a3[0-7]
    -- 10m
    wide starts by 1h
    firm runs
    big runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    -- 10m
    admit wide: a1[0-7] a2[0-7]
    big runs
    ");
}

#[test]
fn room_beside_a_booked_start_is_used() {
    assert_snapshot!(check("
        policy easy
        node a[1..4] gpus=8
        gang firm 3x8gpu for=1h
        gang big 1..2x8gpu for=10h
        plan
        started firm
        started big
        +10m
        gang wide 3x8gpu prio=-1 for=1h
        node a5 gpus=8
        plan
    "), @"
    admit firm: a1[0-7] a2[0-7] a3[0-7]
    admit big: a4[0-7]
    -- 10m
    resize big from 1 to 2: a4[0-7] a5[0-7]
    wide starts by 1h
    firm runs
    wide waits #1: r0 fits 1 of 3, provisioning off
    ");
}

#[test]
fn it_stops_at_its_queues_limit() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=24
        gang big 1..4x8gpu for=10h queue=team
        plan
    "), @"admit big: a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn it_stops_at_the_limit_of_a_queue_above() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue org gpu=16
        queue team parent=org
        gang big 1..4x8gpu for=10h queue=team
        plan
    "), @"admit big: a1[0-7] a2[0-7]");
}

#[test]
fn it_stops_at_its_users_limit() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team each=16
        gang big 1..4x8gpu for=10h queue=team user=ann
        plan
    "), @"admit big: a1[0-7] a2[0-7]");
}

#[test]
fn gang_that_declines_is_not_resized_for_a_while() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        declined big
        plan wake
        +59m
        plan
        +1m
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 10m
    big runs
    wake at 1h10m
    -- 1h9m
    big runs
    -- 1h10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn gang_that_declined_still_gives_up_its_surplus() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a3 gpus=8
        plan
        declined big
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    resize big from 2 to 3: a1[0-7] a2[0-7] a3[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7] a3[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}
