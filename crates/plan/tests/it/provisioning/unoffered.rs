//! Gangs that lack nodes which no pool offers: another autoscaler may bring them, so it must be told of those gangs
//! and of no others.

use muster_plan::plan;

use crate::dsl::Bench;

/// The gangs of a case that lack nodes which no pool offers.
fn lacks(case: &str) -> Vec<String> {
    let mut bench = Bench::new();
    case.lines().for_each(|line| bench.line(line));
    let plan = plan(&bench.world, bench.now, &bench.policy);
    let lacks = plan.verdicts.iter().filter(|(_, verdict)| verdict.lacks_unoffered_nodes());
    lacks.map(|(id, _)| bench.world.gang(*id).expect("it waits").spec.name.to_string()).collect()
}

#[test]
fn without_pools_every_gang_that_does_not_fit_is_unoffered() {
    assert_eq!(lacks("node a1 gpus=8 \n gang one 1x8gpu \n gang two 1x8gpu"), ["two"]);
    // However empty the cluster is, or if there is none.
    assert_eq!(lacks("node a1 gpus=8 \n gang wide 2x8gpu \n gang big 1x9gpu"), ["wide", "big"]);
    assert_eq!(lacks("gang one 1x8gpu"), ["one"]);
}

#[test]
fn gang_that_waits_under_a_limit_lacks_no_nodes() {
    let queue = "node a1 gpus=8 \n queue team gpu=8 \n gang one 1x8gpu queue=team \n plan \n";
    assert!(lacks(&format!("{queue} gang two 1x8gpu queue=team")).is_empty());
    assert!(lacks(&format!("{queue} gang big 1x16gpu queue=team")).is_empty());
    // Nor does a gang behind it, although it does not fit either.
    let behind = "gang two 1x4gpu queue=team \n gang wide 1x4gpu/500cpu queue=team";
    assert!(lacks(&format!("{queue} {behind}")).is_empty());
}

#[test]
fn pool_that_offers_other_nodes_does_not_count() {
    let pool = "pool p : zone=a type=cpu gpus=0 price=1 \n";
    assert_eq!(lacks(&format!("{pool} gang one 1x8gpu")), ["one"]);
    assert_eq!(lacks(&format!("{pool} node a1 gpus=8 \n gang two 2x8gpu")), ["two"]);
    assert!(lacks(&format!("{pool} gang prep 1x4cpu")).is_empty());
}

#[test]
fn a_pool_that_is_at_its_limit_could_bring_them() {
    let pool = "pool p nodes=1 : zone=a price=10 \n gang one 1x8gpu \n plan \n ready c0 \n plan \n";
    assert!(lacks(&format!("{pool} gang two 1x8gpu")).is_empty());
    assert!(lacks(&format!("{pool} gang three 3x8gpu")).is_empty());
    assert!(lacks("pool p budget=1 : zone=a price=10 \n gang one 1x8gpu").is_empty());
}

#[test]
fn pool_that_lists_nothing_any_more_does_not_count() {
    let gone = "pool p : zone=a price=10 max=0";
    let was = "pool p : zone=a price=10 \n gang one 1x8gpu \n plan \n ready c0 \n plan \n";
    assert!(lacks(&format!("{was} gang two 3x8gpu")).is_empty());
    assert_eq!(lacks(&format!("{was} {gone} \n gang two 3x8gpu")), ["two"]);
    assert_eq!(lacks(&format!("{was} {gone} \n gang two 1x8gpu")), ["two"]);
}

#[test]
fn gang_that_waits_rather_than_preempt_is_unoffered_too() {
    let busy = "policy fifo urgency=1 \n node a1 gpus=8 \n gang low 1x8gpu preemptible for=10h";
    let late = "plan \n started low \n +9h \n gang high 1x8gpu prio=1 for=1h";
    assert_eq!(lacks(&format!("{busy} \n {late}")), ["high"]);
}
