//! Where members may run, and where they prefer to.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_selector_keeps_members_on_matching_nodes() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=hdd
        node a2 gpus=8
        node a3 gpus=8 label:disk=ssd
        gang train 1x8gpu if:disk=ssd
        gang more 1x8gpu if:disk=ssd never
    "), @"
    admit train: a3[0-7]
    more waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn not_in_also_takes_nodes_without_the_label() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=hdd
        node a2 gpus=8
        node a3 gpus=8 label:disk=ssd
        gang train 2x8gpu if:disk!=hdd
    "), @"admit train: a3[0-7] a2[0-7]");
}

#[test]
fn numbers_compare_as_numbers() {
    assert_snapshot!(check("
        node a1 gpus=8 label:gen=9
        node a2 gpus=8 label:gen=10
        node a3 gpus=8 label:gen=new
        node a4 gpus=8
        gang new 1x8gpu if:gen>9
        gang old 1x8gpu if:gen<10
        gang more 1x8gpu if:gen>9
    "), @"
    admit new: a2[0-7]
    admit old: a1[0-7]
    more waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn presence_and_absence_of_a_label() {
    assert_snapshot!(check("
        node a1 gpus=8 label:ib=yes
        node a2 gpus=8
        gang with 1x8gpu if:ib
        gang without 1x8gpu if:!ib
    "), @"
    admit with: a1[0-7]
    admit without: a2[0-7]
    ");
}

#[test]
fn one_term_is_enough_but_all_of_it() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=ssd label:gen=1
        node a2 gpus=8 label:disk=hdd label:gen=5
        node a3 gpus=8 label:disk=ssd label:gen=5
        node a4 gpus=8 label:disk=nvme
        gang train 2x8gpu any:disk=ssd&gen>3|disk=nvme
    "), @"admit train: a4[0-7] a3[0-7]");
}

#[test]
fn selector_and_terms_must_both_hold() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=ssd
        node a2 gpus=8 label:disk=ssd label:ib=yes
        node a3 gpus=8 label:ib=yes
        gang train 1x8gpu if:ib any:disk=ssd|disk=nvme
    "), @"admit train: a2[0-7]");
}

#[test]
fn a_place_is_a_label_too() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 zone=a rack=r1
        node b[1..2] gpus=8 zone=b rack=r2
        gang train 2x8gpu if:zone=b
        gang away 1x8gpu if:zone!=b
        gang none 1x8gpu if:zone=c
    "), @"
    admit train: b1[0-7] b2[0-7]
    admit away: a1[0-7]
    none is impossible: r0 fits nowhere
    ");
}

#[test]
fn a_node_can_be_asked_for_by_name() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang train 1x8gpu if:hostname=a2
        gang rest 2x8gpu if:hostname!=a2
        gang more 1x8gpu if:hostname=a2
    "), @"
    admit train: a2[0-7]
    admit rest: a1[0-7] a3[0-7]
    more waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn hard_taints_repel_members_without_toleration() {
    assert_snapshot!(check("
        node a1 gpus=8 taint=team=red:NoSchedule
        node a2 gpus=8 taint=team=red:NoExecute
        node a3 gpus=8 taint=team=blue:NoSchedule
        gang plain 1x8gpu
        gang red 1x8gpu tolerate:team=red:NoSchedule
        gang any 1x8gpu tolerate:team=red
        gang all 1x8gpu tolerate:*
    "), @"
    admit red: a1[0-7]
    admit any: a2[0-7]
    admit all: a3[0-7]
    plain is impossible: r0 fits nowhere
    ");
}

#[test]
fn soft_taint_is_only_a_preference() {
    assert_snapshot!(check("
        node a1 gpus=8 taint=old:PreferNoSchedule
        node a2 gpus=8
        gang g[1..2] 1x8gpu
    "), @"
    admit g1: a2[0-7]
    admit g2: a1[0-7]
    ");
}

#[test]
fn the_better_liked_class_is_used_first() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node b[1..2] gpus=8 label:disk=hdd
        node c[1..2] gpus=8 label:disk=ssd
        gang g[1..3] 2x8gpu wish:10:disk wish:50:disk=ssd
    "), @"
    admit g1: c1[0-7] c2[0-7]
    admit g2: b1[0-7] b2[0-7]
    admit g3: a1[0-7] a2[0-7]
    ");
}

#[test]
fn preferences_are_weighed_against_each_other() {
    assert_snapshot!(check("
        node a1 gpus=8 label:disk=ssd
        node a2 gpus=8 label:ib=yes
        node a3 gpus=8 label:ib=yes label:disk=ssd
        gang g[1..3] 1x8gpu wish:10:disk=ssd wish:20:ib
    "), @"
    admit g1: a3[0-7]
    admit g2: a2[0-7]
    admit g3: a1[0-7]
    ");
}

#[test]
fn a_liked_class_too_small_for_all_is_no_reason_to_wait() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        node b1 gpus=8 label:disk=ssd
        gang train 4x8gpu wish:100:disk=ssd
    "), @"admit train: b1[0-7] a1[0-7] a2[0-7] a3[0-7]");
}

#[test]
fn members_without_gpus_leave_gpu_nodes_alone() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node m1 cpu=10
        gang prep 2x4cpu
        gang more 1x4cpu
        gang train 2x8gpu
    "), @"
    admit prep: m1*2
    admit more: a1
    admit train: a1[0-7] a2[0-7]
    ");
}

#[test]
fn members_without_gpus_use_gpu_nodes_when_nothing_else_is_left() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang prep 2x4cpu wish:100:none=such
    "), @"admit prep: a1*2");
}
