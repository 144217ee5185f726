//! A fixture of one-GPU pools: all facts as short lines, with promises checked at every step.

use std::cell::RefCell;
use std::rc::Rc;

use muster_core::gang::GangSpec;
use muster_core::node::Node;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_core::topology::Levels;
use muster_core::{Fact, World};
use muster_plan::Policy;
use muster_sim::cloud::CloudModel;
use muster_sim::{Setup, Sim, SimOptions};
use muster_testkit::build;

use crate::two_zones::job;

/// Nodes of one GPU.
pub(crate) fn one_gpu(zone: &str, price: f64) -> OfferingSpec {
    OfferingSpec { instance_type: "gpu1".into(), gpus: 1, ..build::offering(zone, price) }
}

/// A pool of one-GPU nodes in zones `a` and, a little dearer, `b`.
pub(crate) fn pool() -> PoolSpec {
    build::pool("gpu", vec![one_gpu("a", 2.0), one_gpu("b", 2.2)])
}

pub(crate) fn setup(pool: PoolSpec, model: CloudModel) -> Setup {
    Setup {
        levels: Levels::default(),
        queues: vec![QueueSpec::open("default")],
        pools: vec![(pool, model)],
        ..Setup::default()
    }
}

/// A gang of members with one GPU each, all in one zone.
pub(crate) fn in_one_zone(name: &str, members: u32) -> GangSpec {
    build::within(build::gang(name, members, 1), "zone")
}

/// The same setup with a job at the very beginning, since a simulation starts with its first event.
pub(crate) fn awake(mut stage: Setup) -> Setup {
    stage.nodes.push(build::node("host", 0, &[]));
    stage.jobs.push(job(build::gang("hello", 1, 0), 0, 1));
    stage
}

/// The facts, a line for each kind at each time, and the simulation at its end.
pub(crate) struct FactLog {
    pub(crate) lines: Vec<String>,
    pub(crate) sim: Sim,
}

impl FactLog {
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
    /// The number of lines with a text.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(what)).count()
    }
    pub(crate) fn waited(&self, job: usize) -> Option<u64> {
        Some(self.sim.accounts().outcomes()[job].wait()?.0 / 1_000)
    }
    /// Nodes that are ready and unused.
    pub(crate) fn idle(&self) -> usize {
        let world = self.sim.world();
        let free = |node: &Node| node.claim.is_some() && node.usable && !node.releasing;
        world.nodes().filter(|(_, node)| free(node) && node.seats == 0).count()
    }
}

/// Runs for some hours, whether or not there are jobs left.
pub(crate) fn play(setup: Setup, policy: Policy, hours: u64) -> FactLog {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let mut sim = Sim::new(setup, policy, options).expect("a well-formed stage");
    let log: Rc<RefCell<Vec<(i64, String, u32)>>> = Rc::default();
    let lines = log.clone();
    sim.watch(Box::new(move |now, world, fact| {
        let Some(what) = tell(world, fact) else { return };
        let at = now.0 / 1_000;
        let mut lines = lines.borrow_mut();
        match lines.iter_mut().rev().find(|(then, same, _)| *then == at && *same == what) {
            Some((.., times)) => *times += 1,
            None => lines.push((at, what, 1)),
        }
    }));
    let until = Time::ZERO + Span::hours(hours);
    while sim.next_at().is_some_and(|at| at <= until) {
        sim.step();
        assert_eq!(sim.violations(), [], "promises are kept");
    }
    drop(sim.unwatch());
    let log = Rc::try_unwrap(log).expect("the watcher is gone").into_inner();
    let line = |(at, what, times): (i64, String, u32)| match times {
        1 => format!("{at:>5} {what}"),
        _ => format!("{at:>5} {what} x{times}"),
    };
    FactLog { lines: log.into_iter().map(line).collect(), sim }
}

fn tell(world: &World, fact: &Fact) -> Option<String> {
    let name = |gang| world.gang(gang).map_or("?".into(), |gang| gang.spec.name.clone());
    Some(match fact {
        Fact::OrderPlaced { gang, claims, holds, .. } => {
            let mut zones: Vec<&str> =
                claims.iter().map(|(_, at)| &*world.offering(*at).spec.zone).collect();
            zones.sort_unstable();
            zones.dedup();
            let (name, zones) = (name(*gang), zones.join("+"));
            format!("{name} orders {} in {zones}, holds {}", claims.len(), holds.len())
        }
        Fact::OrderToppedUp { offering, .. } => {
            format!("topped up in {}", world.offering(*offering).spec.zone)
        }
        Fact::OrderRolledBack { gang, reason, .. } => {
            let why = format!("{reason:?}");
            format!("{} rolled back: {}", name(*gang), why.split('(').next().unwrap_or_default())
        }
        Fact::ClaimRetried { .. } => "asked again".to_owned(),
        Fact::ClaimParked { .. } => "told to stop".to_owned(),
        Fact::ClaimWoken { .. } => "woken".to_owned(),
        Fact::ClaimReleased { .. } => "released".to_owned(),
        Fact::GangStarted { gang } if &*name(*gang) != "hello" => {
            let seats = world.gang(*gang).map_or(0, |gang| gang.seats.len());
            format!("{} starts with {seats}", name(*gang))
        }
        Fact::GangEnded { .. } => "ends".to_owned(),
        _ => return None,
    })
}
