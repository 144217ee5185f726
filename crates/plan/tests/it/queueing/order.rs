//! Which gang is served first, and which may overtake.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn first_come_first_served() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang g[1..3] 1x8gpu
    "), @"
    admit g1: a1[0-7]
    admit g2: a2[0-7]
    g3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_higher_priority_goes_first() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 1x8gpu prio=-1
        gang mid 1x8gpu
        gang high 1x8gpu prio=10
    "), @"
    admit high: a1[0-7]
    admit mid: a2[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn no_gang_overtakes_on_nodes_a_gang_ahead_waits_for() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang first 1x8gpu
        plan
        gang big 2x8gpu
        gang small 1x8gpu
        plan
        end first
        plan
    "), @"
    admit first: a1[0-7]
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    small waits #2: r0 fits 0 of 1, provisioning off, behind big
    admit big: a1[0-7] a2[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn any_gang_that_fits_starts_where_overtaking_is_allowed() {
    assert_snapshot!(check("
        policy fifo-overtake
        node a[1..2] gpus=8
        gang first 1x8gpu
        plan
        gang big 2x8gpu
        gang small 1x8gpu
        plan
    "), @"
    admit first: a1[0-7]
    admit small: a2[0-7]
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn a_gang_passes_those_that_wait_for_other_nodes() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=8
        node m1
        gang first 1x8gpu
        plan
        gang big 2x8gpu model=H100
        gang prep 2x20cpu
        gang old 1x8gpu model=V100
        node v1 gpus=8 model=V100
        plan
    "), @"
    admit first: a1[0-7]
    admit prep: m1*2
    admit old: v1[0-7]
    first runs
    big waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn no_gang_overtakes_in_a_pool_a_gang_ahead_waits_for() {
    assert_snapshot!(check("
        pool p nodes=3 : zone=a price=10
        pool q : zone=a type=m gpus=0 price=1
        gang first 1x8gpu
        plan
        gang big 3x8gpu
        gang small 1x8gpu
        gang prep 1x4cpu
        plan
    "), @"
    order o0 for first: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for prep: 1 x q/m@a by 15m: c1
    first assembles o0: 0 of 1 by 15m
    big waits #1: r0 fits 0 of 3, pools full (room 2)
    small waits #2: r0 fits 0 of 1, behind big
    ");
}

#[test]
fn infeasible_gang_holds_up_no_other() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang huge 3x8gpu
        gang small 1x8gpu
    "), @"
    admit small: a1[0-7]
    huge is impossible: r0 never 3, at most 2
    ");
}

#[test]
fn gang_at_its_queue_limit_holds_up_only_its_queue() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=16
        gang first 1x8gpu queue=team
        plan
        gang big 2x8gpu queue=team
        gang small 1x8gpu queue=team
        gang other 1x8gpu
        plan
    "), @"
    admit first: a1[0-7]
    admit other: a2[0-7]
    first runs
    big waits #1: queue team holds 8gpu, wants 16gpu, limit 16gpu
    small waits #2: behind big
    ");
}

#[test]
fn a_gang_whose_order_failed_keeps_its_place() {
    assert_snapshot!(check("
        pool p nodes=1 : zone=a price=10
        gang first 1x8gpu
        plan
        +1m
        gang second 1x8gpu
        +1m
        fail c0 stock-out
        plan
        forgotten c0
        +3m
        plan
    "), @"
    order o0 for first: 1 x p/gpu8@a by 15m: c0[0-7]
    -- 2m
    roll back o0: c0 StockOut
    second waits #1: not considered
    -- 5m
    order o1 for first: 1 x p/gpu8@a by 20m: c1[0-7]
    second waits #1: r0 fits 0 of 1, offerings avoided until 5m20s
    ");
}

#[test]
fn gang_in_a_closed_or_removed_queue_waits_and_bars_no_other() {
    assert_snapshot!(check("
        policy fifo
        node a[1..3] gpus=8
        queue team
        queue below parent=team
        gang runs 1x8gpu queue=team
        plan
        started runs
        gang deep 1x8gpu queue=below
        gang wide 2x8gpu queue=team
        unqueue team
        gang other 1x8gpu
        plan
        queue team closed=yes
        plan
        queue team
        plan
    "), @"
    admit runs: a1[0-7]
    admit other: a2[0-7]
    runs runs
    deep waits #1: queue team takes nobody
    wide waits #2: queue team takes nobody
    runs runs
    deep waits #1: queue team takes nobody
    wide waits #2: queue team takes nobody
    other runs
    admit deep: a3[0-7]
    runs runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    other runs
    ");
}
