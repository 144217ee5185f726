//! Absurd values in one queue do not keep another from its guarantee, nor go before gangs that are due.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn absurd_pause_cost_does_not_prevent_reclaim() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=8
        queue borrower
        gang wide 1..2x8gpu queue=borrower for=10h resize=10w preemptible
        plan
        started wide
        +1h
        gang mine 1x8gpu queue=lender for=1h
        plan
        resized wide
        plan
    "), @"
    admit wide: a1[0-7] a2[0-7]
    -- 1h
    order o0 for mine:  by 1h2m after 1 of wide: a2[0-7]
    resize wide from 2 to 1: a1[0-7]
    wide runs
    -- 1h
    admit mine: a2[0-7]
    wide runs
    ");
}

#[test]
fn absurd_restart_and_min_runtime_do_not_prevent_reclaim() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue lender sure=8
        queue borrower
        gang stuck 1x8gpu queue=borrower for=520w minrun=520w restart=520w preemptible cost=1000000000
        plan
        started stuck
        +1m
        gang mine 1x8gpu queue=lender for=1h
        plan wake
        +10m
        plan
    "), @"
    admit stuck: a1[0-7]
    -- 1m
    stuck runs
    mine waits #1: r0 fits 0 of 1, provisioning off
    wake at 10m
    -- 11m
    order o0 for mine:  by 13m after all 1 of stuck: a1[0-7]
    stop stuck: reclaimed by mine
    stuck is stopping
    ");
}

/// Moving `wide` costs less than reclaiming from `wide` and `x`; a right to reclaim stays one when moving is cheaper.
#[test]
fn absurd_restart_of_a_movable_gang_does_not_prevent_reclaim() {
    assert_snapshot!(check("
        policy muster
        node a[1..5] gpus=8
        queue lender sure=16 reclaim=10m
        queue firm sure=6
        queue borrower
        gang x 1x8gpu queue=borrower for=20h if:hostname=a1 preemptible restart=100w
        gang b1 1x3gpu queue=firm for=20h if:hostname=a4
        gang b2 1x3gpu queue=firm for=20h if:hostname=a5
        gang h1 1x5gpu queue=borrower for=9m if:hostname=a4 preemptible
        gang h2 1x5gpu queue=borrower for=9m if:hostname=a5 preemptible
        plan
        gang wide 2x5gpu queue=borrower for=20m preemptible save=told restart=400w
        plan
        started x
        started b1
        started b2
        started h1
        started h2
        started wide
        +9m
        end h1
        end h2
        gang mine 2x8gpu queue=lender for=1h
        plan ways
    "), @"
    admit b1: a4[0-2]
    admit b2: a5[0-2]
    admit h1: a4[3-7]
    admit h2: a5[3-7]
    admit x: a1[0-7]
    admit wide: a2[0-4] a3[0-4]
    x runs
    b1 runs
    b2 runs
    h1 runs
    h2 runs
    -- 9m
    order o0 for mine:  by 11m after all 2 of wide: a2[0-7] a3[0-7]
    stop wide: moves
    x runs
    b1 runs
    b2 runs
    wide is stopping
      mine Wait in 11m for 2.93: 0 others lose 0s
    * mine Move in 0s for 672000.00: 1 others lose 28000d
    ");
}

/// `late` starts beside `mine` that waits, and declares that it must run for years.
#[test]
fn borrower_that_starts_while_a_lender_waits_does_not_make_it_wait_anew() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        queue lender sure=16 reclaim=10m
        queue borrower
        gang short 1x8gpu queue=borrower for=13m minrun=520w preemptible
        plan
        started short
        +4m
        gang stuck 1x8gpu queue=borrower for=3h minrun=520w preemptible
        plan
        started stuck
        +1m
        gang mine 2x8gpu queue=lender for=1h
        gang late 1x8gpu queue=borrower for=1h minrun=520w preemptible
        plan
        +8m
        end short
        plan wake
        started late
        +2m
        plan wake
    "), @"
    admit short: a1[0-7]
    -- 4m
    admit stuck: a2[0-7]
    short runs
    -- 5m
    mine starts by 3h4m
    short runs
    stuck runs
    mine waits #1: r0 fits 0 of 2, provisioning off
    late waits #2: r0 fits 0 of 1, provisioning off
    -- 13m
    admit late: a1[0-7]
    mine starts by 3h4m
    stuck runs
    mine waits #1: r0 fits 1 of 2, provisioning off
    wake at 14m
    -- 15m
    order o0 for mine:  by 17m after all 1 of stuck, all 1 of late: a1[0-7] a2[0-7]
    stop stuck: reclaimed by mine
    stop late: reclaimed by mine
    stuck is stopping
    late is stopping
    wake at 17m
    ");
}

#[test]
fn near_deadline_goes_behind_gangs_that_were_due_before() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        gang runs 1x8gpu for=100h
        plan
        started runs
        gang patient 1x8gpu for=1h
        +99h
        gang pushy 1x8gpu for=1s deadline=100h
        plan
        end runs
        plan
    "), @"
    admit runs: a1[0-7]
    -- 4d3h
    patient starts by 4d4h
    pushy starts by 4d5h
    runs runs
    patient waits #1: r0 fits 0 of 1, provisioning off
    pushy waits #2: r0 fits 0 of 1, provisioning off, late by 1h1s (with 1 more like a1; at priority 1 instead of [runs])
    -- 4d3h
    admit patient: a1[0-7]
    pushy waits #1: r0 fits 0 of 1, provisioning off, late by 1s (with 1 more like a1; at priority 1 instead of [])
    ");
}

#[test]
fn absurd_duration_makes_no_other_gang_due() {
    assert_snapshot!(check("
        policy muster
        node a[1..2] gpus=8
        gang liar 1x8gpu for=520w
        gang runs 1x8gpu for=2h
        plan
        started liar
        started runs
        gang early 1x8gpu for=2h
        +5m
        gang lazy 1x8gpu for=2h deadline=50w
        +5m
        end runs
        plan
    "), @"
    admit runs: a1[0-7]
    admit liar: a2[0-7]
    -- 10m
    admit early: a1[0-7]
    liar runs
    lazy waits #1: r0 fits 0 of 1, provisioning off
    ");
}
