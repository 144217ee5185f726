//! Nodes that failed too often are quarantined for a while.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn node_that_failed_once_is_used_when_it_comes_back() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
    "), @"
    admit train: a1[0-7]
    -- 1h
    stop train: a1 lost
    -- 1h
    admit train: a1[0-7]
    ");
}

#[test]
fn node_that_failed_twice_in_a_day_is_quarantined_for_half_an_hour() {
    assert_snapshot!(check("
        node a1 gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 1x8gpu for=10h
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
        started train
        +1h
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan wake
        +29m
        plan
        +1m
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7]
    -- 1h
    stop train: a1 lost
    firm runs
    -- 1h
    admit train: a1[0-7]
    firm runs
    -- 2h
    stop train: a1 lost
    firm runs
    -- 2h
    firm runs
    train waits #1: r0 fits 0 of 1, provisioning off
    wake at 2h30m
    -- 2h29m
    firm runs
    train waits #1: r0 fits 0 of 1, provisioning off
    -- 2h30m
    admit train: a1[0-7]
    firm runs
    ");
}

#[test]
fn quarantine_doubles_with_each_further_failure() {
    assert_snapshot!(check("
        node a1 gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
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
        +30m
        plan
        started train
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan wake
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7]
    stop train: a1 lost
    firm runs
    admit train: a1[0-7]
    firm runs
    stop train: a1 lost
    firm runs
    -- 30m
    admit train: a1[0-7]
    firm runs
    -- 30m
    stop train: a1 lost
    firm runs
    -- 30m
    firm runs
    train waits #1: r0 fits 0 of 1, provisioning off
    wake at 1h30m
    ");
}

#[test]
fn day_without_failure_resets_the_quarantine() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu for=100h
        plan
        started train
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
        started train
        +24h
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
    "), @"
    admit train: a1[0-7]
    stop train: a1 lost
    admit train: a1[0-7]
    -- 1d
    stop train: a1 lost
    -- 1d
    admit train: a1[0-7]
    ");
}

#[test]
fn unused_node_is_not_blamed_for_going() {
    assert_snapshot!(check("
        node a1 gpus=8
        lost a1
        node a1 gpus=8
        lost a1
        node a1 gpus=8
        gang train 1x8gpu for=10h
        plan
    "), @"admit train: a1[0-7]");
}

#[test]
fn a_node_that_went_as_announced_is_not_blamed() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu for=10h
        plan
        started train
        notice a1 1m
        lost a1
        plan
        stopped train
        node a1 gpus=8
        plan
        started train
        notice a1 1m
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
    admit train: a1[0-7]
    ");
}

#[test]
fn another_node_is_used_while_one_is_quarantined() {
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
        node a[1..2] gpus=8
        plan
    "), @"
    admit train: a1[0-7]
    stop train: a1 lost
    admit train: a1[0-7]
    stop train: a1 lost
    admit train: a2[0-7]
    ");
}

#[test]
fn a_gang_of_two_on_flaky_nodes_does_not_run_on_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node z1 gpus=8 label:own=z
        gang firm 1x8gpu for=100h if:own=z
        gang train 2x8gpu for=10h
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
        +30m
        plan
    "), @"
    admit firm: z1[0-7]
    admit train: a1[0-7] a2[0-7]
    stop train: a1 lost
    firm runs
    admit train: a1[0-7] a2[0-7]
    firm runs
    stop train: a1 lost
    firm runs
    firm runs
    train waits #1: r0 fits 1 of 2, provisioning off
    -- 30m
    admit train: a1[0-7] a2[0-7]
    firm runs
    ");
}
