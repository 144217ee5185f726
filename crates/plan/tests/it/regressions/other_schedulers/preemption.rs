//! Which gangs are stopped for which.

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
fn volcano_pr_5011_no_victims_for_a_preemptor_that_would_not_fit() {
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
fn volcano_pr_5011_no_victims_for_a_preemptor_over_its_queue_limit() {
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
fn volcano_2884_victim_stops_then_waits_and_never_runs_in_between() {
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
fn koordinator_1799_members_that_have_not_started_can_be_preempted() {
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
