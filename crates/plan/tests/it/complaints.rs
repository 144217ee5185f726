//! What users of other schedulers complain of, by issue. Each case is what happens here instead.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn volcano_4607_of_ten_jobs_one_is_stopped_whole_and_not_one_pod_of_each() {
    assert_snapshot!(check("
        node a[1..10] gpus=2
        gang low[1..10] 2x1gpu preemptible for=10h
        plan
        started low[1..10]
        +10m
        gang high 1x2gpu prio=10 for=1h
        plan
    "), @"
    admit low1: a1[0] a1[1]
    admit low2: a2[0] a2[1]
    admit low3: a3[0] a3[1]
    admit low4: a4[0] a4[1]
    admit low5: a5[0] a5[1]
    admit low6: a6[0] a6[1]
    admit low7: a7[0] a7[1]
    admit low8: a8[0] a8[1]
    admit low9: a9[0] a9[1]
    admit low10: a10[0] a10[1]
    -- 10m
    order o0 for high:  by 12m after all 2 of low1: a1[0-1]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    low3 runs
    low4 runs
    low5 runs
    low6 runs
    low7 runs
    low8 runs
    low9 runs
    low10 runs
    ");
}

#[test]
fn volcano_3291_a_free_node_and_a_victims_node_make_one_placement() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started low[1..2]
        +10m
        gang high 3x8gpu prio=10 for=1h
        plan
        stopped low1
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 10m
    order o0 for high:  by 12m after all 1 of low1: a1[0-7] a3[0-7] a4[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 10m
    admit high: a1[0-7] a3[0-7] a4[0-7]
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 runs
    ");
}

#[test]
fn volcano_5984_where_one_suffices_one_is_stopped_and_not_ten() {
    assert_snapshot!(check("
        node a[1..5] gpus=4
        gang low[1..10] 1x2gpu preemptible for=10h
        plan
        started low[1..10]
        +10m
        gang high 1x1gpu prio=10 for=1h
        plan
    "), @"
    admit low1: a1[0-1]
    admit low2: a1[2-3]
    admit low3: a2[0-1]
    admit low4: a2[2-3]
    admit low5: a3[0-1]
    admit low6: a3[2-3]
    admit low7: a4[0-1]
    admit low8: a4[2-3]
    admit low9: a5[0-1]
    admit low10: a5[2-3]
    -- 10m
    order o0 for high:  by 12m after all 1 of low1: a1[0]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    low3 runs
    low4 runs
    low5 runs
    low6 runs
    low7 runs
    low8 runs
    low9 runs
    low10 runs
    ");
}

#[test]
fn volcano_pr_5011_nobody_is_stopped_for_a_preemptor_that_would_not_fit_all_the_same() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang firm 1x8gpu for=10h
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started firm
        started low[1..2]
        +10m
        gang high 3x8gpu prio=10 for=1h
        plan
    "), @"
    admit firm: a1[0-7]
    admit low1: a2[0-7]
    admit low2: a3[0-7]
    -- 10m
    firm runs
    low1 runs
    low2 runs
    high waits #1: r0 fits 0 of 3, provisioning off
    ");
}

#[test]
fn volcano_pr_5011_nobody_is_stopped_for_a_preemptor_over_its_queues_limit() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue small gpu=8
        queue other
        gang mine 1x8gpu queue=small for=10h
        gang low 1x8gpu queue=other preemptible for=10h
        plan
        started mine
        started low
        +10m
        gang high 1x8gpu queue=small prio=10 for=1h
        plan
    "), @"
    admit mine: a1[0-7]
    admit low: a2[0-7]
    -- 10m
    mine runs
    low runs
    high waits #1: queue small holds 8gpu, wants 8gpu, limit 8gpu
    ");
}

#[test]
fn volcano_2884_a_victim_is_stopping_and_then_waits_and_never_runs_in_between() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +10m
        gang high 1x8gpu prio=10 for=1h
        plan
        +1m
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 10m
    order o0 for high:  by 13m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 11m
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 13m
    -- 11m
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn kueue_3779_two_borrowers_do_not_take_back_and_forth_from_each_other() {
    assert_snapshot!(check("
        policy muster
        node a[1..4] gpus=8
        queue red sure=8
        queue blue sure=8
        gang r[1..4] 1x8gpu queue=red preemptible for=2h save=10m restart=1m
        plan
        started r[1..4]
        run 20m
        gang b[1..4] 1x8gpu queue=blue preemptible for=2h save=10m restart=1m
        run 5h
    "), @"
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    admit r3: a3[0-7]
    admit r4: a4[0-7]
    -- 30m
    order o0 for b1:  by 32m after all 1 of r1: a1[0-7]
    stop r1: reclaimed by b1
    admit b1: a1[0-7]
    -- 2h
    r2 ends
    r3 ends
    r4 ends
    admit r1: a2[0-7]
    admit b2: a3[0-7]
    admit b3: a4[0-7]
    -- 2h30m
    b1 ends
    admit b4: a1[0-7]
    -- 3h40m
    r1 ends
    -- 4h
    b2 ends
    b3 ends
    -- 4h30m
    b4 ends
    ");
}

#[test]
fn kueue_7101_a_gang_that_was_reclaimed_does_not_stop_the_one_it_made_way_for() {
    assert_snapshot!(check("
        policy fair
        node a[1..2] gpus=8
        queue red sure=8 weight=5
        queue blue sure=8
        gang b[1..2] 1x8gpu queue=blue preemptible prio=100 for=2h save=10m restart=1m
        plan
        started b[1..2]
        run 20m
        gang r1 1x8gpu queue=red preemptible for=2h save=10m restart=1m
        run 4h
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 1 of b1: a1[0-7]
    stop b1: reclaimed by r1
    admit r1: a1[0-7]
    -- 2h
    b2 ends
    admit b1: a2[0-7]
    -- 2h30m
    r1 ends
    -- 3h40m
    b1 ends
    ");
}

#[test]
fn kueue_14543_priorities_and_guarantees_pull_in_different_ways_and_nothing_loops() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=8
        queue blue
        gang blow 1x8gpu queue=blue preemptible prio=1 for=2h save=10m restart=1m
        gang bhigh 1x8gpu queue=blue preemptible prio=9 for=2h save=10m restart=1m
        plan
        started blow
        started bhigh
        run 20m
        gang r1 1x8gpu queue=red preemptible for=1h save=10m restart=1m
        run 4h
    "), @"
    admit bhigh: a1[0-7]
    admit blow: a2[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 1 of blow: a2[0-7]
    stop blow: reclaimed by r1
    admit r1: a2[0-7]
    -- 1h30m
    r1 ends
    admit blow: a2[0-7]
    -- 2h
    bhigh ends
    -- 3h10m
    blow ends
    ");
}

#[test]
fn kueue_12541_a_gang_that_can_never_be_served_does_not_keep_the_planner_busy() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue red sure=16
        queue blue
        gang b[1..2] 1x8gpu queue=blue preemptible for=2h
        plan
        started b[1..2]
        +20m
        gang r1 3x8gpu queue=red for=1h
        plan
    "), @"
    admit b1: a1[0-7]
    admit b2: a2[0-7]
    -- 20m
    b1 runs
    b2 runs
    r1 is impossible: r0 never 3, at most 2
    ");
}

#[test]
fn kueue_12541_unequal_sizes_under_fair_share_settle() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red sure=16
        queue blue sure=8
        gang b1 3x8gpu queue=blue preemptible for=3h save=10m restart=1m
        plan
        started b1
        run 20m
        gang r[1..2] 1x8gpu queue=red preemptible for=1h save=10m restart=1m
        run 6h
    "), @"
    admit b1: a1[0-7] a2[0-7] a3[0-7]
    -- 30m
    order o0 for r1:  by 32m after all 3 of b1: a1[0-7]
    stop b1: reclaimed by r1
    admit r1: a1[0-7]
    admit r2: a2[0-7]
    -- 1h30m
    r1 ends
    r2 ends
    admit b1: a1[0-7] a2[0-7] a3[0-7]
    -- 4h10m
    b1 ends
    ");
}

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
fn kai_pr_2012_a_gang_that_ends_while_it_is_told_to_stop_has_ended() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=2m
        plan
        started low
        +10m
        gang high 1x8gpu prio=1 for=1h
        plan
        end low
        plan
    "), @"
    admit low: a1[0-7]
    -- 10m
    order o0 for high:  by 14m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 10m
    admit high: a1[0-7]
    ");
}

#[test]
fn koordinator_1799_members_that_hold_seats_and_have_not_started_can_be_preempted() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 2x8gpu preemptible for=10h
        plan
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7] a2[0-7]
    order o0 for high:  by 2m after all 2 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
    admit high: a1[0-7] a2[0-7]
    low waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn volcano_3373_two_gangs_that_each_want_all_nodes_start_one_after_the_other() {
    assert_snapshot!(check("
        node a[1..4] gpus=1
        gang one 4x1gpu for=1h
        gang two 4x1gpu for=1h
        plan
        started one
        +1h
        end one
        plan
    "), @"
    admit one: a1[0] a2[0] a3[0] a4[0]
    two waits #1: r0 fits 0 of 4, provisioning off
    -- 1h
    admit two: a1[0] a2[0] a3[0] a4[0]
    ");
}

#[test]
fn scheduler_plugins_713_nobody_waits_for_the_tenth_seat_with_nine_taken() {
    assert_snapshot!(check("
        node a[1..9] gpus=1
        node z1 gpus=1
        gang firm 1x1gpu for=10h if:hostname=z1
        gang ten 10x1gpu for=1h
        gang small 1x1gpu for=1h
        policy easy
        plan
    "), @"
    admit firm: z1[0]
    admit small: a1[0]
    ten starts by 10h
    ten waits #1: r0 fits 9 of 10, provisioning off
    ");
}

#[test]
fn koordinator_872_gangs_that_interleave_do_not_block_each_other() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang A 2x8gpu for=1h
        gang C 2x8gpu for=1h
        gang B 1x8gpu for=1h
        gang D 1x8gpu for=1h
        policy easy
        run 3h every 30m
    "), @"
    -- 30m
    admit A: a1[0-7] a2[0-7]
    admit B: a3[0-7]
    -- 1h30m
    A ends
    B ends
    admit C: a1[0-7] a2[0-7]
    admit D: a3[0-7]
    -- 2h30m
    C ends
    D ends
    -- 3h
    nothing
    ");
}

#[test]
fn kueue_5243_gpus_are_freed_on_one_node_and_not_scattered_over_several() {
    assert_snapshot!(check("
        node a[1..4] gpus=4
        gang low[1..8] 1x2gpu preemptible for=10h
        plan
        started low[1..8]
        +10m
        gang high 1x4gpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-1]
    admit low2: a1[2-3]
    admit low3: a2[0-1]
    admit low4: a2[2-3]
    admit low5: a3[0-1]
    admit low6: a3[2-3]
    admit low7: a4[0-1]
    admit low8: a4[2-3]
    -- 10m
    order o0 for high:  by 12m after all 1 of low1, all 1 of low2: a1[0-3]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    low3 runs
    low4 runs
    low5 runs
    low6 runs
    low7 runs
    low8 runs
    ");
}

#[test]
fn volcano_1901_a_large_gang_is_not_starved_by_small_ones() {
    assert_snapshot!(check("
        policy easy
        node a[1..2] gpus=8
        gang s[1..2] 1x8gpu for=1h
        plan
        started s[1..2]
        +10m
        gang large 2x8gpu for=1h
        gang small[1..3] 1x8gpu for=1h
        plan
        +50m
        end s1
        plan
        end s2
        plan
    "), @"
    admit s1: a1[0-7]
    admit s2: a2[0-7]
    -- 10m
    large starts by 1h
    s1 runs
    s2 runs
    large waits #1: r0 fits 0 of 2, provisioning off
    small1 waits #2: r0 fits 0 of 1, provisioning off
    small2 waits #3: r0 fits 0 of 1, provisioning off
    small3 waits #4: r0 fits 0 of 1, provisioning off
    -- 1h
    large starts by 1h6m
    s2 runs
    large waits #1: r0 fits 1 of 2, provisioning off
    small1 waits #2: behind large
    small2 waits #3: behind large
    small3 waits #4: behind large
    -- 1h
    admit large: a1[0-7] a2[0-7]
    small1 starts by 2h
    small1 waits #1: r0 fits 0 of 1, provisioning off
    small2 waits #2: r0 fits 0 of 1, provisioning off
    small3 waits #3: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn kueue_8309_a_gang_that_waits_for_one_kind_of_node_does_not_hold_up_another_kind() {
    assert_snapshot!(check("
        policy fifo
        node a1 gpus=8 label:kind=a
        node b1 gpus=8 label:kind=b
        gang run 1x8gpu for=10h if:kind=a
        gang wait 1x8gpu for=1h if:kind=a
        gang other 1x8gpu for=1h if:kind=b
        plan
    "), @"
    admit run: a1[0-7]
    admit other: b1[0-7]
    wait waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn volcano_1387_gangs_do_not_block_each_other_on_a_quota_half_used() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=24
        gang one 2x8gpu queue=team for=1h
        gang two 2x8gpu queue=team for=1h
        plan
        started one
        end one
        plan
    "), @"
    admit one: a1[0-7] a2[0-7]
    two waits #1: queue team holds 16gpu, wants 16gpu, limit 24gpu
    admit two: a1[0-7] a2[0-7]
    ");
}

#[test]
fn volcano_4710_nodes_are_not_bought_for_a_gang_that_its_quota_keeps_out() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=10
        queue team gpu=8
        gang one 1x8gpu queue=team for=1h
        gang two 1x8gpu queue=team for=1h
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: queue team holds 8gpu, wants 8gpu, limit 8gpu
    ");
}

#[test]
fn autoscaler_pr_9806_nodes_are_not_bought_for_what_others_are_told_to_leave() {
    assert_snapshot!(check("
        node a1 gpus=8
        pool p : zone=a price=10
        gang low 1x8gpu preemptible for=10h never grace=5m
        plan
        started low
        +1m
        gang high 1x8gpu prio=5 for=1h
        plan ways
        plan
    "), @"
    admit low: a1[0-7]
    -- 1m
    order o0 for high:  by 8m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Buy in 3m for 15.50: 0 others lose 0s
    * high Preempt in 5m for 8.50: 1 others lose 8m
    -- 1m
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 8m
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

#[test]
fn grove_226_who_waits_is_told_why_and_until_when() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang firm 1x8gpu for=10h
        plan
        started firm
        gang next 1x8gpu prio=9 for=1h
        policy easy
        plan
    "), @"
    admit firm: a1[0-7]
    next starts by 10h
    firm runs
    next waits #1: r0 fits 0 of 1, provisioning off
    ");
}
