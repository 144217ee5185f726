//! Buying what a gang lacks, and only that, in the cheapest way.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn only_the_shortfall_is_bought_and_what_is_there_is_held() {
    assert_snapshot!(check("
        node a[1..4] gpus=8 zone=a
        pool p : zone=a price=10
        gang train 8x8gpu
        plan
        gang small 1x8gpu never
        plan
        ready c[0..3]
        plan
    "), @"
    order o0 for train: 4 x p/gpu8@a by 15m: a1[0-7] a2[0-7] a3[0-7] a4[0-7] c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    train assembles o0: 0 of 4 by 15m
    small waits #1: r0 fits 0 of 1, provisioning off
    admit train: a1[0-7] a2[0-7] a3[0-7] a4[0-7] c0[0-7] c1[0-7] c2[0-7] c3[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn no_gang_starts_before_the_last_node_is_ready() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 3x8gpu
        plan
        launched c0
        ready c[0..1]
        plan
        ready c2 ready=no
        plan
        ready c2
        plan
    "), @"
    order o0 for train: 3 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    train assembles o0: 2 of 3 by 15m
    train assembles o0: 2 of 3 by 15m
    admit train: c0[0-7] c1[0-7] c2[0-7]
    ");
}

#[test]
fn a_node_with_gpus_missing_is_not_ready() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang train 1x4gpu
        plan
        ready c0 gpus=7
        plan
        ready c0 gpus=8
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-3]
    train assembles o0: 0 of 1 by 15m
    admit train: c0[0-3]
    ");
}

#[test]
fn a_node_that_has_its_gpus_and_not_yet_its_adapters_is_waited_for() {
    assert_snapshot!(check("
        pool p : zone=a price=10 efa=32
        gang train 1x8gpu/32efa
        plan
        ready c0 efa=0
        plan
        ready c0 efa=31
        plan
        ready c0 efa=32
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    train assembles o0: 0 of 1 by 15m
    train assembles o0: 0 of 1 by 15m
    admit train: c0[0-7]
    ");
}

#[test]
fn a_node_that_never_shows_its_adapters_fails_when_patience_is_over() {
    assert_snapshot!(check("
        pool p patience=5m : zone=a price=10 efa=32 boot=1m
        policy top-ups=0
        gang train 1x8gpu/32efa
        plan
        ready c0 efa=0
        +4m
        plan
        +2m
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    -- 4m
    train assembles o0: 0 of 1 by 15m
    -- 6m
    roll back o0: c0 overdue: Gpus
    ");
}

#[test]
fn a_node_that_is_smaller_than_its_offering_says_fails_at_once() {
    assert_snapshot!(check("
        pool p : zone=a price=10 cpu=100
        policy top-ups=0
        gang train 1x8gpu/100cpu
        plan
        ready c0 cpu=90
        plan
    "), @"
    order o0 for train: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 TooSmall
    ");
}

#[test]
fn an_idle_node_of_a_pool_is_used_before_another_is_bought() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang first 2x8gpu
        plan
        ready c[0..1]
        plan
        end first
        gang second 3x8gpu
        plan
    "), @"
    order o0 for first: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    admit first: c0[0-7] c1[0-7]
    order o1 for second: 1 x p/gpu8@a by 15m: c0[0-7] c1[0-7] c2[0-7]
    ");
}

#[test]
fn two_gangs_in_one_cycle_do_not_share_what_they_order() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a
        pool p nodes=3 : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        gang three 1x8gpu
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: a1[0-7] c0[0-7]
    order o1 for two: 2 x p/gpu8@a by 15m: c1[0-7] c2[0-7]
    three waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn the_cheapest_offering_wins() {
    assert_snapshot!(check("
        pool p : zone=a price=12 ; zone=b price=10
        pool q tier=spot : zone=c price=4 boot=10m
        gang train 2x8gpu
    "), @"order o0 for train: 2 x q/gpu8@c by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn among_equal_prices_the_sooner_one_then_the_first_listed() {
    assert_snapshot!(check("
        pool p : zone=a price=10 boot=5m ; zone=b price=10 boot=3m ; zone=c price=10 boot=3m
        gang train 1x8gpu
    "), @"order o0 for train: 1 x p/gpu8@b by 15m: c0[0-7]");
}

#[test]
fn what_counts_is_the_price_of_the_whole_order() {
    assert_snapshot!(check("
        pool p : type=big gpus=8 price=10 ; type=small gpus=4 price=4
        gang two 2x4gpu
        gang one 1x8gpu
        gang odd 1x4gpu
    "), @"
    order o0 for two: 2 x p/small@ by 15m: c0[0-3] c1[0-3]
    order o1 for one: 1 x p/big@ by 15m: c2[0-7]
    order o2 for odd: 1 x p/small@ by 15m: c3[0-3]
    ");
}

#[test]
fn a_larger_node_wins_when_small_ones_fit_badly() {
    assert_snapshot!(check("
        pool p : type=big gpus=8 price=10 ; type=small gpus=4 price=6
        gang train 4x2gpu
        gang odd 2x3gpu
    "), @"
    order o0 for train: 1 x p/big@ by 15m: c0[0-1] c0[2-3] c0[4-5] c0[6-7]
    order o1 for odd: 1 x p/big@ by 15m: c1[0-2] c1[3-5]
    ");
}

#[test]
fn members_of_one_order_share_new_nodes() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang mix 1x20cpu+3x4gpu
    "), @"order o0 for mix: 2 x p/gpu8@a by 15m: c0 | c0[0-3] c0[4-7] c1[0-3]");
}

#[test]
fn a_lesser_role_gets_a_cheaper_kind_of_node() {
    assert_snapshot!(check("
        pool gpu : zone=a price=10
        pool cpu : zone=a type=m gpus=0 price=1
        gang mix 2x90cpu+1x8gpu/50cpu
        plan
        ready c[0..2]
        plan
    "), @"
    order o0 for mix: 1 x gpu/gpu8@a + 2 x cpu/m@a by 15m: c1 c2 | c0[0-7]
    admit mix: c1 c2 | c0[0-7]
    ");
}

#[test]
fn a_required_zone_keeps_all_in_the_zone_of_the_offering() {
    assert_snapshot!(check("
        node a[1..3] gpus=8 zone=a
        node b1 gpus=8 zone=b
        pool p : zone=a price=20 ; zone=b price=5
        gang train 4x8gpu topology=required:zone
    "), @"order o0 for train: 3 x p/gpu8@b by 15m: b1[0-7] c0[0-7] c1[0-7] c2[0-7]");
}

#[test]
fn a_required_rack_is_bought_only_where_the_rack_is_known() {
    assert_snapshot!(check("
        pool p : zone=a price=1 ; zone=a type=t rack=r1 price=10
        node a1 gpus=8 zone=a rack=r1
        node a2 gpus=8 zone=a rack=r2
        gang train 2x8gpu topology=required:rack
    "), @"order o0 for train: 1 x p/t@a by 15m: a1[0-7] c0[0-7]");
}

#[test]
fn a_required_node_is_bought_whole() {
    assert_snapshot!(check("
        node a1 gpus=2 zone=a
        pool p : zone=a type=s gpus=4 price=1 ; zone=a type=l gpus=8 price=9
        gang train 3x2gpu topology=required:node
    "), @"order o0 for train: 1 x p/l@a by 15m: c0[0-1] c0[2-3] c0[4-5]");
}

#[test]
fn constraints_hold_for_what_is_bought() {
    assert_snapshot!(check("
        pool p : zone=a price=1 ; zone=b price=2 model=A100 ; zone=c price=3 taint=t:NoSchedule ; zone=d price=4
        gang train 1x8gpu if:zone!=a model=H100
        gang brave 1x8gpu if:zone!=a model=H100 tolerate:t
    "), @"
    order o0 for train: 1 x p/gpu8@d by 15m: c0[0-7]
    order o1 for brave: 1 x p/gpu8@c by 15m: c1[0-7]
    ");
}

#[test]
fn offering_that_boots_too_slowly_is_left_alone() {
    assert_snapshot!(check("
        pool p : zone=a price=1 boot=20m ; zone=b price=10 boot=3m
        gang train 1x8gpu timeout=10m
        gang hasty 1x8gpu timeout=2m
    "), @"
    order o0 for train: 1 x p/gpu8@b by 10m: c0[0-7]
    hasty is impossible: r0 fits nowhere
    ");
}
