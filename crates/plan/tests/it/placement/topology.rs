//! Closeness of members: required and preferred domains.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_required_rack_holds_all_members() {
    assert_snapshot!(check("
        node a[1..3] gpus=8 zone=a rack=r1
        node b[1..4] gpus=8 zone=a rack=r2
        gang train 4x8gpu topology=required:rack
    "), @"admit train: b1[0-7] b2[0-7] b3[0-7] b4[0-7]");
}

#[test]
fn two_half_racks_are_not_a_rack() {
    assert_snapshot!(check("
        node a[1..3] gpus=8 zone=a rack=r1
        node b[1..3] gpus=8 zone=a rack=r2
        gang train 4x8gpu topology=required:rack
        gang loose 4x8gpu
    "), @"
    admit loose: a1[0-7] a2[0-7] a3[0-7] b1[0-7]
    train is impossible: r0 never 4, at most 3
    ");
}

#[test]
fn the_same_rack_name_in_another_zone_is_another_rack() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a rack=r1
        node b1 gpus=8 zone=b rack=r1
        gang train 2x8gpu topology=required:rack
    "), @"train is impossible: r0 never 2, at most 1");
}

#[test]
fn a_required_zone_may_span_racks() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a rack=r1
        node a2 gpus=8 zone=a rack=r2
        node b1 gpus=8 zone=b rack=r3
        gang train 2x8gpu topology=required:zone
    "), @"admit train: a1[0-7] a2[0-7]");
}

#[test]
fn a_required_node_takes_the_fullest_that_holds_all() {
    assert_snapshot!(check("
        node a1 gpus=8
        node a2 gpus=4
        node a3 gpus=3
        gang train 4x1gpu topology=required:node
        gang wide 9x1gpu topology=required:node
    "), @"
    admit train: a2[0] a2[1] a2[2] a2[3]
    wide is impossible: r0 never 9, at most 8
    ");
}

#[test]
fn nodes_without_the_label_are_no_rack() {
    assert_snapshot!(check("
        node a[1..4] gpus=8 zone=a
        node b[1..2] gpus=8 zone=a rack=r1
        node c[1..3] gpus=8 zone=a rack=r2
        gang first 3x8gpu topology=required:rack
        gang train 3x8gpu topology=required:rack
    "), @"
    admit first: c1[0-7] c2[0-7] c3[0-7]
    train waits #1: r0 fits 2 of 3, provisioning off
    ");
}

#[test]
fn nodes_without_the_label_still_count_for_the_levels_above() {
    assert_snapshot!(check("
        node a[1..4] gpus=8 zone=a
        gang train 4x8gpu topology=required:zone
    "), @"admit train: a1[0-7] a2[0-7] a3[0-7] a4[0-7]");
}

#[test]
fn a_preferred_rack_gives_way_to_the_smallest_domain_around_it() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a rack=r1
        node a2 gpus=8 zone=a rack=r2
        node b1 gpus=8 zone=b rack=r3
        gang one 1x8gpu topology=preferred:rack
        gang two 2x8gpu topology=preferred:rack
    "), @"
    admit one: a1[0-7]
    admit two: a2[0-7] b1[0-7]
    ");
}

#[test]
fn a_preferred_rack_in_one_zone_beats_racks_in_two() {
    assert_snapshot!(check("
        node a1 gpus=8 zone=a rack=r1
        node b1 gpus=8 zone=b rack=r2
        node b2 gpus=8 zone=b rack=r3
        gang train 2x8gpu topology=preferred:rack
    "), @"admit train: b1[0-7] b2[0-7]");
}

#[test]
fn a_preferred_node_falls_back_to_several() {
    assert_snapshot!(check("
        node a[1..2] gpus=4
        gang one 4x1gpu topology=preferred:node
        gang two 3x1gpu topology=preferred:node
        gang six 1x1gpu topology=preferred:node
        plan
        end one
        end two
        gang wide 7x1gpu topology=preferred:node
        plan
    "), @"
    admit one: a1[0] a1[1] a1[2] a1[3]
    admit two: a2[0] a2[1] a2[2]
    admit six: a2[3]
    admit wide: a1[0] a1[1] a1[2] a1[3] a2[0] a2[1] a2[2]
    six runs
    ");
}

#[test]
fn without_closeness_the_smallest_sufficient_domain_is_used() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a rack=r1
        node a[3..4] gpus=8 zone=a rack=r2 label:x=y
        node b[1..3] gpus=8 zone=b rack=r3
        gang train 3x8gpu
    "), @"admit train: b1[0-7] b2[0-7] b3[0-7]");
}

#[test]
fn among_sufficient_domains_the_tightest_is_used() {
    assert_snapshot!(check("
        node a[1..8] gpus=8 zone=a rack=r1
        node b[1..5] gpus=8 zone=a rack=r2
        node c[1..6] gpus=8 zone=a rack=r3
        gang train 5x8gpu topology=required:rack
        gang next 5x8gpu topology=required:rack
    "), @"
    admit train: b1[0-7] b2[0-7] b3[0-7] b4[0-7] b5[0-7]
    admit next: c1[0-7] c2[0-7] c3[0-7] c4[0-7] c5[0-7]
    ");
}

#[test]
fn a_gang_across_domains_uses_as_few_as_possible() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a rack=r1
        node b[1..3] gpus=8 zone=a rack=r2
        node c1 gpus=8 zone=a rack=r3
        gang train 4x8gpu
    "), @"admit train: b1[0-7] b2[0-7] b3[0-7] c1[0-7]");
}

#[test]
fn unknown_level_is_refused() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang train 1x8gpu topology=required:shelf
    "), @"
    gang train 1x8gpu topology=required:shelf: refused, topology level `shelf` does not exist
    nothing
    ");
}
