//! Bugs that were fixed, one case each.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gpus_that_vanish_under_members_are_not_free_and_come_back() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu
        plan
        node a1 gpus=4
        gang next 1x4gpu
        plan
        end train
        plan
        node a1 gpus=8
        gang last 1x4gpu
        plan
    "), @"
    admit train: a1[0-7]
    train runs
    next waits #1: r0 fits 0 of 1, provisioning off
    admit next: a1[0-3]
    admit last: a1[4-7]
    next runs
    ");
}

#[test]
fn cores_that_vanish_under_members_are_not_free_and_come_back() {
    assert_snapshot!(check("
        node a1 cpu=100
        gang train 1x50cpu
        plan
        node a1 cpu=40
        gang next 1x20cpu
        plan
        node a1 cpu=80
        plan
        end train
        gang last 1x60cpu
        plan
    "), @"
    admit train: a1
    train runs
    next waits #1: r0 fits 0 of 1, provisioning off
    admit next: a1
    train runs
    admit last: a1
    next runs
    ");
}

#[test]
fn a_pool_rewritten_with_larger_nodes_counts_the_claims_it_has_by_them() {
    assert_snapshot!(check("
        pool p gpus=16 : zone=a price=10 gpus=4 type=t
        gang train 1x4gpu
        plan
        pool p gpus=16 : zone=a price=10 gpus=8 type=t
        gang next 1x8gpu
        gang last 1x1gpu
        plan
        fail c0 stock-out
        plan
        forgotten c0
        +3m
        plan
    "), @"
    order o0 for train: 1 x p/t@a by 15m: c0[0-3]
    order o1 for next: 1 x p/t@a by 15m: c1[0-7]
    train assembles o0: 0 of 1 by 15m
    last waits #1: r0 fits 0 of 1, pools full (room 0)
    roll back o0: c0 StockOut
    next assembles o1: 0 of 1 by 15m
    last waits #1: not considered
    -- 3m
    order o2 for train: 1 x p/t@a by 18m: c2[0-3]
    next assembles o1: 0 of 1 by 15m
    last waits #1: r0 fits 0 of 1, offerings avoided until 3m20s
    ");
}

#[test]
fn a_pool_rewritten_at_another_price_counts_the_claims_it_has_by_it() {
    assert_snapshot!(check("
        pool p budget=25 : zone=a price=20
        gang train 1x8gpu
        plan
        pool p budget=25 : zone=a price=10
        gang next 1x8gpu
        plan
        pool p budget=25 : zone=a price=5
        gang last 3x8gpu
        plan
        fail c0 stock-out
        plan
        forgotten c0
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for next: 1 x p/gpu8@a by 15m: c1[0-7]
    train assembles o0: 0 of 1 by 15m
    order o2 for last: 3 x p/gpu8@a by 15m: c2[0-7] c3[0-7] c4[0-7]
    train assembles o0: 0 of 1 by 15m
    next assembles o1: 0 of 1 by 15m
    roll back o0: c0 StockOut
    next assembles o1: 0 of 1 by 15m
    last assembles o2: 0 of 3 by 15m
    ");
}

#[test]
fn node_of_a_failed_claim_is_not_used_and_released() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        gang small 1x8gpu never
        plan
        ready c0
        fail c0 boot-failed
        plan
        ready c0
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    roll back o0: c0 BootFailed
    small waits #1: not considered
    release c0
    release c1
    train waits #1: r0 fits 0 of 2, offerings avoided until 3m
    small waits #2: r0 fits 0 of 1, provisioning off, behind train
    ");
}

#[test]
fn node_seen_only_after_its_claim_failed_is_not_used() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu timeout=30m
        gang small 1x8gpu never
        plan
        fail c0 boot-failed
        ready c0
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 30m: c0[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    top up o0: c1 p/gpu8@a for c0
    release c0
    small waits #1: not considered
    train assembles o0: 0 of 1 by 30m
    small waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_node_that_flaps_while_others_are_awaited_keeps_its_seats() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c0
        plan
        ready c0 ready=no
        plan
        ready c1
        plan
        ready c0
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    train assembles o0: 1 of 2 by 15m
    train assembles o0: 0 of 2 by 15m
    train assembles o0: 1 of 2 by 15m
    admit train: c0[0-7] c1[0-7]
    ");
}

#[test]
fn a_node_that_flaps_under_seats_without_gpus_takes_them_once() {
    assert_snapshot!(check("
        pool p : zone=a type=m gpus=0 price=1 cpu=10
        gang prep 3x3cpu
        gang more 2x9cpu
        plan
        ready c0
        ready c0 ready=no
        ready c0
        ready c1
        plan
        ready c2
        plan
    "), @"
    order o0 for prep: 1 x p/m@a by 15m: c0*3
    order o1 for more: 2 x p/m@a by 15m: c1 c2
    admit prep: c0*3
    more assembles o1: 1 of 2 by 15m
    admit more: c1 c2
    prep runs
    ");
}

#[test]
fn a_node_that_stays_away_is_given_up_at_the_deadline() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c[0..1] ready=no
        ready c0
        ready c0 ready=no
        +15m
        plan
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    -- 15m
    roll back o0: too late
    -- 15m
    release c0
    release c1
    train waits #1: r0 fits 0 of 2, offerings avoided until 18m
    ");
}

#[test]
fn a_queue_over_its_gpu_limit_still_takes_gangs_that_want_none() {
    assert_snapshot!(check("
        queue team gpu=16
        node a[1..2] gpus=8
        gang train 2x8gpu queue=team
        plan
        queue team gpu=8
        gang prep 1x1cpu queue=team
        gang next 1x1gpu queue=team
        plan
    "), @"
    admit train: a1[0-7] a2[0-7]
    admit prep: a1
    train runs
    next waits #1: queue team holds 16gpu, wants 1gpu, limit 8gpu
    ");
}

#[test]
fn a_pool_node_not_ready_under_a_running_gang_is_kept() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        ready c0 ready=no
        plan
        end train
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    train runs
    release c0
    ");
}

#[test]
fn a_failed_claim_is_kept_while_a_gang_runs_on_its_node() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        fail c0 boot-failed
        plan
        end train
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    train runs
    release c0
    ");
}

#[test]
fn a_node_whose_claim_is_known_late_is_the_orders_node() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        node c0 gpus=8 zone=a
        ready c0
        plan
        end train
        +10m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    -- 10m
    release c0
    ");
}

#[test]
fn a_node_whose_claim_is_known_late_can_be_lost() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        plan
        node c0 gpus=8 zone=a
        ready c0
        lost c0
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 Vanished
    ");
}

#[test]
fn one_node_chosen_by_its_name() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang small 1x2gpu if:hostname=a1
        gang train 2x4gpu if:hostname=a2,a3 topology=required:node
        gang other 2x2gpu if:hostname=a2 topology=required:node
    "), @"
    admit small: a1[0-1]
    admit train: a2[0-3] a2[4-7]
    other waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn one_node_preferred_by_its_name() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang one 1x4gpu wish:100:hostname=a2
        gang two 2x4gpu wish:100:hostname=a3 topology=required:node
        gang three 2x2gpu wish:100:hostname=a2
        gang four 1x8gpu wish:100:hostname=a2
    "), @"
    admit one: a2[0-3]
    admit two: a3[0-3] a3[4-7]
    admit three: a2[4-5] a2[6-7]
    admit four: a1[0-7]
    ");
}

#[test]
fn required_rack_without_racks_is_infeasible_and_bars_no_other() {
    assert_snapshot!(check("
        node a[1..4] gpus=8 zone=a
        gang train 2x8gpu topology=required:rack
        gang small 1x8gpu
    "), @"
    admit small: a1[0-7]
    train is impossible: r0 fits nowhere
    ");
}

#[test]
fn cores_are_bought_when_gpus_are_there() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 cpu=10
        pool gpus : zone=a price=10 cpu=10
        pool cores : zone=a type=m gpus=0 price=1
        gang mix 1x50cpu+2x8gpu
    "), @"order o0 for mix: 1 x cores/m@a by 15m: c0 | a1[0-7] a2[0-7]");
}

#[test]
fn two_zones_of_two_make_four() {
    assert_snapshot!(check("
        pool p : zone=a price=10 max=2 ; zone=b price=11 max=2
        gang close 4x8gpu topology=required:zone
        gang train 4x8gpu
        gang next 1x8gpu
    "), @"
    order o0 for train: 2 x p/gpu8@a + 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    close is impossible: r0 never 4, at most 2
    next waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn a_node_that_comes_up_in_another_zone_is_not_used_where_zones_matter() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p : zone=a price=10
        gang train 2x8gpu topology=required:zone
        gang other 1x8gpu
        plan
        ready c0 zone=b
        ready c1 zone=b
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    order o1 for other: 1 x p/gpu8@a by 15m: c1[0-7]
    roll back o0: c0 unsuitable
    admit other: c1[0-7]
    train waits #1: r0 fits 1 of 2, offerings avoided until 3m
    other runs
    ");
}

#[test]
fn node_that_comes_up_tainted_is_not_used_without_toleration() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x8gpu
        gang easygoing 1x8gpu tolerate:t
        plan
        ready c[0..1] taint=t:NoSchedule
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for easygoing: 1 x p/gpu8@a by 15m: c1[0-7]
    roll back o0: c0 unsuitable
    admit easygoing: c1[0-7]
    train waits #1: r0 fits 0 of 1, offerings avoided until 3m
    easygoing runs
    ");
}

#[test]
fn a_node_relabelled_while_held_is_not_used_where_labels_matter() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a label:disk=ssd
        pool p : zone=a price=10 label:disk=ssd
        gang train 2x8gpu if:disk=ssd
        plan
        node a1 gpus=8 zone=a label:disk=hdd
        ready c0
        plan
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    roll back o0: a1 unsuitable
    order o1 for train: 1 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    ");
}

#[test]
fn a_gang_that_asks_for_nothing_uses_a_node_that_was_to_go() {
    assert_snapshot!(check("
        pool p idle=10m : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        end train
        +10m
        gang nil 1x0cpu/0gi
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    admit train: c0[0-7]
    -- 10m
    admit nil: c0
    ");
}

#[test]
fn gang_larger_than_a_limit_above_is_infeasible_and_bars_no_other() {
    assert_snapshot!(check("
        queue org gpu=8
        queue team parent=org gpu=16
        node a[1..2] gpus=8
        gang small 1x8gpu queue=team
        plan
        gang big 2x6gpu queue=team
        gang tiny 1x1gpu queue=team
        plan
        end small
        plan
    "), @"
    admit small: a1[0-7]
    small runs
    big is impossible: queue org holds 8gpu, wants 12gpu, limit 8gpu
    tiny waits #1: queue org holds 8gpu, wants 1gpu, limit 8gpu
    admit tiny: a1[0]
    big is impossible: queue org holds 0gpu, wants 12gpu, limit 8gpu
    ");
}

#[test]
fn gang_at_a_limit_above_holds_up_only_gangs_that_share_it() {
    assert_snapshot!(check("
        queue org gpu=8
        queue team parent=org
        queue lab parent=org
        node a[1..3] gpus=8
        gang first 1x4gpu queue=lab
        plan
        gang big 1x8gpu queue=team
        gang sibling 1x4gpu queue=lab
        gang parent 1x4gpu queue=org
        gang other 1x8gpu
        plan
        end first
        plan
    "), @"
    admit first: a1[0-3]
    admit other: a2[0-7]
    first runs
    big waits #1: queue org holds 4gpu, wants 8gpu, limit 8gpu
    sibling waits #2: behind big
    parent waits #3: behind big
    admit big: a1[0-7]
    sibling waits #1: queue org holds 8gpu, wants 4gpu, limit 8gpu
    parent waits #2: behind sibling
    other runs
    ");
}

#[test]
fn gang_that_requires_one_node_is_not_split_over_two_woken_ones() {
    assert_snapshot!(check("
        pool p stopped=2 : zone=a price=9 start=1m
        plan
        ready c0
        ready c1
        plan
        lost c0
        lost c1
        parked c0
        parked c1
        plan
        gang wide 2x8gpu topology=required:node
        gang fits 2x4gpu topology=required:node
        plan
    "), @"
    stock c0 p/gpu8@a, c1 p/gpu8@a
    park c0
    park c1
    nothing
    order o0 for fits: 1 x p/gpu8@a by 15m: c0[0-3] c0[4-7]
    stock c2 p/gpu8@a
    wide is impossible: r0 never 2, at most 1
    ");
}

#[test]
fn seats_left_for_one_gang_are_not_promised_to_another() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang one 1x2*0.4gpu preemptible for=10h
        gang two 1x2*0.4gpu preemptible for=10h
        plan
        started one
        started two
        +1h
        gang high 2x0.5gpu prio=5 for=1h
        gang next 2x0.3gpu prio=3 for=1h
        plan
    "), @"
    admit one: a1[0-1]
    admit two: a1[0-1]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of one: a1[0] a1[1]
    stop one: preempted by high
    one is stopping
    two runs
    next waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn gang_leaving_a_node_under_notice_gets_no_other_action() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang big 1..4x8gpu for=10h
        plan
        started big
        +1h
        notice a1 30m
        node a4 gpus=8
        gang next 2x8gpu for=1h
        plan
    "), @"
    admit big: a1[0-7] a2[0-7] a3[0-7]
    -- 1h
    resize big from 3 to 2: a2[0-7] a3[0-7]
    next waits #1: r0 fits 1 of 2, provisioning off
    ");
}
