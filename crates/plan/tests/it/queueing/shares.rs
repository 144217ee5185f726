//! Queues take turns by fair share.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn the_queue_that_holds_least_goes_first() {
    assert_snapshot!(check("
        policy fair
        node a[1..4] gpus=8
        queue red
        queue blue
        gang r[1..4] 1x8gpu queue=red
        gang b[1..2] 1x8gpu queue=blue
    "), @"
    admit r1: a1[0-7]
    admit b1: a2[0-7]
    admit r2: a3[0-7]
    admit b2: a4[0-7]
    r3 starts by 1h
    r3 waits #1: r0 fits 0 of 1, provisioning off
    r4 waits #2: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn weights_are_what_shares_are_for() {
    assert_snapshot!(check("
        policy fair
        node a[1..6] gpus=8
        queue one weight=1
        queue two weight=2
        queue three weight=3
        gang a[1..6] 1x8gpu queue=one
        gang b[1..6] 1x8gpu queue=two
        gang c[1..6] 1x8gpu queue=three
    "), @"
    admit c1: a1[0-7]
    admit b1: a2[0-7]
    admit a1: a3[0-7]
    admit c2: a4[0-7]
    admit b2: a5[0-7]
    admit c3: a6[0-7]
    c4 starts by 1h
    a2 waits #8: r0 fits 0 of 1, provisioning off
    a3 waits #9: r0 fits 0 of 1, provisioning off
    a4 waits #10: r0 fits 0 of 1, provisioning off
    a5 waits #11: r0 fits 0 of 1, provisioning off
    a6 waits #12: r0 fits 0 of 1, provisioning off
    b3 waits #4: r0 fits 0 of 1, provisioning off
    b4 waits #5: r0 fits 0 of 1, provisioning off
    b5 waits #6: r0 fits 0 of 1, provisioning off
    b6 waits #7: r0 fits 0 of 1, provisioning off
    c4 waits #1: r0 fits 0 of 1, provisioning off
    c5 waits #2: r0 fits 0 of 1, provisioning off
    c6 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn within_its_guarantee_a_queue_goes_before_all_others() {
    assert_snapshot!(check("
        policy fair
        node a[1..4] gpus=8
        queue rich weight=9 firm=always
        queue sure sure=16 firm=always
        gang s1 1x8gpu queue=sure
        plan
        gang r[1..4] 1x8gpu queue=rich
        gang s[2..3] 1x8gpu queue=sure
        plan
    "), @"
    admit s1: a1[0-7]
    admit s2: a2[0-7]
    admit r1: a3[0-7]
    admit r2: a4[0-7]
    r3 starts by 1h
    s1 runs
    r3 waits #1: r0 fits 0 of 1, provisioning off
    r4 waits #2: r0 fits 0 of 1, provisioning off
    s3 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_tenant_that_comes_back_gets_its_guarantee_as_others_end() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue lender sure=16 firm=always
        queue borrower firm=always
        gang b[1..8] 1x8gpu queue=borrower for=1h
        plan
        gang l[1..3] 1x8gpu queue=lender for=1h
        plan
        +30m
        end b1
        end b2
        end b3
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    admit b3: a3[0-7]
    admit b4: a4[0-7]
    b5 waits #1: r0 fits 0 of 1, provisioning off
    b6 waits #2: r0 fits 0 of 1, provisioning off
    b7 waits #3: r0 fits 0 of 1, provisioning off
    b8 waits #4: r0 fits 0 of 1, provisioning off
    l1 starts by 1h
    b1 runs
    b2 runs
    b3 runs
    b4 runs
    b5 waits #4: r0 fits 0 of 1, provisioning off
    b6 waits #5: r0 fits 0 of 1, provisioning off
    b7 waits #6: r0 fits 0 of 1, provisioning off
    b8 waits #7: r0 fits 0 of 1, provisioning off
    l1 waits #1: r0 fits 0 of 1, provisioning off
    l2 waits #2: r0 fits 0 of 1, provisioning off
    l3 waits #3: r0 fits 0 of 1, provisioning off
    -- 30m
    admit l1: a1[0-7]
    admit l2: a2[0-7]
    admit b5: a3[0-7]
    l3 starts by 1h
    b4 runs
    b6 waits #2: r0 fits 0 of 1, provisioning off
    b7 waits #3: r0 fits 0 of 1, provisioning off
    b8 waits #4: r0 fits 0 of 1, provisioning off
    l3 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn recent_usage_counts_for_the_share() {
    assert_snapshot!(check("
        policy fair
        node a1 gpus=8
        queue busy half=1h
        queue idle half=1h
        gang b1 1x8gpu queue=busy for=2h
        plan
        +2h
        gang b2 1x8gpu queue=busy
        gang i1 1x8gpu queue=idle
        end b1
        plan
    "), @"
    admit b1: a1[0-7]
    -- 2h
    admit i1: a1[0-7]
    b2 starts by 3h
    b2 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn without_a_half_life_only_the_present_counts() {
    assert_snapshot!(check("
        policy fair
        node a1 gpus=8
        queue busy half=0s
        queue idle half=0s
        gang b1 1x8gpu queue=busy for=2h
        plan
        +2h
        gang b2 1x8gpu queue=busy
        gang i1 1x8gpu queue=idle
        end b1
        plan
    "), @"
    admit b1: a1[0-7]
    -- 2h
    admit b2: a1[0-7]
    i1 starts by 3h
    i1 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn branches_take_turns_before_their_queues_do() {
    // org has two queues and lab one: lab gets half, not a third.
    assert_snapshot!(check("
        policy fair
        node a[1..4] gpus=8
        queue org
        queue ads parent=org
        queue web parent=org
        queue lab
        gang a[1..4] 1x8gpu queue=ads
        gang w[1..4] 1x8gpu queue=web
        gang l[1..4] 1x8gpu queue=lab
    "), @"
    admit a1: a1[0-7]
    admit l1: a2[0-7]
    admit w1: a3[0-7]
    admit l2: a4[0-7]
    a2 starts by 1h
    a2 waits #1: r0 fits 0 of 1, provisioning off
    a3 waits #2: r0 fits 0 of 1, provisioning off
    a4 waits #3: r0 fits 0 of 1, provisioning off
    w2 waits #4: r0 fits 0 of 1, provisioning off
    w3 waits #5: r0 fits 0 of 1, provisioning off
    w4 waits #6: r0 fits 0 of 1, provisioning off
    l3 waits #7: r0 fits 0 of 1, provisioning off
    l4 waits #8: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_resource_held_most_of_counts() {
    // 9 cores and 18 GiB, one user of 1 core and 4 GiB, one of 3 cores and 1 GiB: three tasks and two.
    assert_snapshot!(check("
        policy fair
        node a1 cpu=9 mem=18
        queue memory
        queue cores
        gang m[1..5] 1x1cpu/4gi queue=memory
        gang c[1..5] 1x3cpu/1gi queue=cores
    "), @"
    admit m1: a1
    admit c1: a1
    admit m2: a1
    admit c2: a1
    admit m3: a1
    m4 starts by 1h
    m4 waits #1: r0 fits 0 of 1, provisioning off
    m5 waits #2: r0 fits 0 of 1, provisioning off
    c3 waits #3: r0 fits 0 of 1, provisioning off
    c4 waits #4: r0 fits 0 of 1, provisioning off
    c5 waits #5: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn weighted_dominant_shares_hold_for_each_weight() {
    // The same, with the cores' queue at weight 2.
    assert_snapshot!(check("
        policy fair
        node a1 cpu=9 mem=18
        queue memory
        queue cores weight=2
        gang m[1..5] 1x1cpu/4gi queue=memory
        gang c[1..5] 1x3cpu/1gi queue=cores
    "), @"
    admit c1: a1
    admit m1: a1
    admit c2: a1
    admit m2: a1
    admit m3: a1
    c3 starts by 1h
    m4 waits #4: r0 fits 0 of 1, provisioning off
    m5 waits #5: r0 fits 0 of 1, provisioning off
    c3 waits #1: r0 fits 0 of 1, provisioning off
    c4 waits #2: r0 fits 0 of 1, provisioning off
    c5 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn user_is_held_to_the_limit_and_other_users_pass() {
    assert_snapshot!(check("
        policy easy
        node a[1..4] gpus=8
        queue team each=8
        gang x[1..2] 1x8gpu queue=team user=ann
        gang y1 1x8gpu queue=team user=bob
        plan
        end x1
        plan
    "), @"
    admit x1: a1[0-7]
    admit y1: a2[0-7]
    x2 starts by 1h
    x2 waits #1: user in team holds 8gpu, wants 8gpu, limit 8gpu
    admit x2: a1[0-7]
    y1 runs
    ");
}

#[test]
fn a_gang_beyond_its_users_limit_can_never_run() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue team each=8
        gang x1 2x8gpu queue=team user=ann
    "), @"x1 is impossible: user in team holds 0gpu, wants 16gpu, limit 8gpu");
}
