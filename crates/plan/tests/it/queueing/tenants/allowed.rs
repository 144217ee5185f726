//! A declared value above what the queue allows is a verdict that names both, until the queue or the gang is changed.

use insta::assert_snapshot;

use crate::dsl::check;

#[test]
fn namespaces_that_a_queue_does_not_list_do_not_start_in_it() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue team ns=red,blue
        queue below parent=team
        gang red/in 1x8gpu queue=team
        gang green/out 1x8gpu queue=team
        gang nameless 1x8gpu queue=team
        gang green/below 1x8gpu queue=below
        plan
        queue team ns=green
        plan
    "), @"
    admit red/in: a1[0-7]
    admit green/below: a2[0-7]
    green/out is impossible: queue team does not allow Namespace
    nameless is impossible: queue team does not allow Namespace
    admit green/out: a3[0-7]
    red/in runs
    nameless is impossible: queue team does not allow Namespace
    green/below runs
    ");
}

#[test]
fn every_bound_of_a_queue_refuses_what_is_above_it_alone() {
    assert_snapshot!(check("
        node a[1..9] gpus=8
        queue team maxprio=10 maxcost=5 maxgrace=1m maxminrun=1h maxtimeout=20m firm=never
        gang fine 1x8gpu queue=team prio=10 cost=5 grace=1m minrun=1h timeout=20m preemptible
        gang loud 1x8gpu queue=team prio=11 preemptible
        gang dear 1x8gpu queue=team cost=6 preemptible
        gang slow 1x8gpu queue=team grace=2m preemptible
        gang long 1x8gpu queue=team minrun=2h preemptible
        gang late 1x8gpu queue=team timeout=21m preemptible
        gang firm 1x8gpu queue=team
    "), @"
    admit fine: a1[0-7]
    loud is impossible: queue team does not allow Priority { declared: 11, allowed: 10 }
    dear is impossible: queue team does not allow CostOfWaiting { declared: Money(6000000), allowed: Money(5000000) }
    slow is impossible: queue team does not allow Duration { field: Grace, declared: Span(120000), allowed: Span(60000) }
    long is impossible: queue team does not allow Duration { field: MinRuntime, declared: Span(7200000), allowed: Span(3600000) }
    late is impossible: queue team does not allow Duration { field: ProvisioningTimeout, declared: Span(1260000), allowed: Span(1200000) }
    firm is impossible: queue team does not allow NonPreemptible
    ");
}

#[test]
fn bounds_hold_for_the_queues_below() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue org maxprio=10 firm=never
        queue team parent=org maxprio=100
        gang loud 1x8gpu queue=team prio=11 preemptible
        gang firm 1x8gpu queue=team
        gang fine 1x8gpu queue=team prio=10 preemptible
    "), @"
    admit fine: a1[0-7]
    loud is impossible: queue org does not allow Priority { declared: 11, allowed: 10 }
    firm is impossible: queue org does not allow NonPreemptible
    ");
}

#[test]
fn declared_priority_counts_only_where_a_queue_says_so() {
    assert_snapshot!(check("
        node a[1..4] gpus=8
        queue open
        queue team maxprio=100
        gang checked 1x8gpu queue=open prio=1000
        gang declared 1x8gpu queue=open prio=1 declared
        gang lowered 1x8gpu queue=open prio=-5 declared
        gang granted 1x8gpu queue=team prio=100 declared
        gang boast 1x8gpu queue=team prio=101 declared
    "), @"
    admit checked: a1[0-7]
    admit granted: a2[0-7]
    admit lowered: a3[0-7]
    declared is impossible: queue open does not allow Priority { declared: 1, allowed: 0 }
    boast is impossible: queue team does not allow Priority { declared: 101, allowed: 100 }
    ");
}

#[test]
fn refused_gang_holds_up_no_other() {
    assert_snapshot!(check("
        policy muster
        node a1 gpus=8
        queue team maxprio=10
        gang loud 1x8gpu queue=team prio=2147483647 deadline=1s cost=1000000
        gang fine 1x8gpu queue=team
    "), @"
    admit fine: a1[0-7]
    loud is impossible: queue team does not allow Priority { declared: 2147483647, allowed: 10 }
    ");
}
