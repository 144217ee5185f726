//! A rigid gang starts over whole, on its remaining nodes and a replacement of the lost one.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn rigid_gang_restarts_on_its_nodes_and_a_free_one() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    admit train: a2[0-7] a3[0-7]
    ");
}

#[test]
fn without_a_free_node_it_waits_before_all_others() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h
        plan
        started train
        gang old 1x8gpu for=1h
        gang high 1x8gpu prio=100 for=1h
        plan
        +1h
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    firm runs
    train runs
    old waits #2: r0 fits 0 of 1, provisioning off, behind high
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    stop train: a1 lost
    firm runs
    old waits #2: r0 fits 0 of 1, provisioning off, behind high
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    old waits #3: r0 fits 0 of 1, provisioning off, behind train
    high waits #2: r0 fits 0 of 1, provisioning off, behind train
    ");
}

#[test]
fn it_keeps_its_seats_until_the_missing_node_is_there() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h
        plan
        started train
        gang small 1x8gpu prio=9 for=1h
        +1h
        lost a1
        plan
        stopped train
        plan
        node a3 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    firm runs
    small waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    small waits #2: r0 fits 0 of 1, provisioning off, behind train
    -- 1h
    admit train: a3[0-7] a2[0-7]
    firm runs
    small waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn one_node_is_ordered_in_the_place_of_the_lost_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
        ready c0
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    order o0 for train: 1 x p/gpu8@a by 1h15m: a2[0-7] c0[0-7]
    -- 1h
    admit train: a2[0-7] c0[0-7]
    ");
}

#[test]
fn a_second_failure_while_it_waits_costs_another_node_and_not_its_place() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        pool p : zone=a price=10
        gang train 3x8gpu for=10h
        gang other 1x8gpu for=10h never
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
        lost a2
        plan
        plan
        ready c0
        ready c1
        plan
    "), @"
    admit train: a1[0-7] a2[0-7] a3[0-7]
    other waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    stop train: a1 lost
    other waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for train: 1 x p/gpu8@a by 1h15m: a2[0-7] a3[0-7] c0[0-7]
    other waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    roll back o0: a2 lost
    other waits #1: not considered
    -- 1h
    order o1 for train: 2 x p/gpu8@a by 1h15m: a3[0-7] c0[0-7] c1[0-7]
    other waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit train: a3[0-7] c0[0-7] c1[0-7]
    other waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_second_failure_while_it_stops_is_seen_when_it_has_stopped() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 3x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        lost a2
        plan
        stopped train
        plan
        node a5 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    stop train: a1 lost
    firm runs
    -- 1h
    firm runs
    train is stopping
    -- 1h
    firm runs
    train waits #1: r0 fits 2 of 3, provisioning off
    -- 1h
    admit train: a5[0-7] a3[0-7] a4[0-7]
    firm runs
    ");
}

#[test]
fn other_offering_is_tried_when_the_replacement_is_out_of_stock() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=10 ; zone=b price=12
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
        fail c0 stock-out
        plan
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    order o0 for train: 1 x p/gpu8@a by 1h15m: a2[0-7] c0[0-7]
    -- 1h
    roll back o0: c0 StockOut
    -- 1h
    order o1 for train: 1 x p/gpu8@b by 1h15m: a2[0-7] c1[0-7]
    release c0
    ");
}

#[test]
fn the_lost_node_comes_back_and_is_used() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
        node a1 gpus=8
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    firm runs
    -- 1h
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    -- 1h
    admit train: a1[0-7] a2[0-7]
    firm runs
    ");
}

#[test]
fn the_node_comes_back_before_it_has_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        node a1 gpus=8
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    admit train: a1[0-7] a2[0-7]
    ");
}

#[test]
fn work_it_saved_by_itself_is_kept() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h save=25m restart=2m
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        look train
        plan
        started train
        +10m
        look train
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    train has 0 members, 50m done, 9h10m left, 1 restarts, 0 evictions
    -- 1h
    admit train: a2[0-7] a3[0-7]
    train has 2 members, 58m done, 9h2m left, 1 restarts, 0 evictions
    ");
}

#[test]
fn gang_that_checkpoints_only_on_signal_has_lost_everything() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h save=told
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        look train
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    train has 0 members, 0s done, 10h left, 1 restarts, 0 evictions
    ");
}

#[test]
fn a_gang_that_has_not_started_yet_starts_over_too() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    stop train: a1 lost
    admit train: a2[0-7] a3[0-7]
    ");
}

#[test]
fn gang_that_requires_a_rack_moves_to_another_as_a_whole() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang train 2x8gpu for=10h topology=required:rack
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    admit train: b1[0-7] b2[0-7]
    ");
}
