//! Gangs that cannot be preempted never hold lent capacity.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn non_preemptible_gang_waits_rather_than_hold_lent_capacity() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue lender sure=24
        queue borrower
        gang firm 3x8gpu queue=borrower for=10h
        gang soft 3x8gpu queue=borrower for=10h preemptible
        plan
        started soft
        +1h
        gang mine 3x8gpu queue=lender for=1h
        plan
    "), @"
    admit soft: a1[0-7] a2[0-7] a3[0-7]
    firm is impossible: non-preemptible in borrower holds 0gpu, wants 24gpu, guaranteed 0gpu
    -- 1h
    order o0 for mine:  by 1h2m after all 3 of soft: a1[0-7] a2[0-7] a3[0-7]
    stop soft: reclaimed by mine
    firm is impossible: non-preemptible in borrower holds 0gpu, wants 24gpu, guaranteed 0gpu
    soft is stopping
    ");
}

#[test]
fn within_its_guarantee_a_queue_has_non_preemptible_gangs() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue red sure=16
        queue blue sure=16
        gang r[1..3] 1x8gpu queue=red for=10h
        plan
        started r[1..2]
        +10m
        gang b[1..2] 1x8gpu queue=blue for=10h
        plan
        started b[1..2]
        end r1
        plan
    "), @"
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    r3 waits #1: non-preemptible in red holds 16gpu, wants 8gpu, guaranteed 16gpu
    -- 10m
    admit b1: a3[0-7]
    admit b2: a4[0-7]
    r1 runs
    r2 runs
    r3 waits #1: non-preemptible in red holds 16gpu, wants 8gpu, guaranteed 16gpu
    -- 10m
    admit r3: a1[0-7]
    r2 runs
    b1 runs
    b2 runs
    ");
}

#[test]
fn preemptible_gangs_do_not_use_up_the_cover_of_others() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=8
        queue blue sure=8
        gang soft 1x8gpu queue=red for=10h preemptible
        plan
        started soft
        gang firm 1x8gpu queue=red for=10h
        plan
        started firm
        +1h
        gang mine 1x8gpu queue=blue for=1h
        plan
    "), @"
    admit soft: a1[0-7]
    admit firm: a2[0-7]
    soft runs
    -- 1h
    order o0 for mine:  by 1h2m after all 1 of soft: a1[0-7]
    stop soft: reclaimed by mine
    soft is stopping
    firm runs
    ");
}

#[test]
fn unguaranteed_capacity_takes_non_preemptible_gangs() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue lender sure=16
        queue free
        gang f[1..3] 1x8gpu queue=free for=10h
    "), @"
    admit f1: a1[0-7]
    admit f2: a2[0-7]
    f3 waits #1: non-preemptible in free holds 16gpu, wants 8gpu, guaranteed 0gpu
    ");
}

#[test]
fn without_any_guarantee_nothing_is_held_back() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red
        queue blue
        gang r[1..2] 1x8gpu queue=red for=10h
    "), @"
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    ");
}

#[test]
fn guarantee_of_a_parent_beyond_its_children_covers_them() {
    assert_snapshot!(check("
        policy muster
        node a[1..6] gpus=8
        queue org sure=24
        queue team parent=org sure=8
        queue lab parent=org
        queue other sure=24
        gang t[1..2] 1x8gpu queue=team for=10h
        gang l[1..3] 1x8gpu queue=lab for=10h
    "), @"
    admit t1: a1[0-7]
    admit l1: a2[0-7]
    admit t2: a3[0-7]
    l2 waits #1: non-preemptible in lab holds 8gpu, wants 8gpu, guaranteed 0gpu
    l3 waits #2: non-preemptible in lab holds 8gpu, wants 8gpu, guaranteed 0gpu
    ");
}

#[test]
fn pools_that_may_grow_count_as_capacity() {
    assert_snapshot!(check("
        policy muster
        pool p nodes=4 : gpus=8 price=10
        queue lender sure=16
        queue free
        gang f[1..3] 1x8gpu queue=free for=10h
    "), @"
    order o0 for f1: 1 x p/gpu8@ by 15m: c0[0-7]
    order o1 for f2: 1 x p/gpu8@ by 15m: c1[0-7]
    f3 waits #1: non-preemptible in free holds 16gpu, wants 8gpu, guaranteed 0gpu
    ");
}

#[test]
fn larger_than_what_is_not_guaranteed_it_can_never_start() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue lender sure=24
        queue free
        gang wide 2x8gpu queue=free for=10h
        gang any 2x8gpu queue=free for=10h preemptible
        plan
        queue free firm=always
        plan
    "), @"
    admit any: a1[0-7] a2[0-7]
    wide is impossible: non-preemptible in free holds 0gpu, wants 16gpu, guaranteed 0gpu
    admit wide: a3[0-7] a4[0-7]
    any runs
    ");
}
