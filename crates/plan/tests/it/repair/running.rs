//! Gangs that run, lose a node, are cancelled or end.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_lost_node_stops_the_whole_gang_and_it_starts_over_in_its_old_place() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 3x8gpu
        plan
        started train
        +1h
        gang later 3x8gpu
        lost a2
        plan
        plan
        node a4 gpus=8
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    stop train: a2 lost
    later is impossible: r0 never 3, at most 2
    -- 1h
    train is stopping
    later is impossible: r0 never 3, at most 2
    -- 1h
    train is stopping
    later waits #1: r0 fits 1 of 3, provisioning off
    -- 1h
    admit train: a1[0-7] a4[0-7] a3[0-7]
    later waits #1: r0 fits 0 of 3, provisioning off
    ");
}

#[test]
fn a_gang_lost_before_it_has_started_is_stopped_too() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu
        plan
        lost a1
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    stop train: a1 lost
    ");
}

#[test]
fn two_lost_nodes_stop_a_gang_once() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu
        plan
        lost a1
        lost a2
        plan
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    stop train: a1 lost
    train is stopping
    ");
}

#[test]
fn only_gangs_on_the_lost_node_are_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang left 2x4gpu
        gang right 2x4gpu
        plan
        lost a1
        plan
    "), @"
    admit left: a1[0-3] a1[4-7]
    admit right: a2[0-3] a2[4-7]
    stop left: a1 lost
    right runs
    ");
}

#[test]
fn a_node_that_comes_back_is_a_new_node() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu
        plan
        lost a1
        node a1 gpus=8
        gang next 1x8gpu
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7]
    stop train: a1 lost
    admit next: a1[0-7]
    train waits #1: r0 fits 0 of 1, provisioning off
    next runs
    ");
}

#[test]
fn a_waiting_gang_that_is_cancelled_is_gone() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang first 1x8gpu
        gang second 1x8gpu
        gang third 1x8gpu
        plan
        cancel second
        plan
    "), @"
    admit first: a1[0-7]
    second waits #1: r0 fits 0 of 1, provisioning off
    third waits #2: r0 fits 0 of 1, provisioning off, behind second
    first runs
    third waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn an_assembling_gang_that_is_cancelled_gives_everything_back() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p idle=10m : zone=a price=10
        gang train 3x8gpu
        plan
        ready c0
        cancel train
        plan
        +10m
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: a1[0-7] c0[0-7] c1[0-7]
    roll back o0: cancelled
    -- 10m
    release c1
    release c0
    ");
}

#[test]
fn a_cancelled_order_blames_no_offering() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        cancel train
        plan
        gang next 1x8gpu
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: cancelled
    order o1 for next: 1 x p/gpu8@a by 15m: c0[0-7]
    ");
}

#[test]
fn a_running_gang_that_is_cancelled_is_stopped_and_forgotten() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu
        gang next 1x8gpu
        plan
        cancel train
        plan
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7]
    next waits #1: r0 fits 0 of 1, provisioning off
    stop train: cancelled
    next waits #1: r0 fits 0 of 1, provisioning off
    train is stopping
    next waits #1: r0 fits 0 of 1, provisioning off
    admit next: a1[0-7]
    ");
}

#[test]
fn a_gang_that_ends_while_it_is_being_stopped_has_ended() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu
        plan
        cancel train
        plan
        end train
        plan
    "), @"
    admit train: a1[0-7]
    stop train: cancelled
    nothing
    ");
}

#[test]
fn the_name_of_a_gang_is_free_again_when_it_is_over() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu
        gang train 1x4gpu
        plan
        end train
        gang train 1x4gpu
        plan
    "), @"
    gang train 1x4gpu: refused, gang `train` exists already
    admit train: a1[0-7]
    admit train: a1[0-3]
    ");
}
