//! Runs the scenario of a seed: with faults (safety), then without (liveness).

use std::collections::BTreeMap;

use muster_core::ahead::Consolidate;
use muster_core::id::{GangId, PoolIdx};
use muster_core::order::Claim;
use muster_core::time::{Span, Time};
use muster_core::verdict::{Blocker, Verdict};
use muster_plan::{Policy, QueueOrder};
use muster_testkit::Violation;
use muster_testkit::promises::Promise;

use crate::faults::sabotage::Sabotage;
use crate::faults::scenario::{Drawn, draw};

use crate::accounts::Disruptions;
use crate::host::{Sim, SimOptions, Step, Watcher};

/// The result of one seed.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The seed.
    pub seed: u64,
    /// Broken promises; a good run has none.
    pub violations: Vec<Violation>,
    /// Steps taken.
    pub steps: u64,
    /// Jobs in the scenario.
    pub jobs: usize,
    /// The most nodes there were at one time.
    pub nodes: usize,
    /// Orders rolled back.
    pub rollbacks: u64,
    /// Gangs that were stopped and started over.
    pub restarts: u64,
    /// Disruptions of running gangs.
    pub disruptions: Disruptions,
}

impl Verified {
    /// The result of a seed of which only tenant isolation was checked.
    fn of_tenants(seed: u64, violations: Vec<Violation>) -> Self {
        let (steps, jobs, nodes, rollbacks, restarts) = (0, 0, 0, 0, 0);
        let disruptions = Disruptions::default();
        Self { seed, violations, steps, jobs, nodes, rollbacks, restarts, disruptions }
    }
}

/// How long gangs have to end after the faults stop. Far more than any scenario's work.
const LIVENESS_LIMIT: Span = Span::hours(24 * 60);

/// Runs the scenario of one seed, with or without a planted bug and a watcher.
pub fn run_seed(seed: u64, sabotage: Option<Sabotage>, watcher: Option<Watcher>) -> Verified {
    run_seed_under(QueueOrder::Fifo, seed, sabotage, watcher)
}

/// The same under any queue order. With first come, first served, no gang may be overtaken.
pub fn run_seed_under(
    order: QueueOrder,
    seed: u64,
    sabotage: Option<Sabotage>,
    watcher: Option<Watcher>,
) -> Verified {
    if sabotage == Some(Sabotage::Against(Promise::Isolation)) {
        return Verified::of_tenants(seed, crate::faults::isolation::run(seed, sabotage));
    }
    let Drawn { setup, faults, storm_ends, infeasible } = draw(seed);
    let jobs = setup.jobs.len();
    let mut policy = Policy { order, ..Policy::default() };
    if sabotage == Some(Sabotage::Against(Promise::NoStarvation)) {
        policy.order = QueueOrder::FifoOvertake;
    }
    let options = SimOptions {
        seed,
        step: Step::Event,
        check: true,
        may_crash: true,
        sabotage,
        expect_fifo: order == QueueOrder::Fifo,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(setup, policy, options).expect("drawn worlds are well formed");
    if let Some(watcher) = watcher {
        sim.watch(watcher);
    }
    for (at, fault) in faults {
        sim.schedule(at, fault);
    }
    let mut nodes = 0;
    while sim.next_at().is_some_and(|at| at <= storm_ends)
        && sim.violations().is_empty()
        && !sim.is_over()
    {
        sim.step();
        nodes = nodes.max(sim.world().nodes().count());
    }
    sim.stop_faults();
    let until = sim.now() + LIVENESS_LIMIT;
    while sim.next_at().is_some_and(|at| at <= until)
        && sim.violations().is_empty()
        && !settled(&sim, &infeasible)
    {
        sim.step();
    }
    let mut violations = sim.violations().to_vec();
    if violations.is_empty() {
        violations.extend(left_behind(&sim, &infeasible));
    }
    if sabotage.is_none() && violations.is_empty() {
        violations.extend(crate::faults::isolation::run(seed, None));
    }
    let outcomes = sim.accounts().outcomes();
    Verified {
        seed,
        violations,
        steps: sim.steps(),
        jobs,
        nodes,
        rollbacks: sim.accounts().rollbacks,
        restarts: outcomes.iter().map(|outcome| u64::from(outcome.restarts)).sum(),
        disruptions: *sim.accounts().meter().disruptions(),
    }
}

/// Whether only infeasible gangs are left, and no purchased nodes except those that pools keep.
fn settled(sim: &Sim, infeasible: &[std::sync::Arc<str>]) -> bool {
    unwanted(sim).is_empty()
        && sim.jobs().iter().all(|job| job.submit <= sim.now())
        && sim
            .world()
            .gangs()
            .all(|(id, gang)| infeasible.contains(&gang.spec.name) || is_kept_from_lent(sim, id))
}

/// Whether a gang cannot be preempted and waits because it would hold the guarantee of other queues.
fn is_kept_from_lent(sim: &Sim, gang: GangId) -> bool {
    let spec = sim.world().gang(gang).map(|gang| &gang.spec);
    let firm = spec.is_some_and(|spec| !spec.disruption.preemptible);
    let verdict = sim.last_plan().verdicts.iter().find(|(of, _)| *of == gang);
    let told = verdict.is_some_and(|(_, verdict)| match verdict {
        Verdict::Impossible { blockers } => {
            matches!(blockers.first(), Some(Blocker::BeyondGuarantee { .. }))
        }
        _ => false,
    });
    firm && told
}

/// Gangs that should have ended and did not, claims that should be gone, and infeasible gangs without that verdict.
fn left_behind(sim: &Sim, infeasible: &[std::sync::Arc<str>]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut wrong = |promise, what: String| found.push(Violation { promise, at: sim.now(), what });
    for (id, gang) in sim.world().gangs() {
        let verdict =
            sim.last_plan().verdicts.iter().find(|(of, _)| *of == id).map(|(_, verdict)| verdict);
        let told = matches!(verdict, Some(Verdict::Impossible { .. }));
        match (infeasible.contains(&gang.spec.name), told) {
            (true, true) => {}
            (false, true) if is_kept_from_lent(sim, id) => {}
            (true, false) => {
                let what =
                    format!("{} can never run and was not told so: {verdict:?}", gang.spec.name);
                wrong(Promise::BadInputIsAFinding, what);
            }
            (false, _) => {
                let what = format!(
                    "{} never ran although nothing fails any more: {verdict:?}",
                    gang.spec.name
                );
                wrong(Promise::NoHoldAndWait, what);
            }
        }
    }
    for claim in unwanted(sim) {
        wrong(Promise::NoLeak, format!("{claim} is left although no pool keeps it"));
    }
    found
}

/// Claims beyond what their pools keep.
fn unwanted(sim: &Sim) -> Vec<std::sync::Arc<str>> {
    let mut keep: BTreeMap<PoolIdx, u32> = sim
        .last_plan()
        .targets
        .iter()
        .map(|(pool, target)| (*pool, target.free + target.stopped))
        .collect();
    let mut unwanted = Vec::new();
    // Some pools keep their nodes.
    let stays = |claim: &Claim| {
        let pool = &sim.world().pools()[claim.offering.pool].spec;
        pool.consolidate == Consolidate::Never && claim.is_ready() && !claim.retiring
    };
    for claim in sim.world().claims().values().filter(|claim| !stays(claim)) {
        match keep.get_mut(&claim.offering.pool).filter(|left| **left > 0 && !claim.releasing) {
            Some(left) => *left -= 1,
            None => unwanted.push(claim.name.clone()),
        }
    }
    unwanted
}

/// The instant a scenario's faults stop, counted from its start.
pub(crate) fn storm_end(hours: u64) -> Time {
    Time::ZERO + Span::hours(hours)
}
