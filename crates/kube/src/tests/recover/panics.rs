//! A gang that makes the host panic is quarantined, and all others are scheduled as if it did not exist.

use muster_core::gang::Phase;

use crate::config::Config;
use crate::recover::injected_faults::Fault;
use crate::recover::panic::{Panicked, UnknownCause};
use crate::recover::quarantine::Quarantine;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{node, single_pod};

fn faults(of: &[&str]) -> Config {
    let faults = of.iter().map(|fault| fault.parse::<Fault>().expect("a fault"));
    Config { faults: faults.collect(), ..Config::default() }
}

/// Gives a host all pods and a node for each, and runs cycles. After a panic a new host starts with the same quarantine. Returns
/// the last host and the number of panics.
fn run_with_faults(config: &Config, pods: &[&str]) -> (HostFixture, u32) {
    let (mut quarantine, mut panics) = (Quarantine::default(), 0);
    loop {
        let mut fixture = HostFixture::with(config);
        fixture.host.quarantine = quarantine;
        for at in 0..pods.len() {
            fixture.show(node(&format!("n{at}")), false);
        }
        pods.iter().for_each(|pod| fixture.show(single_pod(pod), false));
        match fixture.host.catch_panic(|host| (0..20).for_each(|_| host.run_cycle())) {
            Ok(()) => return (fixture, panics),
            Err(Panicked(found)) => found.expect("something to quarantine"),
        }
        panics += 1;
        assert!(panics < 50, "the panics do not end");
        quarantine = std::mem::take(&mut fixture.host.quarantine);
    }
}

fn admitted(fixture: &HostFixture, pods: &[&str]) -> Vec<String> {
    let name = |pod: &&str| format!("team/{pod}.pod");
    let is_in = |name: &String| matches!(fixture.phase(name), Some(Phase::Admitted { .. }));
    pods.iter().map(name).filter(is_in).collect()
}

const PODS: [&str; 5] = ["a", "b", "c", "d", "e"];

#[tokio::test]
async fn only_the_gang_that_panics_when_reconciled_is_quarantined() {
    let (fixture, panics) = run_with_faults(&faults(&["panic:team/c.pod"]), &PODS);
    assert_eq!(panics, 1);
    assert_eq!(admitted(&fixture, &PODS), ["team/a.pod", "team/b.pod", "team/d.pod", "team/e.pod"]);
    let record = fixture.host.gangs.get("team/c.pod").expect("it is known");
    let (why, _) = record.blocked.as_ref().expect("it is reported");
    assert!(why.starts_with("quarantined for 60 s: handling it caused an internal error"), "{why}");
}

#[tokio::test]
async fn only_gangs_that_make_the_planner_panic_are_quarantined() {
    let (fixture, panics) =
        run_with_faults(&faults(&["plan:team/b.pod", "plan:team/e.pod"]), &PODS);
    assert!(panics <= 8, "{panics}");
    assert_eq!(admitted(&fixture, &PODS), ["team/a.pod", "team/c.pod", "team/d.pod"]);
}

#[tokio::test]
async fn panic_without_a_current_item_ends_the_process() {
    let mut fixture = HostFixture::new();
    let Err(Panicked(Err(UnknownCause(why)))) = fixture.host.catch_panic(|_| panic!("no subject"))
    else {
        panic!("something was quarantined");
    };
    assert_eq!(why, "no subject");
}
