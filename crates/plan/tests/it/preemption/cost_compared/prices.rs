//! What each way costs: buying, shrinking, reclaiming, rotating, moving.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn buying_is_compared_with_preempting_by_price_and_boot_time() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=8 boot=5m
        gang low 1x8gpu preemptible for=20h never
        plan
        started low
        +10h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 10h
    order o0 for high: 1 x p/gpu8@a by 10h15m: c0[0-7]
    low runs
    * high Buy in 5m for 15.33: 0 others lose 0s
      high Preempt in 0s for 80.00: 1 others lose 3d8h
    ");
}

#[test]
fn where_nothing_was_done_yet_preempting_is_cheaper_than_buying() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=8 boot=5m
        gang low 1x8gpu preemptible for=20h never
        plan
        started low
        +1m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1m
    order o0 for high:  by 3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Buy in 5m for 15.33: 0 others lose 0s
    * high Preempt in 0s for 0.13: 1 others lose 8m
    ");
}

#[test]
fn gang_that_may_not_buy_compares_the_other_ways() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=8 boot=5m
        gang low 1x8gpu preemptible for=20h never
        plan
        started low
        +10h
        gang high 1x8gpu prio=1 for=1h never
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 10h
    order o0 for high:  by 10h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 10h for 800.00: 0 others lose 0s
    * high Preempt in 0s for 80.00: 1 others lose 3d8h
    ");
}

#[test]
fn work_of_victims_is_worth_more_where_nodes_cost_more() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=800 boot=5m
        gang low 1x8gpu preemptible for=20h never
        plan
        started low
        +10h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 10h
    order o0 for high: 1 x p/gpu8@a by 10h15m: c0[0-7]
    low runs
    * high Buy in 5m for 1533.33: 0 others lose 0s
      high Preempt in 0s for 8000.00: 1 others lose 3d8h
    ");
}

#[test]
fn shrinking_costs_a_pause() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h resize=5m
        plan
        started big
        +1h
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    order o0 for next:  by 1h2m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
      next Wait in 9h for 72.00: 0 others lose 0s
    * next Shrink in 0s for 0.67: 1 others lose 1h20m
    ");
}

#[test]
fn shrinking_is_compared_with_buying() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=8 boot=5m
        gang big 1..2x8gpu for=10h resize=5m never
        plan
        started big
        +1h
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    order o0 for next:  by 1h2m after 1 of big: a2[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
      next Buy in 5m for 9.33: 0 others lose 0s
    * next Shrink in 0s for 0.67: 1 others lose 1h20m
    ");
}

#[test]
fn a_very_slow_pause_makes_buying_cheaper() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=8 boot=1m
        gang big 1..2x8gpu for=10h resize=2h never
        plan
        started big
        +1h
        gang next 1x8gpu for=1h
        plan ways
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 1h
    order o0 for next: 1 x p/gpu8@a by 1h15m: c0[0-7]
    big runs
    * next Buy in 1m for 8.27: 0 others lose 0s
      next Shrink in 0s for 16.00: 1 others lose 1d8h
    ");
}

#[test]
fn reclaiming_is_compared_with_waiting() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
      l1 Wait in 9h for 72.00: 0 others lose 0s
    * l1 Reclaim in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn lent_nodes_are_bought_anew_where_cheaper_and_in_time() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        pool p : zone=a price=8 boot=5m
        gang b1 1x8gpu queue=borrower preemptible for=20h never
        plan
        started b1
        +10h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    -- 10h
    order o0 for l1: 1 x p/gpu8@a by 10h15m: c0[0-7]
    b1 runs
    * l1 Buy in 5m for 9.33: 0 others lose 0s
      l1 Reclaim in 0s for 80.00: 1 others lose 3d8h
    ");
}

#[test]
fn lent_nodes_are_reclaimed_where_buying_takes_too_long() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8 reclaim=2m
        queue borrower
        pool p : zone=a price=8 boot=5m
        gang b1 1x8gpu queue=borrower preemptible for=20h never
        plan
        started b1
        +10h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    -- 10h
    order o0 for l1:  by 10h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
      l1 Buy in 5m for 9.33: 0 others lose 0s
    * l1 Reclaim in 0s for 80.00: 1 others lose 3d8h
    ");
}

#[test]
fn rotation_cost_is_reported_and_not_counted() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=2m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=2m
        plan
        started one
        +1h
        plan ways
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for two:  by 1h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
      two Wait in 9h for 80.00: 0 others lose 0s
    * two Rotate in 0s for 0.00: 1 others lose 16m
    ");
}

#[test]
fn moving_costs_restarts() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang hold 1x4gpu for=10m if:hostname=a1
        gang one 1x4gpu for=10h if:hostname=a1
        gang two 1x4gpu preemptible for=10h save=told restart=2m
        plan
        started hold
        started one
        started two
        +10m
        end hold
        gang wide 1x8gpu for=1h
        plan ways
    "), @"
    admit hold: a1[0-3]
    admit one: a1[4-7]
    admit two: a2[0-3]
    -- 10m
    order o0 for wide:  by 12m after all 1 of two: a2[0-7]
    stop two: moves
    one runs
    two is stopping
      wide Wait in 9h50m for 78.67: 0 others lose 0s
    * wide Move in 0s for 0.13: 1 others lose 8m
    ");
}

#[test]
fn shrinking_and_preempting_together_is_reported_as_preempting() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..2x8gpu for=10h
        gang low 1x8gpu preemptible for=10h
        plan
        started big
        started low
        +10m
        gang high 2x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a2[0-7]
    admit big: a1[0-7] a3[0-7]
    -- 10m
    order o0 for high:  by 12m after 1 of big, all 1 of low: a2[0-7] a3[0-7]
    resize big from 2 to 1: a1[0-7]
    stop low: preempted by high
    big runs
    low is stopping
      high Wait in 9h50m for 1573.33: 0 others lose 0s
    * high Preempt in 0s for 1.47: 2 others lose 1h28m
    ");
}
