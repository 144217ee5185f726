//! The guarantees of branches and of the queues below them.

use insta::assert_snapshot;

use crate::dsl::check;

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
