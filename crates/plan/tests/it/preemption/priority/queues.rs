//! How far priority reaches: shares, guarantees, limits, and the eviction budget of a queue.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn higher_priority_counts_across_queues_without_shares() {
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
fn higher_priority_does_not_count_across_queues_with_shares() {
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
        queue blue firm=always
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
fn pending_eviction_counts_before_the_victim_is_told() {
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
fn no_gang_is_stopped_if_the_eviction_budget_does_not_suffice() {
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
fn gang_at_its_queue_limit_does_not_wait_for_nodes() {
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
fn limit_of_one_user_does_not_keep_others_from_preempting() {
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
