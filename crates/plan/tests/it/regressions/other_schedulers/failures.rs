//! Nodes and members that are lost.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn volcano_5805_a_broken_gang_gets_its_missing_node_before_fresh_gangs() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red
        queue blue
        gang train 2x8gpu queue=red for=10h
        gang firm 1x8gpu queue=blue for=1h
        plan
        started train
        started firm
        +30m
        gang fresh[1..3] 1x8gpu queue=blue for=1h
        plan
        lost a2
        plan
        stopped train
        plan
        end firm
        plan
    "), @"
    admit firm: a1[0-7]
    admit train: a2[0-7] a3[0-7]
    -- 30m
    train runs
    firm runs
    fresh1 waits #1: r0 fits 0 of 1, provisioning off
    fresh2 waits #2: r0 fits 0 of 1, provisioning off
    fresh3 waits #3: r0 fits 0 of 1, provisioning off
    -- 30m
    stop train: a2 lost
    firm runs
    fresh1 waits #1: r0 fits 0 of 1, provisioning off
    fresh2 waits #2: r0 fits 0 of 1, provisioning off
    fresh3 waits #3: r0 fits 0 of 1, provisioning off
    -- 30m
    train starts by 1h
    train waits #1: r0 fits 1 of 2, provisioning off
    firm runs
    fresh1 waits #2: behind train
    fresh2 waits #3: behind train
    fresh3 waits #4: behind train
    -- 30m
    admit train: a1[0-7] a3[0-7]
    fresh1 starts by 10h30m
    fresh1 waits #1: r0 fits 0 of 1, provisioning off
    fresh2 waits #2: r0 fits 0 of 1, provisioning off
    fresh3 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn kueue_14244_a_second_failed_node_does_not_end_a_job_of_500_nodes() {
    assert_snapshot!(check("
        node a[1..500] gpus=1
        node s[1..2] gpus=1
        gang big 500x1gpu for=100h save=30m
        run 10m
        lost a7
        run 10m
        lost a8
        run 10m
        look big
    "), @"
    -- 10m
    admit big: a1[0] ... a500[0] (500)
    -- 20m
    stop big: a7 lost
    admit big: a1[0] ... s1[0] (500)
    -- 30m
    stop big: a8 lost
    admit big: a1[0] ... s2[0] (500)
    big has 500 members, 0s done, 4d4h left, 2 restarts, 0 evictions
    -- 30m
    big runs
    ");
}

#[test]
fn kueue_14244_nor_does_one_that_fails_while_the_first_is_being_replaced() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        pool p : zone=a price=10
        gang big 4x8gpu for=100h save=30m
        plan
        started big
        +1h
        lost a1
        plan
        stopped big
        plan
        lost a2
        plan
        plan
        lost a3
        plan
        plan
        look big
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h
    stop big: a1 lost
    -- 1h
    order o0 for big: 1 x p/gpu8@a by 1h15m: a2[0-7] a3[0-7] a4[0-7] c0[0-7]
    -- 1h
    roll back o0: a2 lost
    -- 1h
    order o1 for big: 2 x p/gpu8@a by 1h15m: a3[0-7] a4[0-7] c0[0-7] c1[0-7]
    -- 1h
    roll back o1: a3 lost
    -- 1h
    order o2 for big: 3 x p/gpu8@a by 1h15m: a4[0-7] c0[0-7] c1[0-7] c2[0-7]
    big has 0 members, 1h done, 4d3h left, 1 restarts, 0 evictions
    ");
}

#[test]
fn k8s_142330_a_gang_that_lost_a_member_starts_again_with_all_of_them() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 2x8gpu for=10h
        plan
        started train
        +1h
        lost a2
        plan
        stopped train
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    -- 1h
    stop train: a2 lost
    -- 1h
    admit train: a1[0-7] a3[0-7]
    ");
}
