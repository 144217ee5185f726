//! Gangs of lower priority make way, whole, for one that then starts.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_higher_priority_takes_the_seats_of_a_lower_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 2x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
        stopped low
        plan
        started high
        +1h
        end high
        plan
    "), @"
    admit low: a1[0-7] a2[0-7]
    -- 10m
    order o0 for high:  by 12m after all 2 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h50m for 1573.33: 0 others lose 0s
    * high Preempt in 0s for 2.67: 1 others lose 2h40m
    -- 10m
    admit high: a1[0-7] a2[0-7]
    low waits #1: r0 fits 0 of 2, provisioning off
    -- 1h10m
    admit low: a1[0-7] a2[0-7]
    ");
}

#[test]
fn one_member_of_each_of_ten_gangs_is_never_taken() {
    assert_snapshot!(check("
        node a[1..10] gpus=2
        gang low[1..10] 2x1gpu preemptible for=10h
        plan
        started low1
        started low2
        started low3
        started low4
        started low5
        started low6
        started low7
        started low8
        started low9
        started low10
        +10m
        gang high 2x2gpu prio=10 for=1h
        plan ways
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
    order o0 for high:  by 12m after all 2 of low1, all 2 of low2: a1[0-1] a2[0-1]
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
    low9 runs
    low10 runs
      high Wait in 9h50m for 393.33: 0 others lose 0s
    * high Preempt in 0s for 0.67: 2 others lose 40m
    ");
}

#[test]
fn free_nodes_and_nodes_of_victims_are_combined() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 10m
    order o0 for high:  by 12m after all 1 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h50m for 1573.33: 0 others lose 0s
    * high Preempt in 0s for 1.33: 1 others lose 1h20m
    ");
}

#[test]
fn what_can_be_bought_is_bought_and_others_make_way_for_the_rest_when_it_is_there() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p nodes=1 : zone=a price=10
        gang firm 1x8gpu for=100h
        gang low 1x8gpu preemptible for=10h
        plan
        started firm
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
        plan
        ready c0
        plan
        stopped low
        plan
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-7]
    -- 10m
    order o0 for high: 1 x p/gpu8@a by 27m after all 1 of low: a2[0-7] c0[0-7]
    firm runs
    low runs
    -- 10m
    firm runs
    low runs
    high assembles o0: 0 of 1, 1 leaving by 27m
    -- 10m
    stop low: preempted by high
    firm runs
    low is stopping
    -- 10m
    admit high: a2[0-7] c0[0-7]
    firm runs
    low waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn nobody_is_stopped_for_one_who_would_not_fit_all_the_same() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h
        gang low 1x8gpu preemptible for=10h
        plan
        started firm
        started low
        +10m
        gang high 2x8gpu prio=10 for=1h
        plan ways
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-7]
    -- 10m
    firm runs
    low runs
    high waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn equal_priorities_never_stop_each_other() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang first 1x8gpu preemptible for=10h prio=5
        plan
        started first
        +1h
        gang second 1x8gpu prio=5 for=1h
        plan ways
    "), @"
    admit first: a1[0-7]
    -- 1h
    first runs
    second waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_lower_priority_stops_nobody() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang first 1x8gpu preemptible for=10h prio=5
        plan
        started first
        +1h
        gang second 1x8gpu prio=4 for=1h
        plan ways
    "), @"
    admit first: a1[0-7]
    -- 1h
    first runs
    second waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn who_is_not_preemptible_is_not_stopped_by_anybody() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang firm 1x8gpu for=10h
        plan
        started firm
        +1h
        gang high 1x8gpu prio=1000 for=1h
        plan ways
    "), @"
    admit firm: a1[0-7]
    -- 1h
    firm runs
    high waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn within_its_minimum_runtime_a_gang_is_left_alone_and_after_it_is_not() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h minrun=30m
        plan
        started low
        +29m
        gang high 1x8gpu prio=1 for=1h
        plan wake
        +1m
        plan
    "), @"
    admit low: a1[0-7]
    -- 29m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    wake at 30m
    -- 30m
    order o0 for high:  by 32m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn a_gang_that_has_not_started_yet_can_be_stopped() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        gang high 1x8gpu prio=1 for=1h
        plan ways
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    order o0 for high:  by 2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 10h for 800.00: 0 others lose 0s
    * high Preempt in 0s for 0.00: 1 others lose 0s
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn minimum_runtime_does_not_protect_who_has_not_started_yet() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h minrun=1h
        plan
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low: a1[0-7]
    order o0 for high:  by 2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn of_two_that_would_do_the_younger_is_stopped() {
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
fn who_saves_its_work_when_told_is_stopped_before_one_that_began_later() {
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
fn what_counts_is_the_time_since_the_last_checkpoint() {
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
fn where_the_loss_is_the_same_one_gang_is_stopped_and_not_eight() {
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
fn who_turns_out_not_to_be_in_the_way_stays() {
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
fn the_cheapest_of_those_on_a_node_leave_it_and_the_dear_ones_stay() {
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
fn those_who_wait_take_what_a_stopped_gang_leaves_besides() {
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
fn with_grace_the_order_waits_as_long_as_that_and_a_little_more() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=5m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
        +4m
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 5m for 14.67: 1 others lose 8h
    -- 1h4m
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    -- 1h4m
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_slowest_to_leave_decides_when_it_starts() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang slow 1x8gpu preemptible for=10h grace=5m
        gang quick 1x8gpu preemptible for=10h grace=10s
        plan
        started slow
        started quick
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan ways
        +10s
        stopped quick
        plan
        +4m
        stopped slow
        plan
    "), @"
    admit slow: a1[0-7]
    admit quick: a2[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 1 of slow, all 1 of quick: a1[0-7] a2[0-7]
    stop slow: preempted by high
    stop quick: preempted by high
    slow is stopping
    quick is stopping
      high Wait in 9h for 1440.00: 0 others lose 0s
    * high Preempt in 5m for 29.33: 2 others lose 16h
    -- 1h10s
    slow is stopping
    quick waits #1: r0 fits 0 of 1, provisioning off
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    -- 1h4m10s
    admit high: a1[0-7] a2[0-7]
    slow waits #1: r0 fits 0 of 1, provisioning off
    quick waits #2: r0 fits 0 of 1, provisioning off, behind slow
    ");
}

#[test]
fn nobody_slips_in_while_others_leave() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=1m
        plan
        started low[1..2]
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped low1
        gang sneak 1x8gpu prio=99 for=1m
        plan
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low1, all 1 of low2: a1[0-7] a2[0-7]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    -- 1h
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind sneak
    low2 is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h3m
    sneak waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7] a2[0-7]
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind sneak
    low2 waits #3: r0 fits 0 of 1, provisioning off, behind sneak
    sneak waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn one_that_ends_by_itself_while_it_is_leaving_has_left() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        end low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    admit high: a1[0-7]
    ");
}

#[test]
fn when_the_preemptor_is_cancelled_its_victims_start_again() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        cancel high
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    roll back o0: cancelled
    low is stopping
    -- 1h
    admit low: a1[0-7]
    ");
}

#[test]
fn when_a_node_is_lost_meanwhile_the_order_is_rolled_back_and_another_way_is_found() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=1m
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        lost a1
        plan
        plan
        stopped low1
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 1h
    roll back o0: a1 lost
    low1 is stopping
    low2 runs
    -- 1h
    order o1 for high:  by 1h3m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    -- 1h
    admit high: a2[0-7]
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 waits #2: r0 fits 0 of 1, provisioning off, behind low1
    ");
}

#[test]
fn one_that_does_not_leave_in_time_is_waited_for_no_longer_and_starts_when_it_has_left() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        +3m
        plan
        plan
        +10m
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h3m
    roll back o0: too late
    low is stopping
    -- 1h3m
    low is stopping
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h13m
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn two_that_come_at_once_take_the_seats_of_different_gangs() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang low[1..3] 1x8gpu preemptible for=10h
        plan
        started low[1..3]
        +1h
        gang high[1..2] 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    admit low3: a3[0-7]
    -- 1h
    order o0 for high1:  by 1h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high1
    order o1 for high2:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high2
    low1 is stopping
    low2 is stopping
    low3 runs
    ");
}

#[test]
fn who_makes_way_for_one_is_not_asked_by_another() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=2m
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        gang higher 1x8gpu prio=2 for=1h
        plan
        stopped low1
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h4m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 1h
    order o1 for higher:  by 1h4m after all 1 of low2: a2[0-7]
    stop low2: preempted by higher
    low1 is stopping
    low2 is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h4m
    -- 1h
    admit high: a1[0-7]
    admit higher: a2[0-7]
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 waits #2: r0 fits 0 of 1, provisioning off, behind low1
    ");
}

#[test]
fn what_was_stopped_goes_before_younger_gangs_of_its_priority() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=2h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        gang young 1x8gpu for=1h
        plan
        stopped low
        plan
        started high
        +1h
        end high
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    young waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    young waits #2: r0 fits 0 of 1, provisioning off, behind low
    -- 2h
    admit low: a1[0-7]
    young waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn what_it_saved_is_kept_and_what_it_did_not_is_lost() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang saves 1x8gpu preemptible for=10h save=25m restart=2m
        gang forgets 1x8gpu preemptible for=10h
        plan
        started saves
        started forgets
        +1h
        look saves
        look forgets
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped saves
        stopped forgets
        look saves
        look forgets
    "), @"
    admit saves: a1[0-7]
    admit forgets: a2[0-7]
    saves has 1 members, 1h done, 9h left, 0 restarts, 0 evictions
    forgets has 1 members, 1h done, 9h left, 0 restarts, 0 evictions
    -- 1h
    order o0 for high:  by 1h2m after all 1 of saves, all 1 of forgets: a1[0-7] a2[0-7]
    stop saves: preempted by high
    stop forgets: preempted by high
    saves is stopping
    forgets is stopping
    saves has 0 members, 50m done, 9h10m left, 1 restarts, 1 evictions
    forgets has 0 members, 0s done, 10h left, 1 restarts, 1 evictions
    ");
}

#[test]
fn what_it_does_in_its_grace_is_saved_too_if_it_saves_when_told() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang saves 1x8gpu preemptible for=10h save=told grace=2m
        plan
        started saves
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        +2m
        stopped saves
        look saves
    "), @"
    admit saves: a1[0-7]
    -- 1h
    order o0 for high:  by 1h4m after all 1 of saves: a1[0-7]
    stop saves: preempted by high
    saves is stopping
    saves has 0 members, 1h2m done, 8h58m left, 1 restarts, 1 evictions
    ");
}

#[test]
fn across_queues_a_higher_priority_counts_where_queues_have_no_shares() {
    assert_snapshot!(check("
        policy fifo
        node a1 gpus=8
        queue red
        queue blue
        gang low 1x8gpu preemptible for=10h queue=red
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h queue=blue
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn across_queues_a_higher_priority_does_not_count_where_queues_have_shares() {
    assert_snapshot!(check("
        policy fair
        node a1 gpus=8
        queue red
        queue blue
        gang low 1x8gpu preemptible for=10h queue=red
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h queue=blue
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    high starts by 10h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn within_a_queue_a_higher_priority_counts_where_queues_have_shares() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue red
        gang low 1x8gpu preemptible for=10h queue=red
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h queue=red
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    ");
}

#[test]
fn a_higher_priority_does_not_reach_into_another_queues_guarantee() {
    assert_snapshot!(check("
        policy fifo
        node a1 gpus=8
        queue red sure=8
        queue blue
        gang low 1x8gpu preemptible for=10h queue=red
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h queue=blue
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn no_more_gangs_of_a_queue_are_stopped_in_an_hour_than_it_allows() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue kind evictions=1
        gang low[1..2] 1x8gpu preemptible for=10h queue=kind
        plan
        started low[1..2]
        +1h
        gang high[1..2] 1x8gpu prio=1 for=1h queue=kind
        plan
        stopped low1
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high1:  by 1h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high1
    low1 is stopping
    low2 runs
    high2 waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high1: a1[0-7]
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind high2
    low2 runs
    high2 waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn who_will_be_stopped_counts_before_it_is_told() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        queue kind evictions=1
        gang low[1..2] 1x8gpu preemptible for=10h queue=kind
        gang other 1x8gpu for=10h queue=kind
        plan
        started low[1..2] other
        +1h
        pool p nodes=1 : zone=a price=10
        gang high 2x8gpu prio=1 for=1h queue=kind
        plan
        gang next 1x8gpu prio=1 for=1h queue=kind
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    admit other: a3[0-7]
    -- 1h
    order o0 for high: 1 x p/gpu8@a by 1h17m after all 1 of low1: a1[0-7] c0[0-7]
    low1 runs
    low2 runs
    other runs
    -- 1h
    low1 runs
    low2 runs
    other runs
    high assembles o0: 0 of 1, 1 leaving by 1h17m
    next waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn what_a_queue_allows_is_not_enough_for_half_of_a_gang() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue kind evictions=1
        gang low[1..2] 1x8gpu preemptible for=10h queue=kind
        plan
        started low[1..2]
        +1h
        gang high 2x8gpu prio=1 for=1h queue=kind
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    low1 runs
    low2 runs
    high waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn after_an_hour_the_next_may_be_stopped() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue kind evictions=1
        gang low[1..2] 1x8gpu preemptible for=10h queue=kind
        plan
        started low[1..2]
        +1h
        gang high[1..2] 1x8gpu prio=1 for=10h queue=kind
        plan
        stopped low1
        plan
        +59m
        plan wake
        +1m
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high1:  by 1h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high1
    low1 is stopping
    low2 runs
    high2 waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high1: a1[0-7]
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind high2
    low2 runs
    high2 waits #1: r0 fits 0 of 1, provisioning off
    -- 1h59m
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind high2
    low2 runs
    high1 runs
    high2 waits #1: r0 fits 0 of 1, provisioning off
    wake at 2h
    -- 2h
    order o1 for high2:  by 2h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high2
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 is stopping
    high1 runs
    ");
}

#[test]
fn a_queue_that_allows_no_evictions_has_none() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue kind evictions=0
        gang low 1x8gpu preemptible for=10h queue=kind
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h queue=kind
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
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
fn every_role_of_the_preemptor_must_fit() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=10
        gang low[1..2] 1x8gpu/2cpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        gang high 1x8cpu+2x8gpu/2cpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1, all 1 of low2: a1 | a1[0-7] a2[0-7]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    ");
}

#[test]
fn if_one_role_does_not_fit_nobody_is_stopped_for_the_other() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node b1 cpu=200
        gang firm 1x200cpu for=20h
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started firm
        started low[1..2]
        +1h
        gang high 1x200cpu+2x8gpu prio=1 for=1h
        plan
    "), @"
    admit firm: b1
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    firm runs
    low1 runs
    low2 runs
    high waits #1: r1 fits 0 of 2, provisioning off
    ");
}

#[test]
fn a_victim_with_several_roles_is_stopped_in_all_of_them() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=100
        gang low 1x50cpu+1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped low
        plan
    "), @"
    admit low: a1 | a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 2 of low: a1[0-7] a2[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    admit high: a1[0-7] a2[0-7]
    low waits #1: r1 fits 0 of 1, provisioning off
    ");
}

#[test]
fn who_must_be_close_together_has_all_of_its_victims_in_one_rack() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang old[1..2] 1x8gpu preemptible for=20h
        plan
        started old[1..2]
        +10h
        gang mix[1..2] 1x8gpu preemptible for=10h
        plan
        started mix[1..2]
        +1h
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan
    "), @"
    admit old1: a1[0-7]
    admit old2: a2[0-7]
    -- 10h
    admit mix1: b1[0-7]
    admit mix2: b2[0-7]
    old1 runs
    old2 runs
    -- 11h
    order o0 for high:  by 11h2m after all 1 of mix1, all 1 of mix2: b1[0-7] b2[0-7]
    stop mix1: preempted by high
    stop mix2: preempted by high
    old1 runs
    old2 runs
    mix1 is stopping
    mix2 is stopping
    ");
}

#[test]
fn a_rack_with_one_cheap_and_one_dear_victim_is_not_taken_where_another_costs_less() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang old 1x8gpu preemptible for=30h if:rack=r1
        plan
        started old
        +20h
        gang mid[1..2] 1x8gpu preemptible for=10h if:rack=r2
        plan
        started mid[1..2]
        +1h
        gang young 1x8gpu preemptible for=10h if:rack=r1
        plan
        started young
        +1m
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan ways
    "), @"
    admit old: a1[0-7]
    -- 20h
    admit mid1: b1[0-7]
    admit mid2: b2[0-7]
    old runs
    -- 21h
    admit young: a2[0-7]
    old runs
    mid1 runs
    mid2 runs
    -- 21h1m
    order o0 for high:  by 21h3m after all 1 of mid1, all 1 of mid2: b1[0-7] b2[0-7]
    stop mid1: preempted by high
    stop mid2: preempted by high
    old runs
    mid1 is stopping
    mid2 is stopping
    young runs
      high Wait in 8h59m for 1437.33: 0 others lose 0s
    * high Preempt in 0s for 16.27: 2 others lose 16h16m
    ");
}

#[test]
fn a_free_node_in_one_rack_and_a_victim_in_the_other_are_not_combined_for_who_must_be_close() {
    assert_snapshot!(check("
        node a1 gpus=8 rack=r1
        node b1 gpus=8 rack=r2
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high is impossible: r0 never 2, at most 1
    ");
}

#[test]
fn nobody_is_stopped_on_nodes_that_would_not_do() {
    assert_snapshot!(check("
        node a1 gpus=8
        node b1 gpus=8 label:disk=ssd
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h if:disk=ssd
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: b1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: b1[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    ");
}

#[test]
fn nobody_is_stopped_on_a_node_that_will_be_gone() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        notice a1 30m
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    ");
}

#[test]
fn a_gang_that_was_cancelled_is_not_stopped_once_more_for_another() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        cancel low
        gang high 1x8gpu prio=1 for=1h
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    stop low: cancelled
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7]
    ");
}

#[test]
fn under_its_queues_limit_a_gang_takes_the_place_of_one_of_lower_priority() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=16
        gang low[1..2] 1x8gpu preemptible for=10h queue=team
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h queue=team
        plan
        stopped low1
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 1h
    admit high: a1[0-7]
    low1 waits #1: queue team holds 16gpu, wants 8gpu, limit 16gpu
    low2 runs
    ");
}

#[test]
fn under_its_users_limit_a_gang_takes_the_place_of_one_of_the_same_user() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team each=8
        gang ann 1x8gpu preemptible for=10h queue=team user=ann
        gang bob 1x8gpu preemptible for=10h queue=team user=bob
        plan
        started ann
        started bob
        +1h
        gang high 1x8gpu prio=1 for=1h queue=team user=bob
        plan
    "), @"
    admit ann: a1[0-7]
    admit bob: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of bob: a2[0-7]
    stop bob: preempted by high
    ann runs
    bob is stopping
    ");
}

#[test]
fn gangs_without_gpus_make_way_for_each_other_too() {
    assert_snapshot!(check("
        node a1 cpu=16
        gang low[1..4] 1x4cpu preemptible for=10h
        plan
        started low[1..4]
        +1h
        gang high 2x4cpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1
    admit low2: a1
    admit low3: a1
    admit low4: a1
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low1, all 1 of low2: a1*2
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    low3 runs
    low4 runs
    ");
}

#[test]
fn who_is_nearly_done_is_waited_for() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +9h59m
        gang high 1x8gpu prio=1 for=1h
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 9h59m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 1m for 1.33: 0 others lose 0s
      high Preempt in 0s for 79.87: 1 others lose 3d7h52m
    ");
}

#[test]
fn when_it_does_not_end_as_it_said_its_wait_is_paid_for_in_the_end() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=2h
        plan
        started low
        +1h50m
        gang high 1x8gpu prio=1 for=1h
        plan ways
        +11m
        plan ways
    "), @"
    admit low: a1[0-7]
    -- 1h50m
    low runs
    high waits #1: r0 fits 0 of 1, provisioning off
    * high Wait in 10m for 13.33: 0 others lose 0s
      high Preempt in 0s for 14.67: 1 others lose 14h40m
    -- 2h1m
    order o0 for high:  by 2h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 12m6s for 30.80: 0 others lose 0s
    * high Preempt in 0s for 16.13: 1 others lose 16h8m
    ");
}

#[test]
fn a_gang_is_looked_at_for_another_only_as_often_in_a_cycle_as_the_policy_says() {
    assert_snapshot!(check("
        policy fifo-overtake searches=1
        node a[1..2] gpus=8
        gang firm 1x8gpu for=10h
        gang low 1x4gpu preemptible for=10h
        plan
        started firm
        started low
        +1h
        gang wide 2x8gpu prio=2 for=1h
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit firm: a1[0-7]
    admit low: a2[0-3]
    -- 1h
    firm runs
    low runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    high waits #2: r0 fits 0 of 1, provisioning off, search spent
    ");
}

#[test]
fn ten_rounds_of_high_and_low_do_not_stop_anybody_twice_in_vain() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=6h save=10m restart=1m
        plan
        started low[1..2]
        run 1h
        gang high 1x8gpu prio=1 for=1h
        run 8h
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h10m
    order o0 for high:  by 1h12m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    admit high: a1[0-7]
    -- 2h10m
    high ends
    admit low1: a1[0-7]
    -- 6h
    low2 ends
    -- 7h10m
    low1 ends
    ");
}

#[test]
fn who_may_run_on_one_node_only_has_its_victims_there() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang low[1..3] 1x8gpu preemptible for=10h
        plan
        started low[1..3]
        +1h
        gang high 1x8gpu prio=1 for=1h if:hostname=a2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    admit low3: a3[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    low3 runs
    ");
}

/// The wide one would free three nodes, but only one of them has the disk.
#[test]
fn nodes_that_would_not_do_count_for_nothing_when_victims_are_compared() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node b[1..3] gpus=8 label:disk=ssd
        gang s[1..2] 1x8gpu preemptible for=10h if:hostname=b2,b3
        plan
        started s[1..2]
        +10m
        gang wide 3x8gpu preemptible for=10h if:hostname=a1,a2,b1
        plan
        started wide
        +10m
        gang high 2x8gpu prio=1 for=1h if:disk=ssd
        plan ways
    "), @"
    admit s1: b2[0-7]
    admit s2: b3[0-7]
    -- 10m
    admit wide: a1[0-7] a2[0-7] b1[0-7]
    s1 runs
    s2 runs
    -- 20m
    order o0 for high:  by 22m after all 1 of s1, all 1 of s2: b2[0-7] b3[0-7]
    stop s1: preempted by high
    stop s2: preempted by high
    s1 is stopping
    s2 is stopping
    wide runs
      high Wait in 9h40m for 1546.67: 0 others lose 0s
    * high Preempt in 0s for 5.33: 2 others lose 5h20m
    ");
}

#[test]
fn where_the_loss_is_the_same_the_lower_priority_is_stopped() {
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

#[test]
fn under_its_queues_limit_a_gang_does_not_wait_for_nodes_that_would_not_help() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        pool p : zone=a price=1
        queue team gpu=16
        gang low[1..2] 1x8gpu preemptible for=100h queue=team
        plan
        started low[1..2]
        +50h
        gang high 1x8gpu prio=1 for=1h queue=team
        plan ways
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 2d2h
    order o0 for high:  by 2d2h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
      high Wait in 2d2h for 500.00: 0 others lose 0s
    * high Preempt in 0s for 50.00: 1 others lose 16d16h
    ");
}

#[test]
fn who_has_more_than_it_needs_gives_that_up_beside_others_that_are_stopped() {
    assert_snapshot!(check("
        node a[1..5] gpus=8
        gang wide 1..3x8gpu preemptible for=10h
        plan
        started wide
        gang rigid 2x8gpu preemptible for=10h
        plan
        started rigid
        +1h
        gang high 4x8gpu prio=1 for=1h
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7] a3[0-7]
    admit rigid: a4[0-7] a5[0-7]
    wide runs
    -- 1h
    order o0 for high:  by 1h2m after 2 of wide, all 2 of rigid: a2[0-7] a3[0-7] a4[0-7] a5[0-7]
    resize wide from 3 to 1: a1[0-7]
    stop rigid: preempted by high
    wide runs
    rigid is stopping
    ");
}

#[test]
fn one_users_limit_does_not_keep_others_from_having_somebody_make_way() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue team each=8
        gang ann 1x8gpu for=10h prio=5 queue=team user=ann
        gang bob 1x8gpu preemptible for=10h queue=team user=bob
        plan
        started ann
        started bob
        +1h
        gang more 1x8gpu prio=1 for=1h queue=team user=ann
        gang eve 1x8gpu prio=1 for=1h queue=team user=eve
        plan
    "), @"
    admit ann: a1[0-7]
    admit bob: a2[0-7]
    -- 1h
    order o0 for eve:  by 1h2m after all 1 of bob: a2[0-7]
    stop bob: preempted by eve
    ann runs
    bob is stopping
    more waits #1: user in team holds 8gpu, wants 8gpu, limit 8gpu
    ");
}
