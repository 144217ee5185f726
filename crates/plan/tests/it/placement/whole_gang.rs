//! All members of a gang or none, on as few nodes as possible.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_gang_gets_a_seat_for_every_member() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang train 4x8gpu
    "), @"admit train: a1[0-7] a2[0-7] a3[0-7] a4[0-7]");
}

#[test]
fn seven_places_for_eight_members_place_none() {
    assert_snapshot!(check("
        node a[1..7] gpus=8
        gang train 8x8gpu
        policy fifo-overtake
        gang small 7x8gpu
    "), @"
    admit small: a1[0-7] a2[0-7] a3[0-7] a4[0-7] a5[0-7] a6[0-7] a7[0-7]
    train is impossible: r0 never 8, at most 7
    ");
}

#[test]
fn nodes_that_are_not_ready_are_not_there() {
    assert_snapshot!(check("
        node a1 gpus=8
        node a2 gpus=8 ready=no
        gang train 2x8gpu
        plan
        node a2 gpus=8
        plan
    "), @"
    train is impossible: r0 never 2, at most 1
    admit train: a1[0-7] a2[0-7]
    ");
}

#[test]
fn members_share_a_node_before_they_take_another() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 3x4gpu
    "), @"admit train: a1[0-3] a1[4-7] a2[0-3]");
}

#[test]
fn the_rest_goes_where_it_leaves_least() {
    assert_snapshot!(check("
        node big gpus=8
        node small gpus=2
        gang train 1x2gpu
    "), @"admit train: small[0-1]");
}

#[test]
fn a_started_node_is_filled_before_a_fresh_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang first 1x4gpu
        plan
        gang second 1x4gpu
        gang third 1x8gpu
        plan
    "), @"
    admit first: a1[0-3]
    admit second: a1[4-7]
    admit third: a2[0-7]
    first runs
    ");
}

#[test]
fn the_scarcest_resource_counts_not_only_gpus() {
    assert_snapshot!(check("
        node a1 gpus=8 cpu=40
        gang train 3x1gpu/16cpu
        plan
        node a2 gpus=8 cpu=16
        plan
    "), @"
    train is impossible: r0 never 3, at most 2
    admit train: a1[0] a1[1] a2[0]
    ");
}

#[test]
fn an_elastic_gang_starts_with_as_many_as_there_is_room_for() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2..8x8gpu
    "), @"admit train: a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn seats_of_a_gang_are_free_when_it_ends() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang first 2x8gpu
        gang second 2x8gpu
        plan
        +1h
        end first
        plan
    "), @"
    admit first: a1[0-7] a2[0-7]
    second waits #1: r0 fits 0 of 2, provisioning off
    -- 1h
    admit second: a1[0-7] a2[0-7]
    ");
}

#[test]
fn nothing_is_decided_before_the_first_full_report() {
    assert_snapshot!(check("
        unsynced
        node a1 gpus=8
        gang train 1x8gpu
    "), @"nothing");
}

#[test]
fn gangs_beyond_the_search_budget_are_put_off() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang g[1..3] 1x8gpu
        policy trials=2
        plan
        plan
    "), @"
    admit g1: a1[0-7]
    admit g2: a2[0-7]
    g3 waits #1: not considered
    admit g3: a3[0-7]
    g1 runs
    g2 runs
    ");
}
