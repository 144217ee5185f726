//! Members are spread as far as there is room; no gang waits, buys or preempts for it.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn members_that_should_be_spread_get_a_node_each() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang train 3x1gpu spread=node
    "), @"admit train: a1[0] a2[0] a3[0]");
}

#[test]
fn where_nodes_are_few_they_share_as_evenly_as_can_be() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        node b1 gpus=1
        gang train 8x1gpu spread=node
    "), @"admit train: a1[0] a1[1] a2[0] a2[1] a3[0] a3[1] b1[0] a1[2]");
}

#[test]
fn where_only_one_node_has_room_all_of_them_share_it() {
    assert_snapshot!(check("
        node a1 gpus=8
        node a2 gpus=1
        gang first 1x1gpu if:kubernetes.io/hostname=a2
        plan
        gang train 8x1gpu spread=node
        plan
    "), @"
    admit first: a2[0]
    admit train: a1[0] a1[1] a1[2] a1[3] a1[4] a1[5] a1[6] a1[7]
    first runs
    ");
}

#[test]
fn gangs_of_the_same_spread_group_keep_off_each_other() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang one-[1..4] 1x1gpu spread=node/web
        gang other 1x1gpu spread=node/db
        plan
        gang late 1x1gpu spread=node/web
        plan
        end one-3
        gang later 1x1gpu spread=node/web
        plan
    "), @"
    admit one-1: a1[0]
    admit one-2: a2[0]
    admit one-3: a3[0]
    admit one-4: a1[1]
    admit other: a1[2]
    admit late: a2[1]
    one-1 runs
    one-2 runs
    one-3 runs
    one-4 runs
    other runs
    admit later: a3[0]
    one-1 runs
    one-2 runs
    one-4 runs
    other runs
    late runs
    ");
}

#[test]
fn members_are_spread_over_zones_as_far_as_there_is_room() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a
        node b1 gpus=8 zone=b
        node c1 gpus=1 zone=c
        gang train 6x1gpu spread=zone
        plan
        gang one 1x1gpu spread=zone
        plan
        gang two 3x1gpu spread=zone/other,node/other
        plan
    "), @"
    admit train: a1[0] a1[1] a1[2] b1[0] b1[1] c1[0]
    admit one: b1[2]
    train runs
    admit two: a2[0] a1[3] b1[3]
    train runs
    one runs
    ");
}

#[test]
fn gang_with_closeness_is_spread_within_its_domain() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a
        node b[1..3] gpus=8 zone=b
        gang train 2x1gpu spread=node/a,zone/a topology=required:zone
        gang close 3x1gpu spread=node/b topology=preferred:node
        gang large 3x1gpu spread=node/c topology=preferred:zone
    "), @"
    admit train: a1[0] a2[0]
    admit close: a1[1] a1[2] a1[3]
    admit large: b1[0] b2[0] b3[0]
    ");
}

#[test]
fn node_preferences_come_before_spreading() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 label:disk=fast
        node b[1..4] gpus=8
        gang train 4x1gpu spread=node wish:10:disk=fast
    "), @"admit train: a1[0] a2[0] a1[1] a2[1]");
}

#[test]
fn nothing_more_is_bought_to_be_spread() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 4x2gpu spread=node
    "), @"order o0 for train: 1 x p/gpu8@a by 15m: c0[0-1] c0[2-3] c0[4-5] c0[6-7]");
}

#[test]
fn no_more_victims_than_needed_are_chosen_for_spreading() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang small-[1..2] 1x7gpu preemptible for=10h
        plan
        +1h
        gang train 8x1gpu spread=node prio=10
        plan
    "), @"
    admit small-1: a1[0-6]
    admit small-2: a2[0-6]
    -- 1h
    order o0 for train:  by 1h2m after all 1 of small-1: a1[0] a1[1] a1[2] a1[3] a1[4] a1[5] a1[6] a1[7]
    stop small-1: preempted by train
    small-1 is stopping
    small-2 runs
    ");
}

/// The gang that loses least is tried first and leaves too little. The node of the other one has room for all of them
/// then, and spread over both nodes they would evict the first as well.
#[test]
fn no_gang_is_preempted_for_spreading() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x6gpu if:hostname=a1 for=10h
        gang large 1x8gpu if:hostname=a2 preemptible for=10h
        plan
        +1h
        gang small 1x2gpu preemptible for=10h
        plan
        +1h
        gang train 8x1gpu spread=node prio=10
        plan
    "), @"
    admit firm: a1[0-5]
    admit large: a2[0-7]
    -- 1h
    admit small: a1[6-7]
    firm runs
    large runs
    -- 2h
    order o0 for train:  by 2h2m after all 1 of large: a2[0] a2[1] a2[2] a2[3] a2[4] a2[5] a2[6] a2[7]
    stop large: preempted by train
    firm runs
    large is stopping
    small runs
    ");
}

#[test]
fn members_that_come_later_are_spread_too() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 1..3x1gpu spread=node
    "), @"admit train: a1[0] a2[0] a3[0]");
}
