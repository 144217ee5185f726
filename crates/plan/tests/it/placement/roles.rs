//! Several roles in one gang: all of them, together.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_launcher_and_its_workers_start_together() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        node m1
        gang mix 1x0gpu+4x8gpu
    "), @"admit mix: m1 | a1[0-7] a2[0-7] a3[0-7] a4[0-7]");
}

#[test]
fn a_role_that_does_not_fit_keeps_the_others_out() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        gang mix 1x200cpu+4x8gpu
        node m1 cpu=150
    "), @"mix is impossible: r0 fits nowhere");
}

#[test]
fn roles_that_fit_alone_but_not_together_compete() {
    assert_snapshot!(check("
        node a1 gpus=8
        node a2 gpus=4
        gang mix 1x8gpu+1x8gpu/2cpu never
        gang mux 1x8gpu+5x1gpu never
    "), @"
    mix waits #1: roles compete, provisioning off
    mux waits #2: r0 fits 0 of 1, provisioning off, behind mix
    ");
}

#[test]
fn the_hardest_role_is_seated_first() {
    assert_snapshot!(check("
        node a1 gpus=8
        node a2 gpus=2
        gang mix 2x1gpu+1x8gpu
    "), @"admit mix: a2[0] a2[1] | a1[0-7]");
}

#[test]
fn a_required_rack_holds_all_roles() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a rack=r1
        node b[1..2] gpus=8 zone=a rack=r2
        node m1 zone=a rack=r2
        node m2 zone=a rack=r3
        gang mix 1x60cpu+2x8gpu/60cpu topology=required:rack
    "), @"admit mix: m1 | b1[0-7] b2[0-7]");
}

#[test]
fn the_next_rack_is_tried_when_roles_compete_in_the_tightest() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a rack=r1
        node b[1..2] gpus=8 zone=a rack=r2
        gang mix 1x8gpu+1x1gpu topology=required:rack
    "), @"admit mix: b1[0-7] | b2[0]");
}

#[test]
fn a_required_node_takes_all_roles() {
    assert_snapshot!(check("
        node a1 gpus=4 cpu=4
        node a2 gpus=4 cpu=40
        gang mix 1x10cpu+2x2gpu topology=required:node
        gang max 1x30cpu+2x2gpu topology=required:node never
    "), @"
    admit mix: a2 | a2[0-1] a2[2-3]
    max waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn each_role_has_its_own_constraints() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 label:disk=ssd
        node b[1..2] gpus=8
        gang mix 1x8gpu+1x8gpu r0.if:disk=ssd r1.if:!disk
    "), @"admit mix: a1[0-7] | b1[0-7]");
}
