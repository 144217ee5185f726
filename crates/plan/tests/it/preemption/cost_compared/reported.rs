//! What is reported of the comparison, and when.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_can_only_wait_is_told_no_figures() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang firm 1x8gpu for=10h
        plan
        started firm
        +1h
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit firm: a1[0-7]
    -- 1h
    firm runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn two_gangs_submitted_at_once_are_compared_separately() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang old 1x8gpu preemptible for=20h
        plan
        started old
        +19h
        gang young 1x8gpu preemptible for=20h
        plan
        started young
        +10m
        gang high[1..2] 1x8gpu prio=1 for=1h cost=10
        plan ways
    "), @"
    admit old: a1[0-7]
    -- 19h
    admit young: a2[0-7]
    old runs
    -- 19h10m
    order o0 for high1:  by 19h12m after all 1 of young: a2[0-7]
    stop young: preempted by high1
    old runs
    young is stopping
    high2 waits #1: r0 fits 0 of 1, provisioning off
      high1 Wait in 50m for 83.33: 0 others lose 0s
    * high1 Preempt in 0s for 1.33: 1 others lose 1h20m
    * high2 Wait in 50m for 83.33: 0 others lose 0s
      high2 Preempt in 0s for 153.33: 1 others lose 6d9h20m
    ");
}

#[test]
fn no_victim_is_evicted_before_bought_nodes_are_ready() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p nodes=1 : zone=a price=8 boot=5m
        gang firm 1x8gpu for=100h never
        gang low 1x8gpu preemptible for=20h never
        plan
        started firm
        started low
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan
        fail c0 stock-out
        plan
        plan
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-7]
    -- 1h
    order o0 for high: 1 x p/gpu8@a by 1h17m after all 1 of low: a2[0-7] c0[0-7]
    firm runs
    low runs
    -- 1h
    roll back o0: c0 StockOut
    firm runs
    low runs
    -- 1h
    release c0
    firm runs
    low runs
    high waits #1: r0 fits 0 of 2, offerings avoided until 1h3m
    ");
}

#[test]
fn comparison_is_reported_while_the_order_assembles() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=10
        gang firm 1x8gpu for=10h
        plan
        started firm
        +1h
        gang next 1x8gpu for=1h
        plan ways
        +1m
        plan ways
    "), @"
    admit firm: a1[0-7]
    -- 1h
    order o0 for next: 1 x p/gpu8@a by 1h15m: c0[0-7]
    firm runs
      next Wait in 9h for 90.00: 0 others lose 0s
    * next Buy in 3m for 11.00: 0 others lose 0s
    -- 1h1m
    firm runs
    next assembles o0: 0 of 1 by 1h15m
      next Wait in 9h for 90.00: 0 others lose 0s
    * next Buy in 3m for 11.00: 0 others lose 0s
    ");
}
