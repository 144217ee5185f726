//! Gangs that block each other, starve, or have nodes bought for nothing.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn volcano_3373_two_gangs_that_want_all_nodes_start_in_turn() {
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
fn scheduler_plugins_713_no_gang_waits_with_nine_of_ten_seats() {
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
fn kueue_8309_waiting_for_one_kind_of_node_holds_up_no_other_kind() {
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
fn autoscaler_pr_9806_no_nodes_bought_for_seats_being_evicted() {
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
fn grove_226_waiting_gang_is_told_why_and_until_when() {
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
