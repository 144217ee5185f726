//! Only what is missing is requested, and orders do not take from each other.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn four_of_eight_are_there_so_exactly_four_are_claimed() {
    assert_snapshot!(check("
        node a[1..4] gpus=8 zone=a
        pool p : zone=a price=10
        gang train 8x8gpu
        plan
    "), @"order o0 for train: 4 x p/gpu8@a by 15m: a1[0-7] a2[0-7] a3[0-7] a4[0-7] c0[0-7] c1[0-7] c2[0-7] c3[0-7]");
}

#[test]
fn half_used_nodes_count_with_what_is_free_on_them() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a
        pool p : zone=a price=10
        gang small 1x4gpu
        gang train 4x4gpu
        plan
    "), @"
    admit small: a1[0-3]
    order o0 for train: 1 x p/gpu8@a by 15m: a2[0-3] a2[4-7] a1[4-7] c0[0-3]
    ");
}

#[test]
fn all_roles_are_counted_together() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10 ; zone=a type=cpu gpus=0 price=1
        gang train 1x80cpu+3x8gpu/50cpu
        plan
    "), @"order o0 for train: 2 x p/gpu8@a + 1 x p/cpu@a by 15m: c2 | a1[0-7] c0[0-7] c1[0-7]");
}

#[test]
fn several_orders_assemble_at_once_without_sharing_nodes() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        plan
        ready c0
        ready c2
        plan
        ready c3
        plan
        ready c1
        plan
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    order o1 for two: 2 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    o0 gets c2 from o1 for c1
    one assembles o0: 1 of 2 by 15m
    two assembles o1: 1 of 2 by 15m
    admit one: c0[0-7] c2[0-7]
    two assembles o1: 1 of 2 by 15m
    admit two: c3[0-7] c1[0-7]
    one runs
    ");
}

#[test]
fn a_free_node_is_promised_to_one_order_only() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    order o1 for two: 2 x p/gpu8@a by 15m: c1[0-7] c2[0-7]
    ");
}

#[test]
fn ready_nodes_of_a_failed_order_serve_the_next_gang_that_fits() {
    assert_snapshot!(check("
        policy fifo-overtake top-ups=0
        pool p nodes=4 : zone=a price=10
        gang train 4x8gpu
        gang small 2x8gpu
        plan
        ready c[0..2]
        fail c3 stock-out
        plan
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    small waits #1: r0 fits 0 of 2, pools full (room 0)
    roll back o0: c3 StockOut
    small waits #1: not considered
    admit small: c0[0-7] c1[0-7]
    release c3
    train waits #1: r0 fits 3 of 4, offerings avoided until 3m
    ");
}

#[test]
fn nodes_that_are_here_serve_any_queue_whatever_tier_they_came_from() {
    assert_snapshot!(check("
        queue team parent=default tiers=gold
        pool s tier=spot warm=1 : zone=a price=1
        pool g tier=gold : zone=a price=10
        plan
        ready c0
        gang train 1x8gpu queue=team
        plan
    "), @"
    stock c0 s/gpu8@a
    admit train: c0[0-7]
    stock c1 s/gpu8@a
    ");
}
