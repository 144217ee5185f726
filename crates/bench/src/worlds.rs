//! Worlds for measurements: zones, blocks and racks of 8-GPU nodes, with gangs running on part of them.

use std::sync::Arc;

use muster_core::constraint::{Preference, Requirement, Test};
use muster_core::gang::{Checkpoint, GangSpec, Phase, Signal};
use muster_core::node::NodeSpec;
use muster_core::plan::Action;
use muster_core::pool::PoolLimits;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_core::topology::{HOSTNAME, Levels};
use muster_core::{Event, World};
use muster_plan::{Policy, QueueOrder, plan};
use muster_testkit::build;

/// Nodes per rack and racks per block; four zones share the blocks.
const RACK: u32 = 16;
const BLOCK: u32 = 8;
const ZONES: u32 = 4;

/// The node in one place of the world.
fn node(i: u32) -> NodeSpec {
    let (rack, block) = (i / RACK, i / RACK / BLOCK);
    let at = [
        ("topology.kubernetes.io/zone", format!("z{}", block % ZONES)),
        ("topology.muster.sh/block", format!("b{block}")),
        ("topology.muster.sh/rack", format!("r{rack}")),
    ];
    let labels: Vec<(&str, &str)> = at.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut node = build::node(&format!("node-{i}"), 8, &labels);
    if i % 5 == 4 {
        // Every fifth is of an older model, so that there is more than one class.
        if let Some(gpu) = &mut node.gpu {
            gpu.model = "A100".into();
        }
    }
    node
}

/// A world of empty nodes.
pub(crate) fn empty(nodes: u32) -> World {
    let mut world = World::new(Levels::default());
    for i in 0..nodes {
        world.apply(Time::ZERO, &Event::NodeSeen(node(i))).expect("a well-formed node");
    }
    world.apply(Time::ZERO, &Event::Synced).expect("always");
    world
}

/// Sizes and GPUs per member of running and waiting gangs, in turn: mostly small, some large.
const SHAPES: [(u32, u16); 10] =
    [(1, 1), (2, 8), (1, 4), (4, 8), (1, 8), (8, 8), (1, 2), (16, 8), (2, 4), (3, 8)];

/// One gang of the mix.
pub(crate) fn gang(i: usize) -> GangSpec {
    let (members, gpus) = SHAPES[i % SHAPES.len()];
    let gang = build::gang(&format!("gang-{i}"), members, gpus);
    if i % 7 == 3 { build::within(gang, "rack") } else { gang }
}

/// Runs gangs of the mix on an empty world until this share of the GPUs is taken.
pub(crate) fn load(world: &mut World, nodes: u32, share: f64) {
    let want = (f64::from(nodes) * 8.0 * share) as u64 * 1_000;
    let policy = Policy { order: QueueOrder::FifoOvertake, ..Policy::default() };
    let mut next = 0;
    loop {
        let batch = 64.min(nodes as usize / 8 + 1);
        for _ in 0..batch {
            world.apply(Time::ZERO, &Event::GangSubmitted(gang(next))).expect("a well-formed gang");
            next += 1;
        }
        let decided = plan(world, Time::ZERO, &policy);
        for action in decided.actions() {
            let Action::Admit { gang, .. } = action else { continue };
            if held(world) >= want {
                break;
            }
            world.apply(Time::ZERO, &Event::Decided(action.clone())).expect("a plan just made");
            world.apply(Time::ZERO, &Event::GangStarted(*gang)).expect("just admitted");
        }
        let waiting: Vec<_> = world.pending().iter().copied().collect();
        for gang in waiting {
            world.apply(Time::ZERO, &Event::GangCancelled(gang)).expect("it waits");
        }
        if held(world) >= want {
            break;
        }
    }
    // Every third gang ends, and its seats are filled again, so that the world is fragmented.
    let running: Vec<_> =
        world.gangs().filter(|(_, g)| g.phase != Phase::Waiting).map(|(id, _)| id).collect();
    let before = held(world);
    for gang in running.iter().step_by(3) {
        world.apply(Time::ZERO, &Event::GangEnded(*gang)).expect("it runs");
    }
    let after = held(world);
    if after < before && running.len() > 3 {
        refill(world, want, next);
    }
}

/// GPUs in use, in thousandths of a device. Every gang of these worlds waits in a queue at the top.
fn held(world: &World) -> u64 {
    world.queues().values().map(|queue| queue.usage.gpu_milli).sum()
}

fn refill(world: &mut World, want: u64, mut next: usize) {
    let policy = Policy { order: QueueOrder::FifoOvertake, ..Policy::default() };
    for _ in 0..10_000 {
        if held(world) >= want {
            return;
        }
        let (spec, id) = (gang(next), next);
        next += 1;
        world.apply(Time::ZERO, &Event::GangSubmitted(spec)).expect("a well-formed gang");
        for action in plan(world, Time::ZERO, &policy).actions() {
            let Action::Admit { gang, .. } = action else { continue };
            world.apply(Time::ZERO, &Event::Decided(action.clone())).expect("a plan just made");
            world.apply(Time::ZERO, &Event::GangStarted(*gang)).expect("just admitted");
        }
        if let Some(gang) = world.gang_named(&format!("gang-{id}"))
            && world.gang(gang).is_some_and(|gang| gang.phase == Phase::Waiting)
        {
            world.apply(Time::ZERO, &Event::GangCancelled(gang)).expect("it waits");
        }
    }
}

/// A time at which the gangs of a contested world have run for a while.
pub(crate) const LATER: Time = Time(2 * 3_600_000);

/// Queues that compete: two with guarantees, one with time slices.
const QUEUES: [&str; 3] = ["research", "product", "shared"];

/// A full world in which nearly every gang is a possible victim: of every priority, some elastic, some movable, in
/// queues of which one has lent its guarantee.
pub(crate) fn contested(nodes: u32) -> World {
    let mut world = empty(nodes);
    for name in QUEUES {
        let mut queue = QueueSpec::open(name);
        match name {
            "research" => queue.guaranteed.gpu_milli = Some(u64::from(nodes) * 8_000 / 2),
            "product" => queue.guaranteed.gpu_milli = Some(u64::from(nodes) * 8_000 / 8),
            _ => queue.time_slice = Some(Span::hours(1)),
        }
        world.apply(Time::ZERO, &Event::QueueSet(queue)).expect("a well-formed queue");
    }
    let policy = Policy { order: QueueOrder::FifoOvertake, ..Policy::default() };
    let mut next = 0;
    // Until a whole batch finds no room.
    loop {
        for _ in 0..256 {
            let spec = disruptable(next, ["product", "shared"][next % 2]);
            world.apply(Time::ZERO, &Event::GangSubmitted(spec)).expect("a well-formed gang");
            next += 1;
        }
        let decided = plan(&world, Time::ZERO, &policy);
        let mut started = 0;
        for action in decided.actions() {
            let Action::Admit { gang, .. } = action else { continue };
            started += 1;
            world.apply(Time::ZERO, &Event::Decided(action.clone())).expect("a plan just made");
            world.apply(Time::ZERO, &Event::GangStarted(*gang)).expect("just admitted");
        }
        let waiting: Vec<_> = world.waiting().iter().map(|waiter| waiter.id).collect();
        for gang in waiting {
            world.apply(Time::ZERO, &Event::GangCancelled(gang)).expect("it waits");
        }
        if started < 8 {
            break;
        }
    }
    world.apply(LATER, &Event::Tick).expect("time passes");
    world
}

/// A gang of the mix that is a possible victim.
fn disruptable(i: usize, queue: &str) -> GangSpec {
    let mut spec = gang(i);
    spec.queue = queue.into();
    spec.priority = (i % 5) as i32 * 10;
    spec.expected_duration = Some(Span::hours(4 + i as u64 % 20));
    spec.disruption.preemptible = !i.is_multiple_of(11);
    spec.disruption.grace = Span::mins(1);
    if i.is_multiple_of(2) {
        let (signal, restart) = (Some(Signal::SigUsr1), Span::mins(2));
        spec.disruption.checkpoint = Some(Checkpoint { signal, every: None, restart });
    }
    if i.is_multiple_of(3) {
        spec.roles[0].max = spec.roles[0].min * 2;
    }
    spec
}

/// Gangs that wait in every queue and of every priority.
pub(crate) fn rivals(world: &mut World, gangs: usize) {
    for i in 0..gangs {
        let mut spec = disruptable(i, QUEUES[i % 3]);
        spec.name = format!("waiting-{i}").into();
        world.apply(LATER, &Event::GangSubmitted(spec)).expect("a well-formed gang");
    }
}

/// Adds a pool with a little room, and gangs that wait.
pub(crate) fn crowd(world: &mut World, gangs: usize) {
    let mut pool =
        build::pool("h100", vec![build::offering("z0", 98.32), build::offering("z1", 99.9)]);
    pool.limits = PoolLimits { nodes: Some(64), ..PoolLimits::default() };
    world.apply(Time::ZERO, &Event::PoolSet(pool)).expect("a well-formed pool");
    wait(world, gangs, |_, _| {});
}

/// Gangs of the mix that wait, each changed by `say`.
pub(crate) fn wait(world: &mut World, gangs: usize, say: impl Fn(usize, &mut GangSpec)) {
    for i in 0..gangs {
        let mut spec = gang(i);
        spec.name = format!("waiting-{i}").into();
        say(i, &mut spec);
        world.apply(Time::ZERO, &Event::GangSubmitted(spec)).expect("a well-formed gang");
    }
}

/// Nodes that a gang with preferences names, at most.
const NAMED: usize = 500;
/// Preferences come in so many steps: the more there is to avoid on a node, the more steps apply to it.
const STEPS: usize = 4;

/// Lets a gang avoid half of the nodes, by name. Each gang begins with another node, so that lists differ.
pub(crate) fn keep_away(spec: &mut GangSpec, nodes: u32, i: usize) {
    let named = (0..nodes).map(|at| (at + i as u32) % nodes).step_by(2).take(NAMED);
    let named: Vec<Arc<str>> = named.map(|at| format!("node-{at}").into()).collect();
    let step = |step: usize| {
        let some = named[..named.len() * step / STEPS].to_vec();
        let away = Requirement { key: HOSTNAME.into(), test: Test::NotIn(some) };
        Preference { weight: 25, term: vec![away] }
    };
    spec.roles[0].constraints.prefer = (1..=STEPS).map(step).collect();
}
