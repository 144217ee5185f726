//! Nodes that were booted once and are stopped, to be woken.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn stopped_nodes_are_booted_once_and_stopped() {
    assert_snapshot!(check("
        pool p stopped=2 : zone=a price=10 start=1m
        plan targets
        ready c0
        plan
        ready c1
        plan
        lost c0
        parked c0
        lost c1
        parked c1
        plan targets
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    p should have 0 free, 2 stopped (warm 0, buffer 0, spare 0, scheduled 0, expected 0)
    park c0
    park c1
    nothing
    p should have 0 free, 2 stopped (warm 0, buffer 0, spare 0, scheduled 0, expected 0)
    ");
}

#[test]
fn a_stopped_node_is_woken_to_be_warm_again() {
    assert_snapshot!(check("
        pool p warm=1 stopped=1 : zone=a price=10 start=1m
        plan
        ready c[0..1]
        plan
        lost c0
        parked c0
        plan
        gang train 1x8gpu
        plan
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    park c0
    nothing
    admit train: c1[0-7]
    stock c0 p/gpu8@a, c2 p/gpu8@a
    train runs
    ");
}

#[test]
fn a_pool_whose_nodes_cannot_be_stopped_buys_none_to_stop() {
    assert_snapshot!(check("
        pool p stopped=1 idle=10m : zone=a price=10
        plan
    "), @"nothing");
}

#[test]
fn nodes_to_stop_are_bought_where_nodes_can_be_stopped() {
    assert_snapshot!(check("
        pool p warm=1 stopped=1 idle=10m : zone=a price=10 ; zone=b price=12 start=1m
        plan
        ready c[0..1]
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@b
    park c1
    ");
}
