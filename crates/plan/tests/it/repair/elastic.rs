//! An elastic gang goes on with its remaining members, as long as every role has its minimum.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn elastic_gang_goes_on_with_its_remaining_members() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    resize big from 3 to 2: a2[0-7] a3[0-7]
    -- 1h
    big runs
    ");
}

#[test]
fn elastic_gang_grows_again_when_there_is_room() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        plan
        resized big
        plan
        +10m
        node a4 gpus=8
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    resize big from 3 to 2: a2[0-7] a3[0-7]
    -- 1h
    big runs
    -- 1h10m
    resize big from 2 to 3: a2[0-7] a3[0-7] a4[0-7]
    ");
}

#[test]
fn it_goes_on_from_what_it_had_saved() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h save=25m
        plan
        started big
        +1h
        lost a1
        plan
        resized big
        look big
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    resize big from 2 to 1: a2[0-7]
    big has 1 members, 50m done, 9h10m left, 0 restarts, 0 evictions
    ");
}

#[test]
fn an_elastic_gang_at_its_minimum_is_stopped_whole() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 2..3x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    stop big: a1 lost
    ");
}

#[test]
fn a_role_below_its_minimum_stops_the_others_too() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1x8gpu+1..2x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        plan
    "), @"
    admit big: a1[0-7] | a2[0-7] a3[0-7]
    -- 1h
    stop big: a1 lost
    ");
}

#[test]
fn a_role_above_its_minimum_goes_on_with_the_others() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1x8gpu+1..2x8gpu for=10h
        plan
        started big
        +1h
        lost a3
        plan
    "), @"
    admit big: a1[0-7] | a2[0-7] a3[0-7]
    -- 1h
    resize big from 3 to 2: a1[0-7] | a2[0-7]
    ");
}

#[test]
fn two_nodes_lost_at_once_are_left_at_once() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        lost a3
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h
    resize big from 4 to 2: a2[0-7] a4[0-7]
    -- 1h
    big runs
    ");
}

#[test]
fn a_second_node_lost_while_it_leaves_the_first_is_left_next() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        +1h
        lost a1
        plan
        resized big
        lost a3
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h
    resize big from 4 to 3: a2[0-7] a3[0-7] a4[0-7]
    -- 1h
    resize big from 3 to 2: a2[0-7] a4[0-7]
    -- 1h
    big runs
    ");
}
