//! GPUs as devices: whole ones, shares of one, models and memory.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn halves_share_a_device() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang half 2x0.5gpu
        gang whole 1x1gpu
    "), @"
    admit half: a1[0]*2
    admit whole: a1[1]
    ");
}

#[test]
fn whole_devices_stay_whole_while_a_started_one_has_room() {
    assert_snapshot!(check("
        node a1 gpus=4
        gang g1 1x0.5gpu
        gang g2 1x0.3gpu
        gang g3 1x0.3gpu
        gang g4 1x0.2gpu
        gang all 2x1gpu
    "), @"
    admit g1: a1[0]
    admit g2: a1[0]
    admit g3: a1[1]
    admit g4: a1[0]
    admit all: a1[2] a1[3]
    ");
}

#[test]
fn a_started_device_is_no_whole_one() {
    assert_snapshot!(check("
        node a1 gpus=1
        gang bit 1x0.1gpu
        gang all 1x1gpu never
        gang rest 1x0.9gpu
        policy fifo-overtake
    "), @"
    admit bit: a1[0]
    admit rest: a1[0]
    all waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn shares_that_do_not_divide_leave_a_rest() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang train 5x0.4gpu never
        gang less 4x0.4gpu
    "), @"
    admit less: a1[0]*2 a1[1]*2
    train is impossible: r0 never 5, at most 4
    ");
}

#[test]
fn several_shares_of_one_member_are_different_devices() {
    assert_snapshot!(check("
        node a1 gpus=3
        gang pair 3x2*0.5gpu
        plan
        gang more 1x2*0.5gpu never
        plan
    "), @"
    admit pair: a1[0-1] a1[0,2] a1[1-2]
    pair runs
    more waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn devices_come_back_as_they_were() {
    assert_snapshot!(check("
        node a1 gpus=2
        gang one 1x0.5gpu
        gang two 1x0.5gpu
        gang big 2x1gpu
        plan
        end one
        plan
        end two
        plan
    "), @"
    admit one: a1[0]
    admit two: a1[0]
    big waits #1: r0 fits 1 of 2, provisioning off
    two runs
    big waits #1: r0 fits 1 of 2, provisioning off
    admit big: a1[0] a1[1]
    ");
}

#[test]
fn only_the_models_asked_for_will_do() {
    assert_snapshot!(check("
        node a1 gpus=8 model=A100
        node a2 gpus=8 model=H200
        gang old 1x8gpu model=A100,V100
        gang new 1x8gpu model=H100,H200
        gang never 1x8gpu model=B200
    "), @"
    admit old: a1[0-7]
    admit new: a2[0-7]
    never is impossible: r0 fits nowhere
    ");
}

#[test]
fn each_gpu_must_have_the_memory_asked_for() {
    assert_snapshot!(check("
        node a1 gpus=8 gpumem=40
        node a2 gpus=8 gpumem=80
        node a3 gpus=8 gpumem=0
        gang large 1x8gpu gpumem=80
        gang small 1x8gpu gpumem=40
        gang any 1x8gpu
    "), @"
    admit large: a2[0-7]
    admit small: a1[0-7]
    admit any: a3[0-7]
    ");
}

#[test]
fn a_gpu_of_another_vendor_is_another_thing() {
    assert_snapshot!(check("
        node a1 gpus=8 vendor=amd.com/gpu
        node m1
        gang train 1x1gpu
    "), @"train is impossible: r0 fits nowhere");
}
