//! Gangs that may be moved are moved off underused nodes, and no others.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn a_rigid_gang_is_never_moved() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    ");
}

#[test]
fn an_elastic_gang_that_did_not_agree_is_never_moved() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    ");
}

#[test]
fn an_elastic_gang_that_agreed_is_moved_to_where_others_are() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        
        end one
        plan
        stopped mini
        plan
        started mini
        plan
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    retire c0
    stop mini: moves
    mini runs
    two runs
    admit mini: c1[5-6]
    release c0
    two runs
    mini runs
    two runs
    mini runs
    two runs
    ");
}

#[test]
fn a_gang_is_not_moved_before_it_has_run_as_long_as_it_wants() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=1h
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        +59m59s
        plan
        +1s
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    -- 59m59s
    mini runs
    two runs
    -- 1h
    retire c0
    stop mini: moves
    mini runs
    two runs
    ");
}

#[test]
fn a_gang_that_would_lose_more_than_is_won_is_not_moved() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=2h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        +2h
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    -- 2h
    mini runs
    two runs
    ");
}

#[test]
fn no_gang_is_moved_while_another_waits() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        gang waits 2x8gpu never
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    waits waits #1: r0 fits 0 of 2, provisioning off
    ");
}

#[test]
fn no_gang_is_moved_onto_an_idle_node_that_could_go_instead() {
    assert_snapshot!(check("
        pool p consolidate=underused idle=10m : zone=a price=10
        gang one 1x8gpu for=20h
        gang mini 1..2x2gpu for=20h moves=0s
        plan
        ready c[0..1]
        plan
        started one
        started mini
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-7]
    order o1 for mini: 1 x p/gpu8@a by 15m: c1[0-1]
    admit one: c0[0-7]
    admit mini: c1[0-1]
    mini runs
    ");
}

#[test]
fn no_gang_is_moved_onto_a_node_that_is_kept_warm() {
    assert_snapshot!(check("
        pool p warm=1 consolidate=underused : zone=a price=10
        gang mini 1..2x2gpu for=20h moves=0s
        plan
        ready c[0..1]
        plan
        started mini
        plan
    "), @"
    order o0 for mini: 1 x p/gpu8@a by 15m: c0[0-1]
    stock c1 p/gpu8@a
    admit mini: c0[0-1]
    mini runs
    ");
}

#[test]
fn a_node_with_a_rigid_gang_beside_one_that_may_move_is_left_alone() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x2gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-1]
    admit one: c0[0-1]
    admit mini: c0[2-3]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    one runs
    mini runs
    two runs
    ");
}

#[test]
fn pool_that_releases_only_empty_nodes_moves_no_gang() {
    assert_snapshot!(check("
        pool p : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    ");
}

#[test]
fn no_gang_is_moved_where_the_others_have_no_room() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x4gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x4gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-3]
    admit one: c0[0-3]
    admit mini: c0[4-7]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    ");
}

#[test]
fn no_gang_is_moved_off_a_node_with_other_workloads() {
    assert_snapshot!(check("
        pool p consolidate=underused : zone=a price=10
        gang one 1x5gpu for=20h
        plan
        ready c0
        plan
        gang mini 1..2x2gpu for=20h moves=0s
        gang two 1x5gpu for=20h
        plan
        ready c1
        plan
        started one
        started mini
        started two
        ready c0 others=yes
        end one
        plan
    "), @"
    order o0 for one: 1 x p/gpu8@a by 15m: c0[0-4]
    admit one: c0[0-4]
    admit mini: c0[5-6]
    order o1 for two: 1 x p/gpu8@a by 15m: c1[0-4]
    one runs
    admit two: c1[0-4]
    one runs
    mini runs
    mini runs
    two runs
    ");
}
