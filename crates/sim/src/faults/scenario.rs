//! Draws a scenario from a seed: a world of up to 200 nodes, feasible gangs, and faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::{Constraints, Labels, Requirement, Test};
use muster_core::device::{GpuKind, GpuRequest, WHOLE};
use muster_core::gang::{
    Closeness, Disruption, GangSpec, Provisioning, ProvisioningMode, Request, RoleSpec,
};
use muster_core::money::Money;
use muster_core::node::NodeSpec;
use muster_core::pool::{OfferingSpec, PoolLimits, PoolSpec};
use muster_core::queue::{QueueSpec, Quota};
use muster_core::resource::{CPU, MEMORY, NamedAmounts};
use muster_core::time::{Span, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cloud::{Availability, CloudModel, StockModel};
use crate::faults::bad_input::BadInput;
use crate::faults::run::storm_end;
use crate::faults::{absurd_specs, disruption, node_types, owner_resizes, proactive, tenants};
use crate::host::{Setup, SimEvent};
use crate::job::Job;

const GPU: &str = "nvidia.com/gpu";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const RACK: &str = "topology.muster.sh/rack";

/// A scenario.
#[derive(Debug)]
pub struct Drawn {
    /// The world and the work.
    pub setup: Setup,
    /// Faults besides those of the clouds.
    pub(crate) faults: Vec<(Time, SimEvent)>,
    /// When the faults stop.
    pub storm_ends: Time,
    /// Gangs that can never run and must get that verdict.
    pub infeasible: Vec<Arc<str>>,
}

/// Guaranteed capacity, so that only feasible gangs are drawn.
struct Bounds {
    /// GPUs per node, everywhere in the scenario.
    gpus: u16,
    /// Nodes that one zone always provides when nothing fails.
    per_zone: u32,
    /// Nodes with GPUs in the largest rack, 0 without racks.
    per_rack: u32,
    /// Nodes that exist from the start.
    present: u32,
    /// GPUs the tightest queue allows.
    queue_gpus: u32,
}

/// The scenario of a seed; the same on every machine.
pub fn draw(seed: u64) -> Drawn {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let gpus = [1u16, 2, 4, 8][rng.random_range(0..4)];
    let hours = rng.random_range(2..12);
    let (nodes, per_rack) = draw_nodes(rng, gpus);
    let (pools, per_zone) = draw_pools(rng, gpus, nodes.len() as u32);
    let present = nodes.len() as u32;
    let largest = per_zone.max(present);
    let queue_gpus = (largest * u32::from(gpus)).max(1) * rng.random_range(1..=2);
    let bounds = Bounds { gpus, per_zone, per_rack, present, queue_gpus };
    let queues = draw_queues(rng, &bounds);
    let storm_ends = storm_end(hours);
    let (jobs, mut infeasible) = draw_jobs(rng, &bounds, &queues, storm_ends);
    let mut faults = draw_faults(rng, jobs.len(), storm_ends);
    let mut setup = Setup { queues, pools, nodes, jobs, ..Setup::default() };
    tenants::draw(seed, &mut setup, &mut infeasible);
    proactive::draw(seed, &mut setup, &mut faults, storm_ends);
    disruption::draw(seed, &mut setup, &infeasible, storm_ends);
    node_types::draw(seed, &mut setup);
    absurd_specs::draw(seed, &mut setup, &mut infeasible);
    owner_resizes::draw(seed, &setup, &infeasible, &mut faults, storm_ends);
    Drawn { setup, faults, storm_ends, infeasible }
}

fn amounts(cores: u64, gib: u64) -> NamedAmounts {
    BTreeMap::from([(CPU.into(), cores * 1_000), (MEMORY.into(), gib << 30)])
}

fn kind() -> GpuKind {
    GpuKind { resource: GPU.into(), model: "H100".into(), memory: 80 << 30 }
}

fn place(region: &str, zone: &str, rack: Option<&str>) -> Labels {
    let mut labels = Labels::from([(REGION.into(), region.into()), (ZONE.into(), zone.into())]);
    labels.extend(rack.map(|rack| (Arc::from(RACK), Arc::from(rack))));
    labels
}

/// Nodes that exist from the start: none, or up to a hundred in racks of two zones.
fn draw_nodes(rng: &mut ChaCha8Rng, gpus: u16) -> (Vec<NodeSpec>, u32) {
    let count = [0, 0, 4, 16, 40, 100][rng.random_range(0..6)];
    let racks = rng.random_range(1..=6);
    let mut per_rack = vec![0; racks];
    let nodes = (0..count)
        .map(|i| {
            let rack = i % racks;
            per_rack[rack] += 1;
            let zone = ["z1", "z2"][rack % 2];
            NodeSpec {
                name: format!("fixed-{i}").into(),
                labels: place("r1", zone, Some(&format!("rack-{rack}"))),
                taints: Vec::new(),
                allocatable: amounts(64, 512),
                gpu: Some(kind()),
                gpus,
                ready: true,
                claim: None,
                others: false,
            }
        })
        .collect();
    (nodes, per_rack.into_iter().max().unwrap_or(0))
}

/// Pools whose clouds have faults; also how many nodes one zone always provides.
fn draw_pools(rng: &mut ChaCha8Rng, gpus: u16, present: u32) -> (Vec<(PoolSpec, CloudModel)>, u32) {
    let pools = if present == 0 { rng.random_range(1..=2) } else { rng.random_range(0..=2) };
    let room = (200 - present).min(100) / pools.max(1);
    let mut surest = 0;
    let drawn = (0..pools)
        .map(|p| {
            let nodes = rng.random_range(2..=room.max(2));
            surest = surest.max(nodes);
            let price = Money::from_units(rng.random_range(5.0..100.0)).expect("a price");
            let zones = rng.random_range(1..=3);
            let offerings = (0..zones).map(|z| draw_offering(rng, gpus, price, z)).collect();
            let spec = PoolSpec {
                name: format!("pool-{p}").into(),
                tier: ["reserved", "on-demand"][p as usize % 2].into(),
                offerings,
                limits: draw_limits(rng, nodes, gpus, price),
                idle_after: Span::mins(rng.random_range(1..30)),
                ..PoolSpec::default()
            };
            (spec, draw_model(rng))
        })
        .collect();
    (drawn, surest)
}

fn draw_offering(rng: &mut ChaCha8Rng, gpus: u16, price: Money, z: usize) -> OfferingSpec {
    let zone = ["z1", "z2", "z3"][z];
    OfferingSpec {
        instance_type: "gpu".into(),
        zone: zone.into(),
        region: ["r1", "r1", "r2"][z].into(),
        capacity_type: "on-demand".into(),
        // Never above the first one's price, so that a budget for the first covers all.
        price: if z == 0 { price } else { Money(rng.random_range(1..=price.0)) },
        allocatable: amounts(64, 512),
        gpu: Some(kind()),
        gpus,
        labels: place(["r1", "r1", "r2"][z], zone, None),
        taints: Vec::new(),
        max: None,
        boot_time: Span::secs(rng.random_range(30..400)),
        start_time: None,
    }
}

/// Limits that allow exactly `nodes`, by one limit or several.
fn draw_limits(rng: &mut ChaCha8Rng, nodes: u32, gpus: u16, price: Money) -> PoolLimits {
    let which = rng.random_range(1..8u8);
    PoolLimits {
        nodes: (which & 1 != 0 || which == 4).then_some(nodes),
        gpus: (which & 2 != 0).then_some(nodes * u32::from(gpus)),
        hourly_spend: (which & 4 != 0).then_some(price.times(nodes)),
    }
}

fn draw_model(rng: &mut ChaCha8Rng) -> CloudModel {
    let stock = StockModel {
        mean_up: Span::mins(rng.random_range(10..300)),
        mean_down: Span::mins(rng.random_range(5..120)),
    };
    CloudModel {
        sigma: rng.random_range(0.0..1.0),
        boot_failed: rng.random_range(0.0..0.08),
        gpus_missing: rng.random_range(0.0..0.04),
        stock: rng.random_bool(0.6).then_some(stock),
        mean_time_to_failure: rng.random_bool(0.6).then(|| Span::hours(rng.random_range(4..200))),
        throttled: if rng.random_bool(0.3) { rng.random_range(0.0..0.2) } else { 0.0 },
        recorded: if rng.random_bool(0.2) { draw_record(rng) } else { BTreeMap::new() },
        ..CloudModel::default()
    }
}

/// A recorded availability for the first zone, which reclaims machines when it has too few.
fn draw_record(rng: &mut ChaCha8Rng) -> BTreeMap<Arc<str>, Arc<Availability>> {
    let step = Span::mins(rng.random_range(5..90));
    let counts = (0..rng.random_range(1..20)).map(|_| rng.random_range(0..12)).collect();
    let record = Availability::new(step, counts).expect("steps of some minutes");
    BTreeMap::from([("z1".into(), record.into())])
}

fn draw_queues(rng: &mut ChaCha8Rng, bounds: &Bounds) -> Vec<QueueSpec> {
    let limited =
        |gpus: u32| Quota { gpu_milli: Some(u64::from(gpus) * 1_000), ..Quota::default() };
    let mut org = QueueSpec::open("org");
    org.limit = limited(bounds.queue_gpus * 2);
    let mut team = QueueSpec { parent: Some("org".into()), ..QueueSpec::open("team") };
    if rng.random_bool(0.5) {
        team.limit = limited(bounds.queue_gpus);
    }
    let other = QueueSpec { parent: Some("org".into()), ..QueueSpec::open("other") };
    vec![org, team, other]
}

fn draw_jobs(
    rng: &mut ChaCha8Rng,
    bounds: &Bounds,
    queues: &[QueueSpec],
    storm_ends: Time,
) -> (Vec<Job>, Vec<Arc<str>>) {
    let count = rng.random_range(3..40);
    let mut infeasible = Vec::new();
    let mut jobs: Vec<Job> = (0..count)
        .map(|i| {
            let name: Arc<str> = format!("default/gang-{i}").into();
            let mut gang = draw_gang(rng, bounds, name.clone());
            if rng.random_bool(0.7) {
                gang.queue = queues[rng.random_range(1..queues.len())].name.clone();
            }
            if rng.random_bool(0.04) {
                make_infeasible(rng, bounds, &mut gang);
                infeasible.push(name);
            }
            let submit = Time(rng.random_range(0..storm_ends.0 * 3 / 4));
            // Half arrive in bursts, so that gangs compete.
            let submit =
                if rng.random_bool(0.5) { Time(submit.0 / 600_000 * 600_000) } else { submit };
            Job::new(gang, submit, Span::secs(rng.random_range(1..7_200)))
        })
        .collect();
    jobs.sort_by_key(|job| job.submit);
    (jobs, infeasible)
}

fn role(name: &str, count: u32, gpus: u16, share: u16) -> RoleSpec {
    let gpu = (gpus > 0).then(|| GpuRequest { resource: GPU.into(), count: gpus, share });
    let request = Request { amounts: amounts(1, 1), gpu };
    RoleSpec {
        name: name.into(),
        min: count,
        max: count,
        request,
        constraints: Constraints::default(),
        spread: Vec::new(),
    }
}

/// A gang that is feasible once nothing fails.
fn draw_gang(rng: &mut ChaCha8Rng, bounds: &Bounds, name: Arc<str>) -> GangSpec {
    let provisioned = bounds.per_zone > 0 && (bounds.present == 0 || rng.random_bool(0.7));
    let nodes = if provisioned { bounds.per_zone } else { bounds.present };
    let most = nodes.min(bounds.queue_gpus / u32::from(bounds.gpus)).max(1);
    let size = if rng.random_bool(0.2) { most } else { rng.random_range(1..=most.min(8)) };
    let mut roles = match rng.random_range(0..10) {
        0 => vec![role("cpu", size, 0, WHOLE)],
        1 => vec![role("shard", size, 1, [250, 500, 300][rng.random_range(0..3)])],
        2 => vec![role("single", size, 1, WHOLE)],
        3 if size > 1 => {
            vec![role("launcher", 1, 0, WHOLE), role("worker", size - 1, bounds.gpus, WHOLE)]
        }
        _ => vec![role("worker", size, bounds.gpus, WHOLE)],
    };
    if rng.random_bool(0.1) {
        for role in &mut roles {
            role.max += rng.random_range(1..4);
        }
    }
    let mut closeness = None;
    let mut mode = ProvisioningMode::Proactive;
    match rng.random_range(0..10) {
        // A zone of a pool has room for all of it; a rack only where racks are.
        0 | 1 if provisioned => closeness = Some(Closeness::Required("zone".into())),
        2 if !provisioned && size <= bounds.per_rack => {
            closeness = Some(Closeness::Required("rack".into()));
        }
        3 => closeness = Some(Closeness::Preferred("rack".into())),
        4 if !provisioned => mode = ProvisioningMode::Never,
        5 if provisioned => {
            let zones = vec![Arc::from("z1"), Arc::from("z2")];
            let near = Requirement { key: ZONE.into(), test: Test::In(zones) };
            roles.iter_mut().for_each(|role| role.constraints.all.push(near.clone()));
        }
        _ => {}
    }
    GangSpec {
        name,
        queue: "default".into(),
        user: ["ann", "bob", ""][rng.random_range(0..3)].into(),
        priority: [0, 0, 0, 10, 100][rng.random_range(0..5)],
        priority_is_declared: false,
        roles,
        closeness,
        provisioning: Provisioning {
            mode,
            timeout: Span::mins(rng.random_range(8..25)),
            attempts: rng.random_range(1..6),
        },
        // Some declare none, and the others are random.
        expected_duration: rng.random_bool(0.7).then(|| Span::secs(rng.random_range(1..7_200))),
        deadline: None,
        cost_of_waiting: None,
        disruption: Disruption::default(),
        scaling: Default::default(),
    }
}

/// Requests what no node and no offering has, or more than a queue ever allows.
fn make_infeasible(rng: &mut ChaCha8Rng, bounds: &Bounds, gang: &mut GangSpec) {
    match rng.random_range(0..3) {
        0 => gang.roles = vec![role("giant", 1, bounds.gpus + 1, WHOLE)],
        1 => gang.roles[0].constraints.gpu_models = vec!["Abacus".into()],
        _ => {
            gang.queue = "other".into();
            gang.roles = vec![role("crowd", bounds.queue_gpus * 2 + 1, 1, WHOLE)];
        }
    }
    if gang.roles[0].request.gpu.is_none() {
        gang.roles = vec![role("giant", 1, bounds.gpus + 1, WHOLE)];
    }
}

fn draw_faults(rng: &mut ChaCha8Rng, jobs: usize, storm_ends: Time) -> Vec<(Time, SimEvent)> {
    let mut faults = Vec::new();
    for _ in 0..rng.random_range(0..6) {
        faults.push((
            Time(rng.random_range(0..storm_ends.0)),
            SimEvent::BadInput(BadInput::draw(rng)),
        ));
    }
    for _ in 0..rng.random_range(0..4) {
        let after = rng.random_range(0..12);
        faults.push((Time(rng.random_range(0..storm_ends.0)), SimEvent::Crash(after)));
    }
    for _ in 0..rng.random_range(0..3) {
        let region = [None, Some("r1"), Some("r2")][rng.random_range(0..3)];
        let (at, lasts) =
            (Time(rng.random_range(0..storm_ends.0)), Span::mins(rng.random_range(5..120)));
        faults.push((at, SimEvent::OutOfStock(region, at + lasts)));
    }
    for _ in 0..rng.random_range(0..4) {
        let job = rng.random_range(0..jobs);
        faults.push((Time(rng.random_range(0..storm_ends.0)), SimEvent::Cancel(job)));
    }
    faults
}
