//! Gangs that can never run as they are, and gangs that only seem so.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_role_that_fits_on_no_node_and_no_offering() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10
        gang wide 1x16gpu
        gang heavy 2x1gpu/500cpu
        gang mix 1x8gpu+1x9gpu
    "), @"
    wide is impossible: r0 fits nowhere
    heavy is impossible: r0 fits nowhere
    mix is impossible: r1 fits nowhere
    ");
}

#[test]
fn more_members_than_there_will_ever_be() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p nodes=3 : zone=a price=10
        gang five 5x8gpu
        gang six 6x8gpu
    "), @"
    order o0 for five: 3 x p/gpu8@a by 15m: a1[0-7] a2[0-7] c0[0-7] c1[0-7] c2[0-7]
    six is impossible: r0 never 6, at most 5
    ");
}

#[test]
fn nodes_in_use_now_do_not_make_a_gang_infeasible() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p nodes=1 : zone=a price=10
        gang one 3x8gpu
        plan
        ready c0
        plan
        gang two 3x8gpu
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: a1[0-7] a2[0-7] c0[0-7]
    admit one: a1[0-7] a2[0-7] c0[0-7]
    one runs
    two waits #1: r0 fits 0 of 3, pools full (room 0)
    ");
}

#[test]
fn more_than_the_queue_may_ever_hold() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue org gpu=16
        queue team parent=org
        gang two 2x8gpu queue=team
        gang three 3x8gpu queue=team
        gang four 4x8gpu
    "), @"
    admit two: a1[0-7] a2[0-7]
    three is impossible: queue org holds 16gpu, wants 24gpu, limit 16gpu
    four waits #1: r0 fits 2 of 4, provisioning off
    ");
}

#[test]
fn more_than_any_rack_holds() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a rack=r1
        node b[1..2] gpus=8 zone=a rack=r2
        pool p nodes=1 : zone=a rack=r2 price=10
        gang three 3x8gpu topology=required:rack
        gang four 4x8gpu topology=required:rack
    "), @"
    order o0 for three: 1 x p/gpu8@a by 15m: b1[0-7] b2[0-7] c0[0-7]
    four is impossible: r0 never 4, at most 3
    ");
}

#[test]
fn more_than_any_node_holds() {
    assert_snapshot!(check("
        node a[1..4] gpus=4
        pool p : zone=a gpus=8 price=10
        gang eight 8x1gpu topology=required:node
        gang nine 9x1gpu topology=required:node
    "), @"
    order o0 for eight: 1 x p/gpu8@a by 15m: c0[0] c0[1] c0[2] c0[3] c0[4] c0[5] c0[6] c0[7]
    nine is impossible: r0 never 9, at most 8
    ");
}

#[test]
fn a_tier_the_queue_may_not_buy_is_no_supply() {
    assert_snapshot!(check("
        pool p tier=spot : zone=a price=10
        queue team tiers=reserved
        gang train 1x8gpu queue=team
    "), @"train is impossible: r0 fits nowhere");
}

#[test]
fn infeasible_gang_becomes_feasible_when_the_world_changes() {
    assert_snapshot!(check("
        gang train 2x8gpu
        plan
        node a1 gpus=8
        plan
        pool p : zone=a price=10
        plan
    "), @"
    train is impossible: r0 fits nowhere
    train is impossible: r0 never 2, at most 1
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    ");
}

#[test]
fn infeasible_gang_is_reported_so_behind_others_too() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue team gpu=8
        gang runs 1x8gpu for=1h queue=team
        plan
        started runs
        gang next 1x8gpu for=1h queue=team
        gang never 1x9gpu for=1h queue=team
        plan
    "), @"
    admit runs: a1[0-7]
    runs runs
    next waits #1: queue team holds 8gpu, wants 8gpu, limit 8gpu
    never is impossible: r0 fits nowhere, behind next
    ");
}

#[test]
fn gang_that_fits_only_on_a_quarantined_node_waits_for_it() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu for=10h
        plan
        started train
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
        started train
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
    "), @"
    admit train: a1[0-7]
    stop train: a1 lost
    admit train: a1[0-7]
    stop train: a1 lost
    train waits #1: r0 fits 0 of 1, provisioning off
    ");
}
