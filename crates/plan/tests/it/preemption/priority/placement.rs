//! Victims are where the gang may run, in one domain if it must be close together.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn gang_that_requires_a_rack_has_all_victims_in_one_rack() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang old[1..2] 1x8gpu preemptible for=20h
        plan
        started old[1..2]
        +10h
        gang mix[1..2] 1x8gpu preemptible for=10h
        plan
        started mix[1..2]
        +1h
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan
    "), @"
    admit old1: a1[0-7]
    admit old2: a2[0-7]
    -- 10h
    admit mix1: b1[0-7]
    admit mix2: b2[0-7]
    old1 runs
    old2 runs
    -- 11h
    order o0 for high:  by 11h2m after all 1 of mix1, all 1 of mix2: b1[0-7] b2[0-7]
    stop mix1: preempted by high
    stop mix2: preempted by high
    old1 runs
    old2 runs
    mix1 is stopping
    mix2 is stopping
    ");
}

#[test]
fn rack_with_the_lowest_total_cost_of_victims_is_taken() {
    assert_snapshot!(check("
        node a[1..2] gpus=8 rack=r1
        node b[1..2] gpus=8 rack=r2
        gang old 1x8gpu preemptible for=30h if:rack=r1
        plan
        started old
        +20h
        gang mid[1..2] 1x8gpu preemptible for=10h if:rack=r2
        plan
        started mid[1..2]
        +1h
        gang young 1x8gpu preemptible for=10h if:rack=r1
        plan
        started young
        +1m
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan ways
    "), @"
    admit old: a1[0-7]
    -- 20h
    admit mid1: b1[0-7]
    admit mid2: b2[0-7]
    old runs
    -- 21h
    admit young: a2[0-7]
    old runs
    mid1 runs
    mid2 runs
    -- 21h1m
    order o0 for high:  by 21h3m after all 1 of mid1, all 1 of mid2: b1[0-7] b2[0-7]
    stop mid1: preempted by high
    stop mid2: preempted by high
    old runs
    mid1 is stopping
    mid2 is stopping
    young runs
      high Wait in 8h59m for 1437.33: 0 others lose 0s
    * high Preempt in 0s for 16.27: 2 others lose 16h16m
    ");
}

#[test]
fn free_node_and_victim_in_different_racks_do_not_make_a_rack() {
    assert_snapshot!(check("
        node a1 gpus=8 rack=r1
        node b1 gpus=8 rack=r2
        gang low 1x8gpu preemptible for=10h
        plan
        started low
        +1h
        gang high 2x8gpu prio=1 for=1h topology=required:rack
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    low runs
    high is impossible: r0 never 2, at most 1
    ");
}

#[test]
fn no_gang_is_stopped_on_unsuitable_nodes() {
    assert_snapshot!(check("
        node a1 gpus=8
        node b1 gpus=8 label:disk=ssd
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h if:disk=ssd
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: b1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: b1[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    ");
}

#[test]
fn no_gang_is_stopped_on_a_node_under_notice() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h
        plan
        started low[1..2]
        +1h
        notice a1 30m
        gang high 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    ");
}

#[test]
fn gang_bound_to_one_node_has_its_victims_there() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang low[1..3] 1x8gpu preemptible for=10h
        plan
        started low[1..3]
        +1h
        gang high 1x8gpu prio=1 for=1h if:hostname=a2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    admit low3: a3[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 runs
    low2 is stopping
    low3 runs
    ");
}

/// The wide one would free three nodes, but only one of them has the disk.
#[test]
fn unsuitable_nodes_do_not_count_when_victims_are_compared() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        node b[1..3] gpus=8 label:disk=ssd
        gang s[1..2] 1x8gpu preemptible for=10h if:hostname=b2,b3
        plan
        started s[1..2]
        +10m
        gang wide 3x8gpu preemptible for=10h if:hostname=a1,a2,b1
        plan
        started wide
        +10m
        gang high 2x8gpu prio=1 for=1h if:disk=ssd
        plan ways
    "), @"
    admit s1: b2[0-7]
    admit s2: b3[0-7]
    -- 10m
    admit wide: a1[0-7] a2[0-7] b1[0-7]
    s1 runs
    s2 runs
    -- 20m
    order o0 for high:  by 22m after all 1 of s1, all 1 of s2: b2[0-7] b3[0-7]
    stop s1: preempted by high
    stop s2: preempted by high
    s1 is stopping
    s2 is stopping
    wide runs
      high Wait in 9h40m for 1546.67: 0 others lose 0s
    * high Preempt in 0s for 5.33: 2 others lose 5h20m
    ");
}
