//! The candidates that lose least are the victims, and no others.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn younger_of_two_possible_victims_is_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang old 1x8gpu preemptible for=10h
        plan
        started old
        +2h
        gang young 1x8gpu preemptible for=10h
        plan
        started young
        +10m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit old: a1[0-7]
    -- 2h
    admit young: a2[0-7]
    old runs
    -- 2h10m
    order o0 for high:  by 2h12m after all 1 of young: a2[0-7]
    stop young: preempted by high
    old runs
    young is stopping
      high Wait in 7h50m for 626.67: 0 others lose 0s
    * high Preempt in 0s for 1.33: 1 others lose 1h20m
    ");
}

#[test]
fn gang_that_checkpoints_on_signal_is_stopped_before_a_younger_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang saves 1x8gpu preemptible for=10h save=told
        plan
        started saves
        +5h
        gang young 1x8gpu preemptible for=10h
        plan
        started young
        +10m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit saves: a1[0-7]
    -- 5h
    admit young: a2[0-7]
    saves runs
    -- 5h10m
    order o0 for high:  by 5h12m after all 1 of saves: a1[0-7]
    stop saves: preempted by high
    saves is stopping
    young runs
      high Wait in 4h50m for 386.67: 0 others lose 0s
    * high Preempt in 0s for 0.00: 1 others lose 0s
    ");
}

#[test]
fn time_since_the_last_checkpoint_counts() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang often 1x8gpu preemptible for=10h save=20m
        gang seldom 1x8gpu preemptible for=10h save=1h
        plan
        started often
        started seldom
        +59m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit often: a1[0-7]
    admit seldom: a2[0-7]
    -- 59m
    order o0 for high:  by 1h1m after all 1 of often: a1[0-7]
    stop often: preempted by high
    often is stopping
    seldom runs
      high Wait in 9h1m for 721.33: 0 others lose 0s
    * high Preempt in 0s for 2.53: 1 others lose 2h32m
    ");
}

#[test]
fn a_long_restart_counts_as_work_that_is_lost() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang slow 1x8gpu preemptible for=10h save=told restart=30m
        gang quick 1x8gpu preemptible for=10h save=told restart=1m
        plan
        started slow
        started quick
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit slow: a1[0-7]
    admit quick: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of quick: a2[0-7]
    stop quick: preempted by high
    slow runs
    quick is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 0s for 0.13: 1 others lose 8m
    ");
}

#[test]
fn of_two_of_the_same_age_the_smaller_is_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1x8gpu preemptible for=10h
        gang small 1x4gpu preemptible for=10h
        plan
        started big
        started small
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit big: a1[0-7]
    admit small: a2[0-3]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of small: a2[0-7]
    stop small: preempted by high
    big runs
    small is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 0s for 4.00: 1 others lose 4h
    ");
}

#[test]
fn one_gang_is_stopped_and_not_eight_at_equal_loss() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang eight[1..8] 1x1gpu preemptible for=10h
        gang one 1x8gpu preemptible for=10h
        plan
        started eight[1..8]
        started one
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit eight1: a1[0]
    admit eight2: a1[1]
    admit eight3: a1[2]
    admit eight4: a1[3]
    admit eight5: a1[4]
    admit eight6: a1[5]
    admit eight7: a1[6]
    admit eight8: a1[7]
    admit one: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of one: a2[0-7]
    stop one: preempted by high
    eight1 runs
    eight2 runs
    eight3 runs
    eight4 runs
    eight5 runs
    eight6 runs
    eight7 runs
    eight8 runs
    one is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 0s for 8.00: 1 others lose 8h
    ");
}

#[test]
fn four_young_gangs_are_stopped_rather_than_one_that_would_lose_a_day() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang old 1x8gpu preemptible for=40h
        plan
        started old
        +24h
        gang young[1..4] 1x2gpu preemptible for=10h
        plan
        started young[1..4]
        +1m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit old: a1[0-7]
    -- 1d
    admit young1: a2[0-1]
    admit young2: a2[2-3]
    admit young3: a2[4-5]
    admit young4: a2[6-7]
    old runs
    -- 1d1m
    order o0 for high:  by 1d3m after all 1 of young1, all 1 of young2, all 1 of young3, all 1 of young4: a2[0-7]
    stop young1: preempted by high
    stop young2: preempted by high
    stop young3: preempted by high
    stop young4: preempted by high
    old runs
    young1 is stopping
    young2 is stopping
    young3 is stopping
    young4 is stopping
      high Wait in 9h59m for 798.67: 0 others lose 0s
    * high Preempt in 0s for 0.13: 4 others lose 8m
    ");
}

/// Two of the four on a node are enough.
#[test]
fn candidate_that_is_not_in_the_way_is_spared() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low[1..4] 1x2gpu preemptible for=10h
        plan
        started low[1..4]
        +1h
        gang high 1x4gpu prio=1 for=1h
        plan ways
    "), @"
    admit low1: a1[0-1]
    admit low2: a1[2-3]
    admit low3: a1[4-5]
    admit low4: a1[6-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1, all 1 of low2: a1[0-3]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    low3 runs
    low4 runs
      high Wait in 9h for 360.00: 0 others lose 0s
    * high Preempt in 0s for 4.00: 2 others lose 4h
    ");
}

#[test]
fn cheapest_gangs_on_a_node_are_stopped_and_others_spared() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang dear 1x4gpu preemptible for=10h
        plan
        started dear
        +5h
        gang cheap[1..2] 1x2gpu preemptible for=10h
        plan
        started cheap[1..2]
        +1h
        gang high 1x4gpu prio=1 for=1h
        plan ways
    "), @"
    admit dear: a1[0-3]
    -- 5h
    admit cheap1: a1[4-5]
    admit cheap2: a1[6-7]
    dear runs
    -- 6h
    order o0 for high:  by 6h2m after all 1 of cheap1, all 1 of cheap2: a1[4-7]
    stop cheap1: preempted by high
    stop cheap2: preempted by high
    dear runs
    cheap1 is stopping
    cheap2 is stopping
      high Wait in 4h for 160.00: 0 others lose 0s
    * high Preempt in 0s for 4.00: 2 others lose 4h
    ");
}

#[test]
fn a_wide_gang_is_stopped_whole_though_one_of_its_nodes_would_do() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang wide 3x8gpu preemptible for=10h
        plan
        started wide
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        stopped wide
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 3 of wide: a1[0-7]
    stop wide: preempted by high
    wide is stopping
    -- 1h
    admit high: a1[0-7]
    wide waits #1: r0 fits 2 of 3, provisioning off
    ");
}

#[test]
fn waiting_gangs_take_other_nodes_of_a_stopped_gang() {
    assert_snapshot!(check("
        policy easy
        node a[1..3] gpus=8
        gang wide 3x8gpu preemptible for=10h
        plan
        started wide
        +1h
        gang high 1x8gpu prio=1 for=1h
        gang next 2x8gpu for=1h
        plan
        stopped wide
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 3 of wide: a1[0-7]
    stop wide: preempted by high
    next starts by 10h
    wide is stopping
    next waits #1: r0 fits 0 of 2, provisioning off
    -- 1h
    admit high: a1[0-7]
    admit next: a2[0-7] a3[0-7]
    wide starts by 2h1m
    wide waits #1: r0 fits 2 of 3, provisioning off
    ");
}

#[test]
fn for_a_whole_gpu_both_halves_on_one_device_are_stopped() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang half[1..4] 1x0.5gpu preemptible for=10h
        plan
        started half[1..4]
        +1h
        gang high 1x1gpu prio=1 for=1h
        plan
    "), @"
    admit half1: a1[0]
    admit half2: a1[0]
    admit half3: a1[1]
    admit half4: a1[1]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of half1, all 1 of half2: a1[0]
    stop half1: preempted by high
    stop half2: preempted by high
    half1 is stopping
    half2 is stopping
    half3 runs
    half4 runs
    ");
}

#[test]
fn for_a_share_of_a_gpu_one_share_is_stopped() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang half[1..4] 1x0.5gpu preemptible for=10h
        plan
        started half[1..4]
        +1h
        gang high 1x0.3gpu prio=1 for=1h
        plan
    "), @"
    admit half1: a1[0]
    admit half2: a1[0]
    admit half3: a1[1]
    admit half4: a1[1]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of half1: a1[0]
    stop half1: preempted by high
    half1 is stopping
    half2 runs
    half3 runs
    half4 runs
    ");
}

#[test]
fn a_share_stops_no_gang_that_holds_whole_gpus_where_a_share_would_do() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang whole 1x1gpu preemptible for=10h
        gang half[1..2] 1x0.5gpu preemptible for=10h
        plan
        started whole
        started half[1..2]
        +1h
        gang high 1x0.5gpu prio=1 for=1h
        plan
    "), @"
    admit whole: a1[0]
    admit half1: a1[1]
    admit half2: a1[1]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of half1: a1[1]
    stop half1: preempted by high
    whole runs
    half1 is stopping
    half2 runs
    ");
}

#[test]
fn lower_priority_is_stopped_at_equal_loss() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang mid 1x8gpu preemptible prio=5 for=10h
        gang low 1x8gpu preemptible for=10h
        plan
        started mid
        started low
        +1h
        gang high 1x8gpu prio=9 for=1h
        plan
    "), @"
    admit mid: a1[0-7]
    admit low: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a2[0-7]
    stop low: preempted by high
    mid runs
    low is stopping
    ");
}
