//! What was lent comes back: from queues beyond their guarantee, down to it, and only as far as the lender's goes.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn what_was_lent_is_taken_back_from_a_gang_that_runs_on_it() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
        stopped b1
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    b2 runs
      l1 Wait in 9h for 72.00: 0 others lose 0s
    * l1 Reclaim in 0s for 8.00: 1 others lose 8h
    -- 1h
    admit l1: a1[0-7]
    b1 starts by 2h1m
    b1 waits #1: r0 fits 0 of 1, provisioning off
    b2 runs
    ");
}

#[test]
fn it_stops_exactly_at_the_guarantee() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue lender sure=16
        queue borrower
        gang b[1..4] 1x8gpu queue=borrower preemptible for=10h
        plan
        started b[1..4]
        +1h
        gang l[1..3] 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    admit b3: a3[0-7]
    admit b4: a4[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    order o1 for l2:  by 1h2m after all 1 of b2: a2[0-7]
    stop b2: reclaimed by l2
    b1 is stopping
    b2 is stopping
    b3 runs
    b4 runs
    l3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn what_the_lender_already_holds_counts_for_its_guarantee() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue lender sure=16
        queue borrower
        gang l1 1x8gpu queue=lender for=10h
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h
        plan
        started l1
        started b[1..2]
        +1h
        gang l[2..3] 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit l1: a1[0-7]
    admit b1: a2[0-7]
    admit b2: a3[0-7]
    -- 1h
    order o0 for l2:  by 1h2m after all 1 of b1: a2[0-7]
    stop b1: reclaimed by l2
    l1 runs
    b1 is stopping
    b2 runs
    l3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_gang_larger_than_the_guarantee_takes_nothing_back() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang l1 2x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    b1 runs
    b2 runs
    l1 waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_queue_without_a_guarantee_takes_nothing_back() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue poor
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +1h
        gang p1 1x8gpu queue=poor prio=100 for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    b1 runs
    p1 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_queue_within_its_own_guarantee_is_left_alone() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue other sure=16
        gang b[1..2] 1x8gpu queue=other preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    b1 runs
    b2 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_queue_beyond_its_guarantee_is_taken_down_to_it_and_no_further() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue lender sure=24
        queue other sure=8
        gang b[1..3] 1x8gpu queue=other preemptible for=10h
        plan
        started b[1..3]
        +1h
        gang l[1..3] 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    admit b3: a3[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    order o1 for l2:  by 1h2m after all 1 of b2: a2[0-7]
    stop b2: reclaimed by l2
    b1 is stopping
    b2 is stopping
    b3 runs
    l3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn those_who_are_leaving_already_count_as_gone_when_the_guarantee_is_looked_at() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue lender sure=24
        queue other sure=8
        gang b[1..3] 1x8gpu queue=other preemptible for=10h grace=5m
        plan
        started b[1..3]
        +1h
        gang l[1..2] 1x8gpu queue=lender for=1h
        plan
        gang l3 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    admit b3: a3[0-7]
    -- 1h
    order o0 for l1:  by 1h7m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    order o1 for l2:  by 1h7m after all 1 of b2: a2[0-7]
    stop b2: reclaimed by l2
    b1 is stopping
    b2 is stopping
    b3 runs
    -- 1h
    b1 is stopping
    b2 is stopping
    b3 runs
    l1 assembles o0: 0 of 0, 1 leaving by 1h7m
    l2 assembles o1: 0 of 0, 1 leaving by 1h7m
    l3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn what_others_leave_for_their_own_queue_does_not_make_it_beyond_its_guarantee() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue other sure=8
        gang low 1x8gpu queue=other preemptible for=10h grace=5m
        gang firm 1x8gpu queue=lender for=10h
        plan
        started low
        started firm
        +1h
        gang high 1x8gpu queue=other prio=5 preemptible for=10h
        plan
        end firm
        gang l[1..2] 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit low: a1[0-7]
    admit firm: a2[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    firm runs
    -- 1h
    admit l1: a2[0-7]
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    l2 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn for_a_gang_that_needs_more_than_is_beyond_the_guarantee_nobody_is_stopped() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue lender sure=24
        queue other sure=8
        gang b[1..3] 1x8gpu queue=other preemptible for=10h
        plan
        started b[1..3]
        +1h
        gang l1 3x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    admit b3: a3[0-7]
    -- 1h
    b1 runs
    b2 runs
    b3 runs
    l1 waits #1: r0 fits 0 of 3, provisioning off
    ");
}

/// Half of it would be a remnant, and the lender's half is the lender's.
#[test]
fn a_rigid_gang_that_stands_partly_on_what_was_lent_is_stopped_whole() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue other sure=8
        gang b1 2x8gpu queue=other preemptible for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
        stopped b1
        plan
        started l1
        plan
    "), @"
    admit b1: a1[0-7] a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 2 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    -- 1h
    admit l1: a1[0-7]
    b1 starts by 2h1m
    b1 waits #1: r0 fits 1 of 2, provisioning off
    -- 1h
    b1 starts by 2h
    b1 waits #1: r0 fits 1 of 2, provisioning off
    l1 runs
    ");
}

#[test]
fn an_elastic_gang_gives_back_what_was_lent_and_goes_on_with_the_rest() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue other sure=8
        gang b1 1..2x8gpu queue=other preemptible for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
        resized b1
        plan
    "), @"
    admit b1: a1[0-7] a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after 1 of b1: a2[0-7]
    resize b1 from 2 to 1: a1[0-7]
    b1 runs
      l1 Wait in 9h for 72.00: 0 others lose 0s
    * l1 Shrink in 0s for 0.07: 1 others lose 8m
    -- 1h
    admit l1: a2[0-7]
    b1 runs
    ");
}

#[test]
fn who_is_not_preemptible_keeps_what_was_lent() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_priority_of_the_one_that_borrows_does_not_matter() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible prio=1000 for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender prio=-5 for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

/// Ten minutes where the queue does not say.
#[test]
fn minimum_runtime_protects_who_borrows_only_as_long_as_the_lender_waits() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible minrun=5h for=10h
        plan
        started b1
        +5m
        gang l1 1x8gpu queue=lender for=1h
        plan wake
        +5m
        plan
    "), @"
    admit b1: a1[0-7]
    -- 5m
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    wake at 10m
    -- 10m
    order o0 for l1:  by 12m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn a_lender_that_wants_it_back_sooner_gets_it_sooner() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8 reclaim=1m
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible minrun=5h for=10h
        plan
        started b1
        +30s
        gang l1 1x8gpu queue=lender for=1h
        plan wake
        +30s
        plan
    "), @"
    admit b1: a1[0-7]
    -- 30s
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    wake at 1m
    -- 1m
    order o0 for l1:  by 3m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn a_short_minimum_runtime_protects_for_as_long_as_it_says() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible minrun=3m for=10h
        plan
        started b1
        +2m
        gang l1 1x8gpu queue=lender for=1h
        plan wake
        +1m
        plan
    "), @"
    admit b1: a1[0-7]
    -- 2m
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    wake at 3m
    -- 3m
    order o0 for l1:  by 5m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn a_gang_that_borrows_and_has_not_started_yet_is_stopped_at_once() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible minrun=5h for=10h
        plan
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    order o0 for l1:  by 2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn what_was_lent_goes_back_however_often_that_was_in_the_last_hour() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=16
        queue borrower evictions=1
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang l[1..2] 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    order o1 for l2:  by 1h2m after all 1 of b2: a2[0-7]
    stop b2: reclaimed by l2
    b1 is stopping
    b2 is stopping
    ");
}

#[test]
fn what_is_free_is_taken_first() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    admit l1: a2[0-7]
    b1 runs
    ");
}

#[test]
fn what_is_free_and_what_was_lent_are_combined() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=16
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +1h
        gang l1 2x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7] a2[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn who_loses_least_gives_it_back() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue red
        queue blue
        gang old 1x8gpu queue=red preemptible for=10h
        plan
        started old
        +5h
        gang young 1x8gpu queue=blue preemptible for=10h
        plan
        started young
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit old: a1[0-7]
    -- 5h
    admit young: a2[0-7]
    old runs
    -- 6h
    order o0 for l1:  by 6h2m after all 1 of young: a2[0-7]
    stop young: reclaimed by l1
    old runs
    young is stopping
    ");
}

#[test]
fn waiting_is_chosen_where_the_other_ends_in_time_and_would_lose_more() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8 reclaim=10m
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +9h55m
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    -- 9h55m
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    * l1 Wait in 5m for 0.67: 0 others lose 0s
      l1 Reclaim in 0s for 79.33: 1 others lose 3d7h20m
    ");
}

#[test]
fn it_is_back_in_time_though_waiting_would_cost_less() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8 reclaim=10m
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=20h
        plan
        started b1
        +19h
        gang l1 1x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a1[0-7]
    -- 19h
    order o0 for l1:  by 19h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
      l1 Wait in 1h for 8.00: 0 others lose 0s
    * l1 Reclaim in 0s for 152.00: 1 others lose 6d8h
    ");
}

#[test]
fn the_whole_time_until_it_is_back_counts_from_when_it_was_wanted() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8 reclaim=10m
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +9h55m
        gang l1 1x8gpu queue=lender for=1h
        plan
        +5m
        plan
    "), @"
    admit b1: a1[0-7]
    -- 9h55m
    b1 runs
    l1 waits #1: r0 fits 0 of 1, provisioning off
    -- 10h
    order o0 for l1:  by 10h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn a_branch_takes_back_from_another_branch_what_a_queue_below_it_wants() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue physics sure=8
        queue optics parent=physics
        queue biology
        queue cells parent=biology
        gang b[1..2] 1x8gpu queue=cells preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang o[1..2] 1x8gpu queue=optics for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for o1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by o1
    b1 is stopping
    b2 runs
    o2 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn what_siblings_hold_counts_for_the_guarantee_of_their_branch() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue physics sure=8
        queue optics parent=physics
        queue plasma parent=physics
        queue biology
        gang p1 1x8gpu queue=plasma preemptible for=10h
        gang b1 1x8gpu queue=biology preemptible for=10h
        plan
        started p1
        started b1
        +1h
        gang o1 1x8gpu queue=optics for=1h
        plan
    "), @"
    admit p1: a1[0-7]
    admit b1: a2[0-7]
    -- 1h
    p1 runs
    b1 runs
    o1 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_queue_with_a_guarantee_of_its_own_takes_it_back_from_its_sibling() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue physics
        queue optics parent=physics sure=8
        queue plasma parent=physics
        gang p1 1x8gpu queue=plasma preemptible for=10h
        plan
        started p1
        +1h
        gang o1 1x8gpu queue=optics for=1h
        plan
    "), @"
    admit p1: a1[0-7]
    -- 1h
    order o0 for o1:  by 1h2m after all 1 of p1: a1[0-7]
    stop p1: reclaimed by o1
    p1 is stopping
    ");
}

#[test]
fn a_branch_without_a_guarantee_has_those_of_the_queues_below_it() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue physics
        queue optics parent=physics sure=8
        queue biology
        gang b[1..2] 1x8gpu queue=biology preemptible for=10h
        plan
        started b[1..2]
        +1h
        gang o1 1x8gpu queue=optics for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for o1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by o1
    b1 is stopping
    b2 runs
    ");
}

#[test]
fn a_queue_within_its_guarantee_in_a_branch_beyond_its_own_is_left_alone() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue biology sure=8
        queue cells parent=biology sure=8
        queue genes parent=biology
        gang c1 1x8gpu queue=cells preemptible for=10h
        plan
        started c1
        +1h
        gang g1 1x8gpu queue=genes preemptible for=10h
        plan
        started g1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit c1: a1[0-7]
    -- 1h
    admit g1: a2[0-7]
    c1 runs
    -- 2h
    order o0 for l1:  by 2h2m after all 1 of g1: a2[0-7]
    stop g1: reclaimed by l1
    c1 runs
    g1 is stopping
    ");
}

#[test]
fn for_a_share_of_a_gpu_that_was_lent_one_share_comes_back() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=1
        queue lender sure=1
        queue borrower
        gang b[1..4] 1x0.25gpu queue=borrower preemptible for=10h
        plan
        started b[1..4]
        +1h
        gang l1 1x0.5gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0]
    admit b2: a1[0]
    admit b3: a1[0]
    admit b4: a1[0]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1, all 1 of b2: a1[0]
    stop b1: reclaimed by l1
    stop b2: reclaimed by l1
    b1 is stopping
    b2 is stopping
    b3 runs
    b4 runs
    ");
}

#[test]
fn who_gave_back_what_was_lent_does_not_take_it_again() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang b[1..2] 1x8gpu queue=borrower preemptible for=3h save=10m restart=1m
        plan
        started b[1..2]
        run 30m
        gang l1 1x8gpu queue=lender for=1h
        run 6h
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 40m
    order o0 for l1:  by 42m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    admit l1: a1[0-7]
    -- 1h40m
    l1 ends
    admit b1: a1[0-7]
    -- 3h
    b2 ends
    -- 4h10m
    b1 ends
    ");
}

#[test]
fn two_queues_that_lend_to_each_other_settle_at_their_guarantees() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue red sure=16
        queue blue sure=16
        gang r[1..4] 1x8gpu queue=red preemptible for=4h save=10m restart=1m
        plan
        started r[1..4]
        run 30m
        gang b[1..4] 1x8gpu queue=blue preemptible for=4h save=10m restart=1m
        run 3h
    "), @"
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    admit r3: a3[0-7]
    admit r4: a4[0-7]
    -- 40m
    order o0 for b1:  by 42m after all 1 of r1: a1[0-7]
    stop r1: reclaimed by b1
    order o1 for b2:  by 42m after all 1 of r2: a2[0-7]
    stop r2: reclaimed by b2
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    ");
}

#[test]
fn in_an_order_without_shares_a_guarantee_is_taken_back_all_the_same() {
    assert_snapshot!(check("
        policy fifo
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang b1 1x8gpu queue=borrower preemptible for=10h
        plan
        started b1
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    -- 1h
    order o0 for l1:  by 1h2m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    ");
}

#[test]
fn when_nobody_borrows_too_much_any_more_those_who_make_way_are_not_asked_again() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower sure=8
        gang b[1..2] 1x8gpu queue=borrower preemptible for=10h grace=2m
        plan
        started b[1..2]
        +1h
        gang l1 1x8gpu queue=lender for=1h
        plan
        gang l2 1x8gpu queue=lender for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 1h
    order o0 for l1:  by 1h4m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by l1
    b1 is stopping
    b2 runs
    -- 1h
    b1 is stopping
    b2 runs
    l1 assembles o0: 0 of 0, 1 leaving by 1h4m
    l2 waits #1: r0 fits 0 of 1, provisioning off
    ");
}
