//! While victims leave, their seats are held; events meanwhile are settled, and the victims start again later.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn with_grace_the_order_waits_as_long_as_that_and_a_little_more() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=5m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan ways
        +4m
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
      high Wait in 9h for 720.00: 0 others lose 0s
    * high Preempt in 5m for 14.67: 1 others lose 8h
    -- 1h4m
    low is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    -- 1h4m
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn the_slowest_to_leave_decides_when_it_starts() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang slow 1x8gpu preemptible for=10h grace=5m
        gang quick 1x8gpu preemptible for=10h grace=10s
        plan
        started slow
        started quick
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan ways
        +10s
        stopped quick
        plan
        +4m
        stopped slow
        plan
    "), @"
    admit slow: a1[0-7]
    admit quick: a2[0-7]
    -- 1h
    order o0 for high:  by 1h7m after all 1 of slow, all 1 of quick: a1[0-7] a2[0-7]
    stop slow: preempted by high
    stop quick: preempted by high
    slow is stopping
    quick is stopping
      high Wait in 9h for 1440.00: 0 others lose 0s
    * high Preempt in 5m for 29.33: 2 others lose 16h
    -- 1h10s
    slow is stopping
    quick waits #1: r0 fits 0 of 1, provisioning off
    high assembles o0: 0 of 0, 1 leaving by 1h7m
    -- 1h4m10s
    admit high: a1[0-7] a2[0-7]
    slow waits #1: r0 fits 0 of 1, provisioning off
    quick waits #2: r0 fits 0 of 1, provisioning off, behind slow
    ");
}

#[test]
fn no_gang_takes_seats_that_victims_are_leaving() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=1m
        plan
        started low[1..2]
        +1h
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped low1
        gang sneak 1x8gpu prio=99 for=1m
        plan
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low1, all 1 of low2: a1[0-7] a2[0-7]
    stop low1: preempted by high
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    -- 1h
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind sneak
    low2 is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h3m
    sneak waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7] a2[0-7]
    low1 waits #2: r0 fits 0 of 1, provisioning off, behind sneak
    low2 waits #3: r0 fits 0 of 1, provisioning off, behind sneak
    sneak waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn one_that_ends_by_itself_while_it_is_leaving_has_left() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        end low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    admit high: a1[0-7]
    ");
}

#[test]
fn when_the_preemptor_is_cancelled_its_victims_start_again() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        cancel high
        plan
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h
    roll back o0: cancelled
    low is stopping
    -- 1h
    admit low: a1[0-7]
    ");
}

#[test]
fn node_lost_meanwhile_rolls_back_and_other_victims_are_found() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=1m
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        lost a1
        plan
        plan
        stopped low1
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 1h
    roll back o0: a1 lost
    low1 is stopping
    low2 runs
    -- 1h
    order o1 for high:  by 1h3m after all 1 of low2: a2[0-7]
    stop low2: preempted by high
    low1 is stopping
    low2 is stopping
    -- 1h
    admit high: a2[0-7]
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 waits #2: r0 fits 0 of 1, provisioning off, behind low1
    ");
}

#[test]
fn order_times_out_on_a_slow_victim_and_starts_when_it_has_left() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=10h grace=1m
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        +3m
        plan
        plan
        +10m
        stopped low
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h3m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    -- 1h3m
    roll back o0: too late
    low is stopping
    -- 1h3m
    low is stopping
    high waits #1: r0 fits 0 of 1, provisioning off
    -- 1h13m
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn two_that_come_at_once_take_the_seats_of_different_gangs() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang low[1..3] 1x8gpu preemptible for=10h
        plan
        started low[1..3]
        +1h
        gang high[1..2] 1x8gpu prio=1 for=1h
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    admit low3: a3[0-7]
    -- 1h
    order o0 for high1:  by 1h2m after all 1 of low1: a1[0-7]
    stop low1: preempted by high1
    order o1 for high2:  by 1h2m after all 1 of low2: a2[0-7]
    stop low2: preempted by high2
    low1 is stopping
    low2 is stopping
    low3 runs
    ");
}

#[test]
fn victim_of_one_gang_is_not_chosen_for_another() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang low[1..2] 1x8gpu preemptible for=10h grace=2m
        plan
        started low[1..2]
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        gang higher 1x8gpu prio=2 for=1h
        plan
        stopped low1
        stopped low2
        plan
    "), @"
    admit low1: a1[0-7]
    admit low2: a2[0-7]
    -- 1h
    order o0 for high:  by 1h4m after all 1 of low1: a1[0-7]
    stop low1: preempted by high
    low1 is stopping
    low2 runs
    -- 1h
    order o1 for higher:  by 1h4m after all 1 of low2: a2[0-7]
    stop low2: preempted by higher
    low1 is stopping
    low2 is stopping
    high assembles o0: 0 of 0, 1 leaving by 1h4m
    -- 1h
    admit high: a1[0-7]
    admit higher: a2[0-7]
    low1 waits #1: r0 fits 0 of 1, provisioning off
    low2 waits #2: r0 fits 0 of 1, provisioning off, behind low1
    ");
}

#[test]
fn preempted_gang_goes_before_younger_gangs_of_its_priority() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang low 1x8gpu preemptible for=2h
        plan
        started low
        +1h
        gang high 1x8gpu prio=1 for=1h
        gang young 1x8gpu for=1h
        plan
        stopped low
        plan
        started high
        +1h
        end high
        plan
    "), @"
    admit low: a1[0-7]
    -- 1h
    order o0 for high:  by 1h2m after all 1 of low: a1[0-7]
    stop low: preempted by high
    low is stopping
    young waits #1: r0 fits 0 of 1, provisioning off
    -- 1h
    admit high: a1[0-7]
    low waits #1: r0 fits 0 of 1, provisioning off
    young waits #2: r0 fits 0 of 1, provisioning off, behind low
    -- 2h
    admit low: a1[0-7]
    young waits #1: r0 fits 0 of 1, provisioning off
    ");
}

#[test]
fn saved_work_is_kept_and_unsaved_work_is_lost() {
    assert_snapshot!(check("
        node a[1..2] gpus=8
        gang saves 1x8gpu preemptible for=10h save=25m restart=2m
        gang forgets 1x8gpu preemptible for=10h
        plan
        started saves
        started forgets
        +1h
        look saves
        look forgets
        gang high 2x8gpu prio=1 for=1h
        plan
        stopped saves
        stopped forgets
        look saves
        look forgets
    "), @"
    admit saves: a1[0-7]
    admit forgets: a2[0-7]
    saves has 1 members, 1h done, 9h left, 0 restarts, 0 evictions
    forgets has 1 members, 1h done, 9h left, 0 restarts, 0 evictions
    -- 1h
    order o0 for high:  by 1h2m after all 1 of saves, all 1 of forgets: a1[0-7] a2[0-7]
    stop saves: preempted by high
    stop forgets: preempted by high
    saves is stopping
    forgets is stopping
    saves has 0 members, 50m done, 9h10m left, 1 restarts, 1 evictions
    forgets has 0 members, 0s done, 10h left, 1 restarts, 1 evictions
    ");
}

#[test]
fn work_in_the_grace_period_is_saved_if_it_checkpoints_on_signal() {
    assert_snapshot!(check("
        node a1 gpus=8
        gang saves 1x8gpu preemptible for=10h save=told grace=2m
        plan
        started saves
        +1h
        gang high 1x8gpu prio=1 for=1h
        plan
        +2m
        stopped saves
        look saves
    "), @"
    admit saves: a1[0-7]
    -- 1h
    order o0 for high:  by 1h4m after all 1 of saves: a1[0-7]
    stop saves: preempted by high
    saves is stopping
    saves has 0 members, 1h2m done, 8h58m left, 1 restarts, 1 evictions
    ");
}
