//! Elastic gangs grow into what nobody waits for, where it pays.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn it_starts_with_more_members_where_there_is_room() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..4x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn it_never_has_more_than_its_maximum() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn it_grows_when_room_appears() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn it_does_not_grow_before_it_has_started() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        node a2 gpus=8
        plan
        started big
        plan
    "), @"
    admit big: a1[0-7]
    big runs
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn it_does_not_grow_again_before_it_has_settled() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        +1m
        node a3 gpus=8
        plan wake
        +4m
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 11m
    big runs
    wake at 15m
    -- 15m
    resize big from 2 to 3: a1[0-7] a2[0-7] a3[0-7]
    ");
}

#[test]
fn the_policy_says_how_long_that_is() {
    assert_snapshot!(check("
        policy fifo settle=1h
        node a1 gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        resized big
        +5m
        node a3 gpus=8
        plan wake
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 15m
    big runs
    wake at 1h10m
    ");
}

#[test]
fn who_waits_goes_first() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        gang next 1x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    admit next: a2[0-7]
    big runs
    ");
}

#[test]
fn what_a_gang_waits_for_that_goes_first_by_age_is_not_taken_for_growth() {
    assert_snapshot!(check("
        policy fifo
        node a[1..2] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        gang next 3x8gpu prio=-1 for=1h
        node a3 gpus=8
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    big runs
    next waits #1: r0 fits 1 of 3, provisioning off
    ");
}

#[test]
fn a_booked_start_is_not_delayed_by_growth() {
    assert_snapshot!(check("
        policy easy
        node a[1..3] gpus=8
        gang firm 2x8gpu for=1h
        gang big 1..2x8gpu for=10h
        plan
        started firm
        started big
        +10m
        gang wide 2x8gpu prio=-1 for=1h
        plan
        end firm
        plan
    "), @"
    admit firm: a1[0-7] a2[0-7]
    admit big: a3[0-7]
    -- 10m
    wide starts by 1h
    firm runs
    big runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    -- 10m
    admit wide: a1[0-7] a2[0-7]
    big runs
    ");
}

#[test]
fn room_beside_a_booked_start_is_used() {
    assert_snapshot!(check("
        policy easy
        node a[1..4] gpus=8
        gang firm 3x8gpu for=1h
        gang big 1..2x8gpu for=10h
        plan
        started firm
        started big
        +10m
        gang wide 3x8gpu prio=-1 for=1h
        node a5 gpus=8
        plan
    "), @"
    admit firm: a1[0-7] a2[0-7] a3[0-7]
    admit big: a4[0-7]
    -- 10m
    resize big from 1 to 2: a4[0-7] a5[0-7]
    wide starts by 1h
    firm runs
    wide waits #1: r0 fits 1 of 3, provisioning off
    ");
}

#[test]
fn it_stops_at_its_queues_limit() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team gpu=24
        gang big 1..4x8gpu for=10h queue=team
        plan
    "), @"admit big: a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn it_stops_at_the_limit_of_a_queue_above() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue org gpu=16
        queue team parent=org
        gang big 1..4x8gpu for=10h queue=team
        plan
    "), @"admit big: a1[0-7] a2[0-7]");
}

#[test]
fn it_stops_at_its_users_limit() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team each=16
        gang big 1..4x8gpu for=10h queue=team user=ann
        plan
    "), @"admit big: a1[0-7] a2[0-7]");
}

#[test]
fn who_declines_is_not_asked_again_for_a_while() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        plan
        declined big
        plan wake
        +59m
        plan
        +1m
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    -- 10m
    big runs
    wake at 1h10m
    -- 1h9m
    big runs
    -- 1h10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn who_declined_still_gives_up_what_it_has_above_its_minimum() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..3x8gpu for=10h
        plan
        started big
        +10m
        node a3 gpus=8
        plan
        declined big
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7]
    -- 10m
    resize big from 2 to 3: a1[0-7] a2[0-7] a3[0-7]
    -- 10m
    order o0 for next:  by 12m after 1 of big: a2[0-7] a3[0-7]
    resize big from 2 to 1: a1[0-7]
    big runs
    ");
}

#[test]
fn a_gang_that_is_nearly_done_is_left_alone() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=10m
        plan
        started big
        +1h55m
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 1h55m
    big runs
    ");
}

#[test]
fn a_pause_that_costs_more_than_growth_brings_is_not_taken() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=31m
        plan
        started big
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    big runs
    ");
}

#[test]
fn a_pause_that_brings_more_than_twice_what_it_costs_is_taken() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=1h resize=29m
        plan
        started big
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    resize big from 1 to 2: a1[0-7] a2[0-7]
    ");
}

#[test]
fn who_gains_most_for_a_gpu_gets_it() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang poor 1..2x8gpu for=10h efficiency=600
        gang good 1..2x8gpu for=10h efficiency=950
        plan
    "), @"
    admit poor: a1[0-7]
    admit good: a2[0-7] a3[0-7]
    ");
}

#[test]
fn members_that_bring_nothing_are_not_added() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h efficiency=500
        plan
        started big
        +10m
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn members_that_bring_nothing_are_not_there_from_the_start_either() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang big 1..2x8gpu for=10h efficiency=500
        plan
    "), @"admit big: a1[0-7]");
}

#[test]
fn what_was_measured_counts_and_not_what_was_said() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h efficiency=950
        plan
        started big
        +1h
        measured big 500
        node a2 gpus=8
        plan
    "), @"
    admit big: a1[0-7]
    -- 1h
    big runs
    ");
}

/// So one of them is done early, and the other no later.
#[test]
fn members_that_bring_in_proportion_go_to_one_gang_after_the_other() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang one 1..4x8gpu for=10h
        gang two 1..4x8gpu for=10h
        plan
    "), @"
    admit one: a1[0-7] a3[0-7] a4[0-7] a5[0-7]
    admit two: a2[0-7] a6[0-7]
    ");
}

#[test]
fn where_each_further_member_brings_less_equal_gangs_get_equal_shares() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang one 1..4x8gpu for=10h efficiency=800
        gang two 1..4x8gpu for=10h efficiency=800
        plan
    "), @"
    admit one: a1[0-7] a3[0-7] a5[0-7]
    admit two: a2[0-7] a4[0-7] a6[0-7]
    ");
}

#[test]
fn the_one_with_less_left_to_do_grows() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang old 1..2x8gpu for=10h
        plan
        started old
        +10h
        node a2 gpus=8
        gang young 1..2x8gpu for=10h
        plan
        started young
        +10m
        node a3 gpus=8
        plan
    "), @"
    admit old: a1[0-7]
    -- 10h
    admit young: a2[0-7]
    old runs
    -- 10h10m
    resize old from 1 to 2: a1[0-7] a3[0-7]
    young runs
    ");
}

#[test]
fn the_queue_that_has_least_grows_first() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red
        queue blue
        gang r 2..3x8gpu for=10h queue=red
        gang b 1..2x8gpu for=10h queue=blue
        plan
        started r
        started b
        +10m
        node a4 gpus=8
        plan
    "), @"
    admit b: a1[0-7]
    admit r: a2[0-7] a3[0-7]
    -- 10m
    resize b from 1 to 2: a1[0-7] a4[0-7]
    r runs
    ");
}

#[test]
fn weight_counts_there_too() {
    assert_snapshot!(check("
        policy muster
        node a[1..3] gpus=8
        queue red weight=4
        queue blue
        gang r 2..3x8gpu for=10h queue=red
        gang b 1..2x8gpu for=10h queue=blue
        plan
        started r
        started b
        +10m
        node a4 gpus=8
        plan
    "), @"
    admit r: a1[0-7] a2[0-7]
    admit b: a3[0-7]
    -- 10m
    resize r from 2 to 3: a1[0-7] a2[0-7] a4[0-7]
    b runs
    ");
}

#[test]
fn who_must_be_close_together_grows_only_where_it_is() {
    assert_snapshot!(check("
        node a1 gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang firm 1x8gpu for=10h if:rack=r2
        gang big 1..3x8gpu for=10h topology=required:rack if:rack=r1
        plan
        started firm
        started big
        +10m
        node a2 gpus=8 rack=r1
        plan
    "), @"
    admit firm: b1[0-7]
    admit big: a1[0-7]
    -- 10m
    resize big from 1 to 2: a1[0-7] a2[0-7]
    firm runs
    ");
}

#[test]
fn it_grows_only_on_nodes_it_may_run_on() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=ssd
        gang big 1..2x8gpu for=10h if:disk=ssd
        plan
        started big
        +10m
        node b1 gpus=8
        plan
        node b2 gpus=8 label:disk=ssd
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    -- 10m
    resize big from 1 to 2: a1[0-7] b2[0-7]
    ");
}

#[test]
fn roles_grow_in_step() {
    assert_snapshot!(check("
        node a[1..6] gpus=8
        gang big 1..3x8gpu+1..3x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] a3[0-7] a5[0-7] | a2[0-7] a4[0-7] a6[0-7]");
}

#[test]
fn a_rigid_role_stays_as_it_is() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1x8gpu+1..4x8gpu for=10h
        plan
    "), @"admit big: a1[0-7] | a2[0-7] a3[0-7] a4[0-7]");
}

#[test]
fn shares_of_gpus_grow_one_by_one() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang big 1..4x0.5gpu for=10h
        plan
    "), @"admit big: a1[0]*2 a1[1]*2");
}

#[test]
fn members_without_gpus_grow_too() {
    assert_snapshot!(check("
        node a1 cpu=16
        gang big 1..8x4cpu for=10h
        plan
    "), @"admit big: a1*4");
}

#[test]
fn no_nodes_are_bought_for_growth() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang big 1..2x8gpu for=10h
        plan
        ready c0
        plan
        started big
        +10m
        plan
    "), @"
    order o0 for big: 1 x p/gpu8@a by 15m: c0[0-7]
    admit big: c0[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn nodes_that_cost_money_are_not_kept_for_growth() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        pool p warm=1 : zone=a price=10
        plan
        ready c0
        +10m
        plan
    "), @"
    admit big: a1[0-7]
    stock c0 p/gpu8@a
    big runs
    -- 10m
    big runs
    ");
}

#[test]
fn nodes_of_a_pool_that_says_so_are_grown_into() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        pool p warm=1 grow=yes : zone=a price=10
        plan
        ready c0
        +10m
        plan
    "), @"
    admit big: a1[0-7]
    stock c0 p/gpu8@a, c1 p/gpu8@a
    big runs
    -- 10m
    resize big from 1 to 2: a1[0-7] c0[0-7]
    release c1
    ");
}

#[test]
fn it_does_not_grow_onto_a_node_that_will_be_gone() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=10h
        plan
        started big
        +10m
        node a2 gpus=8
        notice a2 1h
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    big runs
    ");
}

#[test]
fn seats_that_an_order_holds_are_not_grown_into() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..3x8gpu for=10h prio=5
        plan
        started big
        node a2 gpus=8
        pool p : zone=a price=10
        gang wide 2x8gpu for=1h
        +10m
        plan
        plan
    "), @"
    admit big: a1[0-7]
    -- 10m
    order o0 for wide: 1 x p/gpu8@a by 25m: a2[0-7] c0[0-7]
    big runs
    -- 10m
    big runs
    wide assembles o0: 0 of 1 by 25m
    ");
}

#[test]
fn who_starts_larger_on_what_an_order_gives_back_starts_after_it() {
    assert_snapshot!(check("
        node a1 gpus=8
        node b1 gpus=16
        gang first 1x16gpu for=1h
        plan
        started first
        pool p : zone=a price=10
        gang wide 2x8gpu for=1h
        +10m
        plan
        end first
        node a2 gpus=8
        gang small 1..3x8gpu for=1h
        plan
    "), @"
    admit first: b1[0-15]
    -- 10m
    order o0 for wide: 1 x p/gpu8@a by 25m: a1[0-7] c0[0-7]
    first runs
    -- 10m
    roll back o0: not needed
    admit wide: b1[0-7] b1[8-15]
    admit small: a2[0-7] a1[0-7]
    ");
}

#[test]
fn who_grows_is_faster_from_then_on() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang big 1..2x8gpu for=4h
        plan
        started big
        +2h
        look big
        node a2 gpus=8
        plan
        resized big
        +1h30s
        look big
    "), @"
    admit big: a1[0-7]
    big has 1 members, 1h done, 3h left, 0 restarts, 0 evictions
    -- 2h
    resize big from 1 to 2: a1[0-7] a2[0-7]
    big has 2 members, 2h done, 2h left, 0 restarts, 0 evictions
    ");
}

#[test]
fn over_a_day_it_does_not_change_back_and_forth() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang big 1..4x8gpu for=20h
        plan
        started big
        run 1h
        gang s[1..3] 1x8gpu for=2h
        run 1h
        gang t[1..2] 1x8gpu for=2h
        run 12h every 30m
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7] a4[0-7]
    -- 1h10m
    order o0 for s1:  by 1h12m after 1 of big: a2[0-7]
    resize big from 4 to 3: a1[0-7] a3[0-7] a4[0-7]
    admit s1: a2[0-7]
    order o1 for s2:  by 1h12m after 1 of big: a3[0-7]
    resize big from 3 to 2: a1[0-7] a4[0-7]
    admit s2: a3[0-7]
    order o2 for s3:  by 1h12m after 1 of big: a4[0-7]
    resize big from 2 to 1: a1[0-7]
    admit s3: a4[0-7]
    -- 3h30m
    s1 ends
    s2 ends
    s3 ends
    admit t1: a2[0-7]
    admit t2: a3[0-7]
    resize big from 1 to 2: a1[0-7] a4[0-7]
    -- 5h30m
    t1 ends
    t2 ends
    resize big from 2 to 4: a1[0-7] a4[0-7] a2[0-7] a3[0-7]
    ");
}

#[test]
fn who_could_get_too_little_leaves_it_to_others() {
    assert_snapshot!(check("
        node a1 gpus=3
        gang soon 2..8x1gpu for=10m resize=10m
        gang long 1..2x1gpu for=10h
        plan
        started soon
        started long
        +1m
        node a2 gpus=1
        plan
    "), @"
    admit soon: a1[0] a1[1]
    admit long: a1[2]
    -- 1m
    resize long from 1 to 2: a1[2] a2[0]
    soon runs
    ");
}
