//! Draws a tenant with a guarantee beside tenants that declare whatever gives them an advantage, and checks that it gets
//! its nodes in time.
//!
//! Nothing fails here, and nothing can be bought: only the declarations of the others can keep the tenant from its
//! guarantee. Tenants without a guarantee request any part of a node; those with one request whole nodes, since a guarantee
//! counts GPUs and not nodes, and what they may keep could otherwise be a little of each.

use std::sync::{Arc, Mutex};

use muster_core::gang::{Checkpoint, Disruption, GangSpec, Provisioning, ProvisioningMode, Signal};
use muster_core::money::Money;
use muster_core::queue::{QueueSpec, Quota};
use muster_core::time::{Span, Time};
use muster_core::{Fact, World};
use muster_plan::{Policy, QueueOrder};
use muster_testkit::promises::Promise;
use muster_testkit::{Violation, build};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::faults::sabotage::Sabotage;
use crate::host::{Setup, Sim, SimEvent, SimOptions, Step, Watcher};
use crate::job::{Job, Nature};

/// Their random stream.
const STREAM: u64 = 8;
/// GPUs of every node.
const GPUS: u16 = 8;
/// A duration that no user means.
const AGES: Span = Span::hours(24 * 365 * 100);
/// How long the simulation runs after the last submission.
const WATCHED: Span = Span::hours(12);
/// Victims leave as soon as their grace is over, and the planner runs at every change.
const SLACK: Span = Span::mins(3);

/// A tenant with a guarantee, and its longest wait.
struct Tenancy {
    setup: Setup,
    /// The tenant's gangs, which all together fit its guarantee.
    own: Vec<Arc<str>>,
    /// The longest wait of each of them.
    within: Span,
    cancels: Vec<(Time, usize)>,
}

/// Broken promises of the world of one seed.
pub(crate) fn run(seed: u64, sabotage: Option<Sabotage>) -> Vec<Violation> {
    let Tenancy { setup, own, within, cancels } = draw(seed);
    let order = if seed.is_multiple_of(2) { QueueOrder::Muster } else { QueueOrder::Fair };
    let options =
        SimOptions { seed, step: Step::Event, check: true, sabotage, ..SimOptions::default() };
    let policy = Policy { order, ..Policy::default() };
    let mut sim = Sim::new(setup, policy, options).expect("drawn worlds are well formed");
    let stopped: Arc<Mutex<Vec<Violation>>> = Arc::default();
    sim.watch(watcher(own.clone(), stopped.clone()));
    for (at, job) in cancels {
        sim.schedule(at, SimEvent::Cancel(job));
    }
    let last = sim.jobs().iter().map(|job| job.submit).max().unwrap_or(Time::ZERO);
    let mut violations = Vec::new();
    while violations.is_empty() && sim.next_at().is_some_and(|at| at <= last + WATCHED) {
        sim.step();
        violations.extend(overdue(&sim, &own, within));
        violations.extend(sim.violations().iter().cloned());
        violations.append(&mut stopped.lock().expect("no thread panics"));
    }
    violations
}

/// A gang of the tenant that has waited for too long.
fn overdue(sim: &Sim, own: &[Arc<str>], within: Span) -> Option<Violation> {
    let waits = |name: &Arc<str>| {
        let id = sim.world().gang_named(name)?;
        let gang = sim.world().gang(id)?;
        let late = gang.is_pending() && sim.now().since(gang.submitted) > within;
        let verdict = sim.last_plan().verdicts.iter().find(|(of, _)| *of == id);
        late.then(|| Violation {
            promise: Promise::Isolation,
            at: sim.now(),
            what: format!(
                "{name} is within its guarantee and waits for more than {within}: {verdict:?}"
            ),
        })
    };
    own.iter().find_map(waits)
}

/// Reports stops of gangs of the tenant, which holds no more than its guarantee.
fn watcher(own: Vec<Arc<str>>, stopped: Arc<Mutex<Vec<Violation>>>) -> Watcher {
    Box::new(move |at, world: &World, fact| {
        let Fact::GangStopped { gang, reason } = fact else { return };
        let Some(gang) = world.gang(*gang).filter(|gang| own.contains(&gang.spec.name)) else {
            return;
        };
        let what =
            format!("{} is within its guarantee and was stopped: {reason:?}", gang.spec.name);
        let broken = Violation { promise: Promise::Isolation, at, what };
        stopped.lock().expect("no thread panics").push(broken);
    })
}

fn draw(seed: u64) -> Tenancy {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let nodes = rng.random_range(2..=10);
    let sure = rng.random_range(1..=nodes);
    let theirs = if rng.random_bool(0.4) { rng.random_range(0..=nodes - sure) } else { 0 };
    let grace = Span::mins(rng.random_range(0..=20));
    let reclaim = Span::mins(rng.random_range(0..=15));
    let queues = draw_queues(rng, (sure, theirs), grace, reclaim);
    let others = queues.iter().filter(|queue| !matches!(&*queue.name, "org" | "tenant"));
    let others: Vec<Arc<str>> = others.map(|queue| queue.name.clone()).collect();
    let mut jobs = Vec::new();
    let mut own = Vec::new();
    let mut left = sure;
    while left > 0 && own.len() < 6 {
        let size = rng.random_range(1..=left);
        left -= size;
        let name: Arc<str> = format!("tenant/gang-{}", own.len()).into();
        let gang = GangSpec { queue: "tenant".into(), ..gang(&name, size, GPUS) };
        // Long, so that all of them run at once.
        let submit = Time(rng.random_range(0..Span::hours(6).0 as i64));
        jobs.push(Job::new(gang, submit, AGES));
        own.push(name);
    }
    for at in 0..rng.random_range(5..60) {
        let queue = others[rng.random_range(0..others.len())].clone();
        jobs.push(adversary(rng, at, (nodes, theirs > 0), grace, queue));
    }
    jobs.sort_by_key(|job| job.submit);
    let mut cancels = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        if !own.contains(&job.gang.name) && rng.random_bool(0.15) {
            cancels.push((job.submit + Span::mins(rng.random_range(0..60)), at));
        }
    }
    let nodes = (0..nodes).map(|at| build::node(&format!("n{at}"), GPUS, &[])).collect();
    let within = reclaim + grace + SLACK;
    Tenancy { setup: Setup { queues, nodes, jobs, ..Setup::default() }, own, within, cancels }
}

/// The tenant's queue and others, in a tree or side by side.
fn draw_queues(
    rng: &mut ChaCha8Rng,
    (sure, theirs): (u32, u32),
    grace: Span,
    reclaim: Span,
) -> Vec<QueueSpec> {
    let gpus = |nodes: u32| Quota {
        gpu_milli: (nodes > 0).then(|| u64::from(nodes) * u64::from(GPUS) * 1_000),
        ..Quota::default()
    };
    let parent: Option<Arc<str>> = rng.random_bool(0.3).then(|| "org".into());
    let tenant = QueueSpec {
        parent: parent.clone(),
        guaranteed: gpus(sure),
        reclaim_within: Some(reclaim),
        ..QueueSpec::open("tenant")
    };
    let mut other = QueueSpec {
        parent: parent.clone().filter(|_| rng.random_bool(0.5)),
        weight: [1, 1_000, 1_000_000][rng.random_range(0..3)],
        guaranteed: gpus(theirs),
        evictions_per_hour: rng.random_bool(0.4).then_some(0),
        time_slice: rng.random_bool(0.2).then(|| Span::mins(30)),
        ..QueueSpec::open("other")
    };
    other.allowed.max_grace = Some(grace);
    let mut third = QueueSpec { weight: 1_000, ..QueueSpec::open("third") };
    third.allowed.max_grace = Some(grace);
    // The guarantee of a queue includes those of the queues below it.
    let below = if other.parent.is_some() { sure + theirs } else { sure };
    let org = parent.map(|name| QueueSpec { guaranteed: gpus(below), ..QueueSpec::open(&name) });
    org.into_iter().chain([tenant, other, third]).collect()
}

fn gang(name: &str, members: u32, gpus: u16) -> GangSpec {
    let mode = ProvisioningMode::Never;
    GangSpec {
        provisioning: Provisioning { mode, ..Provisioning::default() },
        ..build::gang(name, members, gpus)
    }
}

/// A gang that declares whatever gives it an advantage.
fn adversary(
    rng: &mut ChaCha8Rng,
    at: u32,
    (nodes, whole): (u32, bool),
    grace: Span,
    queue: Arc<str>,
) -> Job {
    let preemptible = rng.random_bool(0.6);
    let gpus = if whole || !preemptible { GPUS } else { [1, 2, 3, 8][rng.random_range(0..4)] };
    let mut gang = gang(&format!("rogue/gang-{at}"), rng.random_range(1..=nodes), gpus);
    gang.queue = queue;
    gang.user = ["", "tenant", "x"][rng.random_range(0..3)].into();
    gang.priority = [0, 1, i32::MAX, i32::MIN][rng.random_range(0..4)];
    let submit = Time(rng.random_range(0..Span::hours(6).0 as i64));
    gang.expected_duration = match rng.random_range(0..4) {
        0 => None,
        1 => Some(Span::secs(1)),
        2 => Some(AGES),
        _ => Some(Span::hours(1)),
    };
    gang.deadline = match rng.random_range(0..4) {
        0 => None,
        1 => Some(submit + Span::secs(1)),
        2 => Some(Time::ZERO),
        _ => Some(submit + Span::hours(1)),
    };
    let cost = [0.0, 1.0, 9e12][rng.random_range(0..3)];
    gang.cost_of_waiting = rng.random_bool(0.6).then(|| Money::from_units(cost)).flatten();
    let checkpoint = Checkpoint {
        signal: rng.random_bool(0.7).then_some(Signal::SigUsr1),
        every: rng.random_bool(0.5).then_some(AGES),
        restart: [Span::ZERO, AGES][rng.random_range(0..2)],
    };
    gang.disruption = Disruption {
        preemptible,
        min_runtime: [Span::ZERO, Span::mins(30), AGES][rng.random_range(0..3)],
        grace: Span(rng.random_range(0..=grace.0)),
        checkpoint: rng.random_bool(0.7).then_some(checkpoint),
        gentle: rng.random_bool(0.1),
    };
    if rng.random_bool(0.4) {
        let role = &mut gang.roles[0];
        role.max = role.min.saturating_add([1, 8, 1_000_000][rng.random_range(0..3)]);
        role.min = rng.random_range(1..=role.min);
        gang.scaling.resize = [Span::ZERO, AGES][rng.random_range(0..2)];
    }
    let run = [Span::mins(5), Span::hours(2), AGES][rng.random_range(0..3)];
    let nature =
        Nature { declines: if rng.random_bool(0.2) { 1_000 } else { 0 }, efficiency: None };
    Job { nature, ..Job::new(gang, submit, run) }
}
