//! A gang at which the host panics is left out, and all others are served as if it were not there.

use muster_core::gang::Phase;

use crate::recover::injected_faults::Fault;
use crate::recover::panic::{Panicked, Unknown};
use crate::recover::quarantine::Quarantine;
use crate::run::Config;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, node};

fn faults(of: &[&str]) -> Config {
    let faults = of.iter().map(|fault| fault.parse::<Fault>().expect("a fault"));
    Config { faults: faults.collect(), ..Config::default() }
}

/// Shows a host a node for each pod, all pods, and has it decide. After a panic another begins, without what is left out.
/// How many panics that took.
fn served(config: &Config, pods: &[&str]) -> (HostFixture, u32) {
    let (mut quarantine, mut panics) = (Quarantine::default(), 0);
    loop {
        let mut stage = HostFixture::with(config);
        stage.host.quarantine = quarantine;
        for at in 0..pods.len() {
            stage.show(node(&format!("n{at}")), false);
        }
        pods.iter().for_each(|pod| stage.show(alone(pod), false));
        match stage.host.survive(|host| (0..20).for_each(|_| host.turn())) {
            Ok(()) => return (stage, panics),
            Err(Panicked(found)) => found.expect("something to leave out"),
        }
        panics += 1;
        assert!(panics < 50, "it goes on for ever");
        quarantine = std::mem::take(&mut stage.host.quarantine);
    }
}

fn admitted(stage: &HostFixture, pods: &[&str]) -> Vec<String> {
    let name = |pod: &&str| format!("team/{pod}.pod");
    let is_in = |name: &String| matches!(stage.phase(name), Some(Phase::Admitted { .. }));
    pods.iter().map(name).filter(is_in).collect()
}

const PODS: [&str; 5] = ["a", "b", "c", "d", "e"];

#[tokio::test]
async fn gang_that_panics_when_reconciled_is_left_out_alone() {
    let (stage, panics) = served(&faults(&["panic:team/c.pod"]), &PODS);
    assert_eq!(panics, 1);
    assert_eq!(admitted(&stage, &PODS), ["team/a.pod", "team/b.pod", "team/d.pod", "team/e.pod"]);
    let group = stage.host.gangs.get("team/c.pod").expect("it is known");
    let (why, _) = group.blocked.as_ref().expect("it is told");
    assert!(why.starts_with("left out for 60 s: handling it caused an internal error"), "{why}");
}

#[tokio::test]
async fn gangs_that_make_the_planner_panic_are_left_out_alone() {
    let (stage, panics) = served(&faults(&["plan:team/b.pod", "plan:team/e.pod"]), &PODS);
    assert!(panics <= 8, "{panics}");
    assert_eq!(admitted(&stage, &PODS), ["team/a.pod", "team/c.pod", "team/d.pod"]);
}

#[tokio::test]
async fn panic_without_a_subject_ends_the_process() {
    let mut stage = HostFixture::new();
    let Err(Panicked(Err(Unknown(why)))) = stage.host.survive(|_| panic!("no subject")) else {
        panic!("something was blamed");
    };
    assert_eq!(why, "no subject");
}
