//! How far reclaiming goes: up to the guarantee of the lender, and down to that of the borrower.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn lent_nodes_are_reclaimed_from_a_running_gang() {
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
fn reclaim_stops_exactly_at_the_guarantee() {
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
fn leaving_gangs_count_as_gone_for_the_guarantee() {
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
fn seats_left_within_a_queue_do_not_put_it_beyond_its_guarantee() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8 firm=always
        queue other sure=8 firm=always
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
fn no_gang_is_stopped_if_usage_beyond_the_guarantee_is_not_enough() {
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
fn victims_are_not_chosen_again_when_no_queue_borrows_too_much() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8 firm=always
        queue borrower sure=8 firm=always
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
