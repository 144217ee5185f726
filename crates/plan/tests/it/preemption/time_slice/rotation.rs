//! Which gang gets the next slice, and that all get theirs.

use insta::assert_snapshot;

use crate::dsl::check;

/// Whatever it loses: otherwise the gang with the long restart would never be rotated.
#[test]
fn gang_that_ran_longest_past_its_slice_is_rotated() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=2m
        plan
        started one
        +30m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started two
        gang firm 1x8gpu queue=turns prio=-1 for=10h
        +1h
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
    "), @"
    admit one: a1[0-7]
    -- 30m
    admit two: a2[0-7]
    one runs
    -- 1h30m
    order o0 for three:  by 1h32m after all 1 of one: a1[0-7]
    stop one: three's turn
    one is stopping
    two runs
    firm waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn rotated_gang_lets_others_have_a_slice_first() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        started two
        +1h
        plan
        stopped one
        plan
        started three
        plan wake
    "), @"
    admit one: a1[0-7]
    admit two: a2[0-7]
    three waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for three:  by 1h2m after all 1 of one: a1[0-7]
    stop one: three's turn
    one is stopping
    two runs
    -- 1h
    admit three: a1[0-7]
    one waits #1: r0 fits 0 of 1, provisioning off
    two runs
    -- 1h
    one waits #1: r0 fits 0 of 1, provisioning off
    two runs
    three runs
    wake at 2h
    ");
}

#[test]
fn long_restart_does_not_prevent_rotation() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=2m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        run 7h
        look one
        look two
        look three
    "), @"
    -- 10m
    admit one: a1[0-7]
    admit two: a2[0-7]
    -- 1h10m
    order o0 for three:  by 1h12m after all 1 of one: a1[0-7]
    stop one: three's turn
    admit three: a1[0-7]
    -- 2h10m
    order o1 for one:  by 2h12m after all 1 of two: a2[0-7]
    stop two: one's turn
    admit one: a2[0-7]
    -- 3h10m
    order o2 for two:  by 3h12m after all 1 of three: a1[0-7]
    stop three: two's turn
    admit two: a1[0-7]
    -- 4h10m
    order o3 for three:  by 4h12m after all 1 of one: a2[0-7]
    stop one: three's turn
    admit three: a2[0-7]
    -- 5h10m
    order o4 for one:  by 5h12m after all 1 of two: a1[0-7]
    stop two: one's turn
    admit one: a1[0-7]
    -- 6h10m
    order o5 for two:  by 6h12m after all 1 of three: a2[0-7]
    stop three: two's turn
    admit two: a2[0-7]
    one has 1 members, 4h46m done, 5h14m left, 2 restarts, 2 evictions
    two has 1 members, 4h48m done, 5h12m left, 2 restarts, 2 evictions
    three has 0 members, 3h59m done, 6h1m left, 2 restarts, 2 evictions
    -- 7h
    one runs
    two runs
    three waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_wide_gang_has_its_turn_when_enough_slices_are_over() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +30m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started two
        gang wide 2x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        +30m
        plan wake
        +30m
        plan
        stopped one
        plan
        stopped two
        plan
    "), @"
    admit one: a1[0-7]
    -- 30m
    admit two: a2[0-7]
    one runs
    -- 30m
    one runs
    two runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    -- 1h
    one runs
    two runs
    wide waits #1: r0 fits 0 of 2, provisioning off
    wake at 1h30m
    -- 1h30m
    order o0 for wide:  by 1h32m after all 1 of one, all 1 of two: a1[0-7] a2[0-7]
    stop one: wide's turn
    stop two: wide's turn
    one is stopping
    two is stopping
    -- 1h30m
    one waits #1: r0 fits 0 of 1, provisioning off
    two is stopping
    wide assembles o0: 0 of 0, 1 leaving by 1h32m
    -- 1h30m
    admit wide: a1[0-7] a2[0-7]
    one waits #1: r0 fits 0 of 1, provisioning off
    two waits #2: r0 fits 0 of 1, provisioning off, behind one
    ");
}

#[test]
fn a_wide_gang_is_rotated_whole_for_a_small_one() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang wide 2x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang small 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started wide
        +1h
        plan
        stopped wide
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7]
    small waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    order o0 for small:  by 1h2m after all 2 of wide: a1[0-7]
    stop wide: small's turn
    wide is stopping
    -- 1h
    admit small: a1[0-7]
    wide waits #1: r0 fits 1 of 2, provisioning off
    ");
}

#[test]
fn rotated_gang_waits_behind_those_without_a_slice_yet() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        plan
        started one
        +1h
        plan
        stopped one
        plan
    "), @"
    admit one: a1[0-7]
    two waits #1: r0 fits 0 of 1, provisioning off
    three waits #2: r0 fits 0 of 1, provisioning off, behind two
    -- 1h
    order o0 for two:  by 1h2m after all 1 of one: a1[0-7]
    stop one: two's turn
    one is stopping
    three waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit two: a1[0-7]
    one waits #2: r0 fits 0 of 1, provisioning off, behind three
    three waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn three_take_turns_in_order_over_several_slices() {
    assert_snapshot!(check("
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        run 9h
        look one
        look two
        look three
    "), @"
    -- 10m
    admit one: a1[0-7]
    -- 1h10m
    order o0 for two:  by 1h12m after all 1 of one: a1[0-7]
    stop one: two's turn
    admit two: a1[0-7]
    -- 2h10m
    order o1 for three:  by 2h12m after all 1 of two: a1[0-7]
    stop two: three's turn
    admit three: a1[0-7]
    -- 3h10m
    order o2 for one:  by 3h12m after all 1 of three: a1[0-7]
    stop three: one's turn
    admit one: a1[0-7]
    -- 4h10m
    order o3 for two:  by 4h12m after all 1 of one: a1[0-7]
    stop one: two's turn
    admit two: a1[0-7]
    -- 5h10m
    order o4 for three:  by 5h12m after all 1 of two: a1[0-7]
    stop two: three's turn
    admit three: a1[0-7]
    -- 6h10m
    order o5 for one:  by 6h12m after all 1 of three: a1[0-7]
    stop three: one's turn
    admit one: a1[0-7]
    -- 7h10m
    order o6 for two:  by 7h12m after all 1 of one: a1[0-7]
    stop one: two's turn
    admit two: a1[0-7]
    -- 8h10m
    order o7 for three:  by 8h12m after all 1 of two: a1[0-7]
    stop two: three's turn
    admit three: a1[0-7]
    one has 0 members, 2h58m done, 7h2m left, 3 restarts, 3 evictions
    two has 0 members, 2h58m done, 7h2m left, 3 restarts, 3 evictions
    three has 1 members, 2h48m done, 7h12m left, 2 restarts, 2 evictions
    -- 9h
    one waits #1: r0 fits 0 of 1, provisioning off
    two waits #2: r0 fits 0 of 1, provisioning off, behind one
    three runs
    ");
}

#[test]
fn three_take_turns_on_two_nodes() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        run 7h
        look one
        look two
        look three
    "), @"
    -- 10m
    admit one: a1[0-7]
    admit two: a2[0-7]
    -- 1h10m
    order o0 for three:  by 1h12m after all 1 of one: a1[0-7]
    stop one: three's turn
    admit three: a1[0-7]
    -- 2h10m
    order o1 for one:  by 2h12m after all 1 of two: a2[0-7]
    stop two: one's turn
    admit one: a2[0-7]
    -- 3h10m
    order o2 for two:  by 3h12m after all 1 of three: a1[0-7]
    stop three: two's turn
    admit two: a1[0-7]
    -- 4h10m
    order o3 for three:  by 4h12m after all 1 of one: a2[0-7]
    stop one: three's turn
    admit three: a2[0-7]
    -- 5h10m
    order o4 for one:  by 5h12m after all 1 of two: a1[0-7]
    stop two: one's turn
    admit one: a1[0-7]
    -- 6h10m
    order o5 for two:  by 6h12m after all 1 of three: a2[0-7]
    stop three: two's turn
    admit two: a2[0-7]
    one has 1 members, 4h48m done, 5h12m left, 2 restarts, 2 evictions
    two has 1 members, 4h48m done, 5h12m left, 2 restarts, 2 evictions
    three has 0 members, 3h59m done, 6h1m left, 2 restarts, 2 evictions
    -- 7h
    one runs
    two runs
    three waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn a_wide_one_and_two_small_ones_take_turns() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        queue turns slice=1h
        gang wide 2x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        run 7h
        look wide
        look one
        look two
    "), @"
    -- 10m
    admit wide: a1[0-7] a2[0-7]
    -- 1h10m
    order o0 for one:  by 1h12m after all 2 of wide: a1[0-7]
    stop wide: one's turn
    admit one: a1[0-7]
    admit two: a2[0-7]
    -- 2h10m
    order o1 for wide:  by 2h12m after all 1 of one, all 1 of two: a1[0-7] a2[0-7]
    stop one: wide's turn
    stop two: wide's turn
    admit wide: a1[0-7] a2[0-7]
    -- 3h10m
    order o2 for one:  by 3h12m after all 2 of wide: a1[0-7]
    stop wide: one's turn
    admit one: a1[0-7]
    admit two: a2[0-7]
    -- 4h10m
    order o3 for wide:  by 4h12m after all 1 of one, all 1 of two: a1[0-7] a2[0-7]
    stop one: wide's turn
    stop two: wide's turn
    admit wide: a1[0-7] a2[0-7]
    -- 5h10m
    order o4 for one:  by 5h12m after all 2 of wide: a1[0-7]
    stop wide: one's turn
    admit one: a1[0-7]
    admit two: a2[0-7]
    -- 6h10m
    order o5 for wide:  by 6h12m after all 1 of one, all 1 of two: a1[0-7] a2[0-7]
    stop one: wide's turn
    stop two: wide's turn
    admit wide: a1[0-7] a2[0-7]
    wide has 2 members, 3h47m done, 6h13m left, 3 restarts, 3 evictions
    one has 0 members, 2h58m done, 7h2m left, 3 restarts, 3 evictions
    two has 0 members, 2h58m done, 7h2m left, 3 restarts, 3 evictions
    -- 7h
    wide runs
    one waits #1: r0 fits 0 of 1, provisioning off
    two waits #2: r0 fits 0 of 1, provisioning off, behind one
    ");
}

#[test]
fn under_the_default_order_they_take_turns_as_well() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue turns slice=1h
        gang one 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang two 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        gang three 1x8gpu queue=turns preemptible for=10h save=told restart=1m
        run 7h
    "), @"
    -- 10m
    admit one: a1[0-7]
    -- 1h10m
    order o0 for two:  by 1h12m after all 1 of one: a1[0-7]
    stop one: two's turn
    admit two: a1[0-7]
    -- 2h10m
    order o1 for three:  by 2h12m after all 1 of two: a1[0-7]
    stop two: three's turn
    admit three: a1[0-7]
    -- 3h10m
    order o2 for one:  by 3h12m after all 1 of three: a1[0-7]
    stop three: one's turn
    admit one: a1[0-7]
    -- 4h10m
    order o3 for two:  by 4h12m after all 1 of one: a1[0-7]
    stop one: two's turn
    admit two: a1[0-7]
    -- 5h10m
    order o4 for three:  by 5h12m after all 1 of two: a1[0-7]
    stop two: three's turn
    admit three: a1[0-7]
    -- 6h10m
    order o5 for one:  by 6h12m after all 1 of three: a1[0-7]
    stop three: one's turn
    admit one: a1[0-7]
    -- 7h
    one runs
    two waits #1: r0 fits 0 of 1, provisioning off
    three waits #2: r0 fits 0 of 1, provisioning off
    ");
}
