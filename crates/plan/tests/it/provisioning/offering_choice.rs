//! Which offering an order is drawn up around: price, boot time, odds, prepaid capacity, budget, tiers, GPUs.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn of_equal_offerings_the_cheapest_is_chosen() {
    assert_snapshot!(check("
        pool p : zone=a price=12 ; zone=b price=10 ; zone=c price=11
        gang train 2x8gpu
    "), @"order o0 for train: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn expensive_node_that_boots_sooner_is_worth_it_for_a_short_gang() {
    assert_snapshot!(check("
        pool p : zone=a price=10 boot=10m ; zone=b price=12 boot=2m
        gang short 2x8gpu for=10m
        gang long 2x8gpu for=20h
        plan
    "), @"
    order o0 for short: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]
    order o1 for long: 2 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    ");
}

#[test]
fn gang_with_a_high_cost_of_waiting_pays_for_a_sooner_start() {
    assert_snapshot!(check("
        pool p : zone=a price=10 boot=10m ; zone=b price=12 boot=2m
        gang patient 2x8gpu for=20h
        gang urgent 2x8gpu for=20h cost=1000
        plan
    "), @"
    order o0 for patient: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    order o1 for urgent: 2 x p/gpu8@b by 15m: c2[0-7] c3[0-7]
    ");
}

#[test]
fn stocked_out_offering_is_passed_over_until_the_record_fades() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : zone=a price=100 boot=10m ; zone=b price=103 boot=10m
        gang one 1x8gpu for=2h
        plan
        fail c0 stock-out
        plan
        plan
        ready c1
        +10m
        gang two 1x8gpu for=2h
        plan
        ready c2
        +24h
        gang three 1x8gpu for=2h
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    order o1 for one: 1 x p/gpu8@b by 15m: c1[0-7]
    release c0
    -- 10m
    admit one: c1[0-7]
    order o2 for two: 1 x p/gpu8@b by 25m: c2[0-7]
    -- 1d10m
    admit two: c2[0-7]
    order o3 for three: 1 x p/gpu8@a by 1d25m: c3[0-7]
    one runs
    ");
}

#[test]
fn stock_out_in_one_zone_counts_against_zones_of_its_region() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : region=x zone=a price=100 boot=10m ; region=x zone=b price=100.5 boot=10m ; region=y zone=c price=101 boot=10m
        gang one 1x8gpu for=2h
        plan
        fail c0 stock-out
        plan
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 StockOut
    order o1 for one: 1 x p/gpu8@c by 15m: c1[0-7]
    release c0
    ");
}

#[test]
fn prepaid_capacity_goes_before_cheaper_capacity() {
    assert_snapshot!(check("
        pool p : zone=a price=10 ; zone=b price=30 capacity=reserved
        gang train 2x8gpu
    "), @"order o0 for train: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn prepaid_capacity_is_used_up_before_anything_is_bought() {
    assert_snapshot!(check("
        pool p : zone=a price=10 type=od ; zone=a price=30 type=paid capacity=reserved max=2
        gang train 3x8gpu
    "), @"order o0 for train: 2 x p/paid@a + 1 x p/od@a by 15m: c0[0-7] c1[0-7] c2[0-7]");
}

#[test]
fn gang_in_one_zone_buys_beside_prepaid_capacity_only_there() {
    assert_snapshot!(check("
        pool p : zone=a price=5 ; zone=b price=50 capacity=reserved max=2 ; zone=b price=6 type=od
        gang train 3x8gpu topology=required:zone
    "), @"order o0 for train: 2 x p/gpu8@b + 1 x p/od@b by 15m: c0[0-7] c1[0-7] c2[0-7]");
}

#[test]
fn the_budget_sends_an_order_to_cheaper_nodes_that_boot_later() {
    assert_snapshot!(check("
        pool p budget=20 : zone=a price=10 boot=12m ; zone=b price=11 boot=1m
        gang train 2x8gpu for=10m cost=100000
    "), @"order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn budget_too_small_for_any_node_is_reported() {
    assert_snapshot!(check("
        pool p budget=19 : zone=a price=10
        gang train 2x8gpu
    "), @"train is impossible: r0 never 2, at most 1, budget of p: 19.00 of 19.00 left");
}

#[test]
fn budget_that_is_used_up_for_now_is_reported() {
    assert_snapshot!(check("
        pool p budget=30 : zone=a price=10
        gang one 2x8gpu
        gang two 2x8gpu
        plan
        why two
    "), @"
    order o0 for one: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    two waits #1: r0 fits 0 of 2, pools full (room 1), budget of p: 10.00 of 30.00 left
    two is expected to start: 1h3m
      now with 2 more of p/gpu8@a
    ");
}

#[test]
fn a_limit_of_one_pool_sends_the_order_to_another_tier() {
    assert_snapshot!(check("
        pool g tier=gold nodes=1 : zone=a price=5
        pool s tier=spot : zone=a price=7
        gang train 2x8gpu
    "), @"order o0 for train: 1 x g/gpu8@a + 1 x s/gpu8@a by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn a_queue_keeps_to_its_tiers() {
    assert_snapshot!(check("
        queue team parent=default tiers=gold
        pool s tier=spot : zone=a price=1
        pool g tier=gold nodes=2 : zone=a price=10
        gang one 2x8gpu queue=team
        gang two 1x8gpu queue=team
        plan
    "), @"
    order o0 for one: 2 x g/gpu8@a by 15m: c0[0-7] c1[0-7]
    two waits #1: r0 fits 0 of 1, pools full (room 0)
    ");
}

#[test]
fn a_gang_gets_the_gpu_model_it_asks_for_at_any_price() {
    assert_snapshot!(check("
        pool p : zone=a price=1 model=A100 ; zone=b price=90 model=H100
        gang train 2x8gpu model=H100
        gang any 2x8gpu
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]
    order o1 for any: 2 x p/gpu8@a by 15m: c2[0-7] c3[0-7]
    ");
}

#[test]
fn several_models_are_not_mixed_in_one_role_while_one_has_room() {
    assert_snapshot!(check("
        pool p : zone=a price=1 type=old model=A100 max=3 ; zone=a price=9 type=new model=H100
        gang train 4x8gpu model=A100,H100
    "), @"order o0 for train: 4 x p/new@a by 15m: c0[0-7] c1[0-7] c2[0-7] c3[0-7]");
}

#[test]
fn large_nodes_beside_small_ones_where_that_is_cheapest() {
    assert_snapshot!(check("
        pool p : zone=a price=10 type=big ; zone=a gpus=4 price=5.5 type=mid ; zone=a gpus=2 price=4 type=tiny
        gang train 11x2gpu
    "), @"order o0 for train: 2 x p/big@a + 1 x p/mid@a + 1 x p/tiny@a by 15m: c0[0-1] c0[2-3] c0[4-5] c0[6-7] c1[0-1] c1[2-3] c1[4-5] c1[6-7] c2[0-1] c2[2-3] c3[0-1]");
}

#[test]
fn small_nodes_alone_where_they_are_cheaper() {
    assert_snapshot!(check("
        pool p : zone=a price=10 type=big ; zone=a gpus=4 price=4 type=mid
        gang train 5x4gpu
    "), @"order o0 for train: 5 x p/mid@a by 15m: c0[0-3] c1[0-3] c2[0-3] c3[0-3] c4[0-3]");
}

#[test]
fn a_mix_keeps_to_the_limits_of_its_pool() {
    assert_snapshot!(check("
        pool p nodes=2 : zone=a price=10 type=big ; zone=a gpus=4 price=4 type=mid
        gang train 4x4gpu
    "), @"order o0 for train: 2 x p/big@a by 15m: c0[0-3] c0[4-7] c1[0-3] c1[4-7]");
}

#[test]
fn a_mix_keeps_to_what_an_offering_can_give() {
    assert_snapshot!(check("
        pool p : zone=a price=10 type=big ; zone=a gpus=4 price=4 type=mid max=1
        gang train 4x4gpu
    "), @"order o0 for train: 2 x p/big@a by 15m: c0[0-3] c0[4-7] c1[0-3] c1[4-7]");
}

#[test]
fn offerings_are_tried_as_listed_where_the_operator_wants_that() {
    assert_snapshot!(check("
        policy failover=listed top-ups=0
        pool p : zone=a price=30 ; zone=b price=20
        pool q : zone=c price=10
        gang train 2x8gpu
        plan
        fail c0 stock-out
        plan
        plan
        fail c2 stock-out
        plan
        plan
    "), @"
    order o0 for train: 2 x p/gpu8@a by 15m: c0[0-7] c1[0-7]
    roll back o0: c0 StockOut
    order o1 for train: 2 x p/gpu8@b by 15m: c2[0-7] c3[0-7]
    release c0
    release c1
    roll back o1: c2 StockOut
    order o2 for train: 2 x q/gpu8@c by 15m: c4[0-7] c5[0-7]
    release c2
    release c3
    ");
}

#[test]
fn a_listed_offering_without_room_is_passed_over() {
    assert_snapshot!(check("
        policy failover=listed
        pool p : zone=a price=30 max=1 ; zone=b price=20
        gang train 2x8gpu topology=required:zone
    "), @"order o0 for train: 2 x p/gpu8@b by 15m: c0[0-7] c1[0-7]");
}

#[test]
fn an_offering_that_boots_longer_than_the_gang_waits_is_not_chosen() {
    assert_snapshot!(check("
        pool p : zone=a price=1 boot=15m ; zone=b price=10
        gang train 1x8gpu timeout=15m
    "), @"order o0 for train: 1 x p/gpu8@b by 15m: c0[0-7]");
}

#[test]
fn offering_that_recovers_is_used_again() {
    assert_snapshot!(check("
        policy top-ups=0
        pool p : zone=a price=10
        gang one 1x8gpu
        plan
        fail c0 boot-failed
        plan
        plan wake
        +3m
        plan
        ready c1
        plan
        gang two 1x8gpu
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    roll back o0: c0 BootFailed
    release c0
    one waits #1: r0 fits 0 of 1, offerings avoided until 3m
    wake at 3m
    -- 3m
    order o1 for one: 1 x p/gpu8@a by 18m: c1[0-7]
    -- 3m
    admit one: c1[0-7]
    -- 3m
    order o2 for two: 1 x p/gpu8@a by 18m: c2[0-7]
    one runs
    ");
}
