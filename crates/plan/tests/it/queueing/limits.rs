//! Limits that pools and queues never exceed.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_pool_never_exceeds_its_nodes() {
    assert_snapshot!(check("
        pool p nodes=3 : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        gang three 1x8gpu
        policy fifo-overtake
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    order o1 for three: 1 x p/gpu8@a by 15m: c2[0-7]
    two waits #1: r0 fits 0 of 2, pools full (room 1)
    ");
}

#[test]
fn a_pool_never_exceeds_its_gpus() {
    assert_snapshot!(check("
        pool p gpus=20 : zone=a price=10
        gang train 3x8gpu
        gang less 2x8gpu
    "), @"
    order o0 for less: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    train is impossible: r0 never 3, at most 2
    ");
}

#[test]
fn a_pool_never_exceeds_its_budget() {
    assert_snapshot!(check("
        policy fifo-overtake
        pool p budget=25 : zone=a price=10 ; zone=b price=12
        gang less 2x8gpu if:zone=b
        plan
        gang more 1x8gpu
        plan
        fail c0 stock-out
        plan
        forgotten c0
        plan
    "), @"
    order o0 for less: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]
    less assembles o0: 0 of 2 by 15m
    more waits #1: r0 fits 0 of 1, pools full (room 0), budget of p: 1.00 of 25.00 left
    roll back o0: c0 StockOut
    more waits #1: not considered
    order o1 for more: 1 x p/gpu8@a by 15m: c2[0-7]
    release c1
    less waits #1: r0 fits 0 of 2, offerings avoided until 3m
    ");
}

#[test]
fn an_offering_never_exceeds_its_max() {
    assert_snapshot!(check("
        pool p : zone=a price=10 max=2 ; zone=b price=20 max=3
        gang one 3x8gpu
        gang two 2x8gpu
        gang three 1x8gpu
    "), @"
    order o0 for one: 3 x p/gpu8@b by 15m: c0[0-7] c1[0-7] c2[0-7]
    order o1 for two: 2 x p/gpu8@a by 15m: c3[0-7] c4[0-7]
    three waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn a_node_counts_until_nothing_is_left_of_it() {
    assert_snapshot!(check("
        pool p nodes=1 idle=5m : zone=a price=10
        gang train 1x4gpu
        plan
        ready c0
        plan
        end train
        +5m
        plan
        gang next 1x8gpu
        plan
        lost c0
        plan
        forgotten c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-3]
    admit train: c0[0-3]
    -- 5m
    release c0
    -- 5m
    next waits #1: r0 fits 0 of 1, pools full (room 0)
    -- 5m
    next waits #1: r0 fits 0 of 1, pools full (room 0)
    -- 5m
    order o1 for next: 1 x p/gpu8@a by 20m: c1[0-7]
    ");
}

#[test]
fn tiers_of_a_queue_and_of_those_above_it_are_respected() {
    assert_snapshot!(check("
        pool p tier=spot : zone=a price=1
        pool q tier=on-demand : zone=a price=10
        pool r tier=reserved : zone=a price=5
        queue org tiers=on-demand,reserved
        queue team parent=org tiers=spot,on-demand
        queue lab parent=org tiers=spot
        gang free 1x8gpu
        gang org 1x8gpu queue=org
        gang team 1x8gpu queue=team
        gang lab 1x8gpu queue=lab
    "), @"
    order o0 for free: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for org: 1 x r/gpu8@a by 15m: c1[0-7]
    order o2 for team: 1 x q/gpu8@a by 15m: c2[0-7]
    lab is impossible: r0 fits nowhere
    ");
}

#[test]
fn a_queue_never_exceeds_its_limit() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=16
        gang one 1x8gpu queue=team
        gang two 2x8gpu queue=team
        gang other 1x8gpu
        plan
        end one
        plan
    "), @"
    admit one: a1[0-7]
    admit other: a2[0-7]
    two waits #1: queue team holds 8gpu, wants 16gpu, limit 16gpu
    admit two: a1[0-7] a3[0-7]
    other runs
    ");
}

#[test]
fn a_limit_of_a_queue_above_holds_for_all_below() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue org gpu=16
        queue a parent=org gpu=16
        queue b parent=org
        gang one 1x8gpu queue=a
        gang two 2x8gpu queue=b
        gang other 1x8gpu
    "), @"
    admit one: a1[0-7]
    admit other: a2[0-7]
    two waits #1: queue org holds 8gpu, wants 16gpu, limit 16gpu
    ");
}

#[test]
fn limits_hold_for_cores_and_memory_too() {
    assert_snapshot!(check("
        node m1
        queue team cpu=10 mem=4
        gang one 1x8cpu/1gi queue=team
        plan
        gang two 1x4cpu/1gi queue=team
        plan
        end one
        gang three 1x1cpu/4gi queue=team
        plan
    "), @"
    admit one: m1
    one runs
    two waits #1: queue team holds 8cpu, wants 4cpu, limit 10cpu
    admit two: m1
    three waits #1: queue team holds 1Gimemory, wants 4Gimemory, limit 4Gimemory
    ");
}

#[test]
fn what_is_ordered_counts_against_the_queue() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        queue team gpu=16
        gang one 2x8gpu queue=team
        gang two 1x8gpu queue=team
        plan
        cancel one
        plan
        plan
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    two waits #1: queue team holds 16gpu, wants 8gpu, limit 16gpu
    roll back o0: cancelled
    two waits #1: not considered
    order o1 for two: 1 x p/gpu8@a by 15m: c0[0-7]
    release c1
    ");
}
