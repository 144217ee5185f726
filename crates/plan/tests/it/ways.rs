//! All ways to start a gang are compared in one sum, and the figures are told.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn waiting_and_preempting_are_compared() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn urgency_is_how_much_more_the_delay_of_a_higher_priority_counts() {
    assert_snapshot!(check("
        policy fifo urgency=1
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 8.00: 0 others lose 0s
      high Preempt in 0s for 72.00: 1 others lose 3d
    ");
}

#[test]
fn with_the_usual_urgency_the_same_one_is_stopped() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h
    order o0 for high:  by 9h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 80.00: 0 others lose 0s
    * high Preempt in 0s for 72.00: 1 others lose 3d
    ");
}

#[test]
fn a_delay_that_costs_little_is_waited_out() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h cost=0.01
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 9h for 0.90: 0 others lose 0s
      high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn a_delay_that_costs_nothing_is_waited_out() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h cost=0
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 9h for 0.00: 0 others lose 0s
      high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn a_dear_delay_makes_even_a_long_run_stop() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1000
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    order o0 for high:  by 19h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 10000.00: 0 others lose 0s
    * high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn where_only_one_way_meets_the_deadline_it_is_taken_whatever_it_costs() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=20h30m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    order o0 for high:  by 19h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h for 10.00: 0 others lose 0s
    * high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn a_deadline_that_waiting_meets_changes_nothing() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=22h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 10.00: 0 others lose 0s
      high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn a_deadline_that_is_lost_already_costs_nobody_his_work() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=20h
        plan
        started low
        +19h
        gang high 1x8gpu prio=1 for=1h cost=1 deadline=19h30m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 19h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1h for 10.00: 0 others lose 0s
      high Preempt in 0s for 152.00: 1 others lose 6d8h
    ");
}

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
fn who_may_not_buy_is_left_with_the_rest() {
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
fn with_nodes_that_cost_more_the_work_of_others_is_worth_more() {
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
fn what_was_lent_is_bought_anew_where_that_is_cheaper_and_in_time() {
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
fn what_was_lent_is_taken_back_where_buying_takes_too_long() {
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
fn a_turn_costs_what_it_costs_and_nobody_is_blamed_for_it() {
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
fn shrink_and_preempt_in_one_way_are_called_by_what_is_worse() {
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

#[test]
fn the_wait_that_was_counts_when_waiting_is_compared_again() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h50m
        gang high 1x8gpu prio=1 for=1h cost=20
        plan ways
        +12m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 10m for 33.33: 0 others lose 0s
      high Preempt in 0s for 78.67: 1 others lose 3d6h40m
    -- 10h2m
    order o0 for high:  by 10h4m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 1h12s for 240.67: 0 others lose 0s
    * high Preempt in 0s for 80.27: 1 others lose 3d8h16m
    ");
}

#[test]
fn the_planner_looks_again_when_waiting_has_become_as_dear() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h50m
        gang high 1x8gpu prio=1 for=1h cost=20
        plan wake
    "), @"
    admit low: a1[0-7]
    -- 9h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    wake at 10h13m36s
    ");
}

#[test]
fn the_grace_of_victims_is_part_of_the_delay() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=30m save=told
        plan
        started low
        +9h45m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h45m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 15m for 20.00: 0 others lose 0s
      high Preempt in 30m for 40.00: 1 others lose 0s
    ");
}

#[test]
fn who_has_no_other_way_than_to_wait_is_told_no_figures() {
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
fn two_who_come_at_once_are_compared_each_for_itself() {
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
fn nobody_is_told_to_leave_before_what_was_bought_is_there() {
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
fn what_was_compared_is_told_as_long_as_the_order_assembles() {
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
