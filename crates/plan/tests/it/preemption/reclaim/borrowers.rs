//! Which borrowers are reclaimed, whole or in part, and when.

use insta::assert_snapshot;

use crate::dsl::check;

/// Half of it would be a remnant, and the lender's half is the lender's.
#[test]
fn rigid_gang_partly_on_lent_nodes_is_stopped_whole() {
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
fn elastic_gang_gives_back_lent_nodes_and_goes_on_with_the_rest() {
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
fn non_preemptible_gang_keeps_lent_nodes() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower firm=always
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
fn priority_of_the_borrower_does_not_matter() {
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
fn minimum_runtime_protects_a_borrower_only_while_the_lender_waits() {
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
fn reclaim_ignores_the_eviction_budget() {
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
fn borrower_that_loses_least_is_reclaimed() {
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
fn guarantee_is_back_in_time_though_waiting_would_cost_less() {
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
fn reclaim_time_counts_from_the_submission() {
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
fn one_gpu_share_is_reclaimed_for_one_gpu_share() {
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
fn reclaimed_borrower_does_not_take_it_again() {
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
