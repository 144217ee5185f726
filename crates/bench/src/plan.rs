//! `cargo xtask bench plan`: the speed of the planner, and how it scales.

use std::hint::black_box;
use std::time::Instant;

use clap::Args as ClapArgs;
use muster_core::plan::Action;
use muster_core::time::Time;
use muster_core::{Event, World};
use muster_plan::place::{Fits, place};
use muster_plan::scratch::Scratch;
use muster_plan::{Policy, QueueOrder, plan};
use muster_testkit::build;
use serde::Serialize;

use crate::{memory, worlds};

/// Measure the planner for 100, 1,000 and 10,000 nodes; one JSON object per line.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print JSON (it always does; the flag is for scripts that say so)
    #[arg(long)]
    json: bool,
    /// Measure only this many nodes
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Repeat each measurement this often and take the median
    #[arg(long, default_value_t = 41)]
    repeat: usize,
}

#[derive(Serialize)]
struct Line {
    nodes: u32,
    /// Place one 512-member gang on a quarter-full world, with nothing memoized, median.
    place_512_us: f64,
    /// GPUs each of the 512 members asks for: whole nodes where there are enough.
    place_512_gpus: u16,
    /// One pass over every node's free GPUs, median.
    scan_us: f64,
    /// The one over the other, both measured in turns.
    scan_ratio: f64,
    /// A full cycle with 1,000 gangs waiting at 80 % load, every one of them tried, median.
    cycle_1000_ms: f64,
    /// The slowest of those cycles.
    cycle_1000_max_ms: f64,
    /// The same under strict first come, first served.
    cycle_1000_fifo_ms: f64,
    /// The same under the default order.
    cycle_1000_muster_ms: f64,
    /// Gangs the cycle admitted and orders it placed.
    cycle_1000_actions: usize,
    /// A cycle at full load under the default order, with priorities, guarantees, elastic gangs, time slices and
    /// movable gangs: every kind of preemption is searched, median.
    make_way_1000_ms: f64,
    /// The slowest of those cycles.
    make_way_1000_max_ms: f64,
    /// Gangs with victims in it.
    make_way_1000_orders: usize,
    /// A cycle at a quarter of the load under the default order, with 250 gangs waiting of which each prefers or avoids
    /// up to 500 nodes by name, median.
    wishes_250_ms: f64,
    /// The same gangs in the same world without these preferences, median.
    wishless_250_ms: f64,
    /// The one over the other, both measured in turns.
    wishes_ratio: f64,
    bytes_per_node: f64,
    bytes_per_member: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let sizes = args.nodes.map_or(vec![100, 1_000, 10_000], |nodes| vec![nodes]);
    for nodes in sizes {
        println!("{}", serde_json::to_string(&measure(nodes, args.repeat.max(1)))?);
    }
    let _ = args.json;
    Ok(())
}

fn measure(nodes: u32, repeat: usize) -> Line {
    let (mut quarter, node_bytes) = memory::measure(|| worlds::empty(nodes));
    worlds::load(&mut quarter, nodes, 0.25);
    let place_512_gpus = if nodes >= 700 { 8 } else { 1 };
    let (place_us, scan_us) = place_and_scan(&mut quarter, place_512_gpus, repeat);
    let member_bytes = bytes_per_member(&quarter);

    let mut full = worlds::empty(nodes);
    worlds::load(&mut full, nodes, 0.8);
    worlds::crowd(&mut full, 1_000);
    let (every, actions) = cycle(&full, QueueOrder::FifoOvertake, repeat);
    let (strict, _) = cycle(&full, QueueOrder::Fifo, repeat);
    let (default, _) = cycle(&full, QueueOrder::Muster, repeat);
    let mut contested = worlds::contested(nodes);
    worlds::rivals(&mut contested, 1_000);
    let (ways, orders) = make_way(&contested, repeat);
    let (with, without) = wishes(nodes, repeat);
    Line {
        nodes,
        place_512_us: median(&place_us),
        place_512_gpus,
        scan_us: median(&scan_us),
        scan_ratio: median(&place_us) / median(&scan_us),
        cycle_1000_ms: median(&every) / 1e3,
        cycle_1000_max_ms: every.iter().copied().fold(0.0, f64::max) / 1e3,
        cycle_1000_fifo_ms: median(&strict) / 1e3,
        cycle_1000_muster_ms: median(&default) / 1e3,
        cycle_1000_actions: actions,
        make_way_1000_ms: median(&ways) / 1e3,
        make_way_1000_max_ms: ways.iter().copied().fold(0.0, f64::max) / 1e3,
        make_way_1000_orders: orders,
        wishes_250_ms: median(&with) / 1e3,
        wishless_250_ms: median(&without) / 1e3,
        wishes_ratio: median(&with) / median(&without),
        bytes_per_node: node_bytes as f64 / f64::from(nodes),
        bytes_per_member: member_bytes,
    }
}

/// Times to place one 512-member gang, and to scan every node's free GPUs once, in turns.
fn place_and_scan(world: &mut World, gpus: u16, repeat: usize) -> (Vec<f64>, Vec<f64>) {
    let spec = build::gang("large", 512, gpus);
    world.apply(Time::ZERO, &Event::GangSubmitted(spec)).expect("a well-formed gang");
    let id = world.gang_named("large").expect("just submitted");
    let gang = world.gang(id).expect("just submitted");
    let (mut placed, mut scanned) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        placed.push(timed(|| {
            let mut scratch = Scratch::new(world);
            let seats = place(&mut scratch, &mut Fits::default(), gang).expect("it fits");
            assert_eq!(black_box(seats).len(), 512);
        }));
        scanned.push(timed(|| {
            black_box(scan(black_box(world)));
        }));
    }
    (placed, scanned)
}

/// One scan of every node: how many GPUs are free in all.
fn scan(world: &World) -> u64 {
    world
        .nodes()
        .map(|(idx, _)| {
            let state = world.node_state(idx).expect("a node that is here");
            u64::from(world.states().get(state).devices.whole_free())
        })
        .sum()
}

fn cycle(world: &World, order: QueueOrder, repeat: usize) -> (Vec<f64>, usize) {
    let policy = Policy { order, ..Policy::default() };
    let mut actions = 0;
    let times = (0..repeat)
        .map(|_| timed(|| actions = black_box(plan(world, Time::ZERO, &policy)).groups.len()))
        .collect();
    (times, actions)
}

/// Times of a cycle with preemption, and the number of gangs with victims.
fn make_way(world: &World, repeat: usize) -> (Vec<f64>, usize) {
    let policy = Policy::default();
    let mut orders = 0;
    let times = (0..repeat)
        .map(|_| {
            timed(|| {
                let decided = black_box(plan(world, worlds::LATER, &policy));
                let after = |action: &&Action| {
                    matches!(action, Action::Order(spec) if !spec.after.is_empty())
                };
                orders = decided.actions().filter(after).count();
            })
        })
        .collect();
    (times, orders)
}

/// Times of a cycle over gangs with preferences for nodes by name, and over the same gangs without them, in turns.
fn wishes(nodes: u32, repeat: usize) -> (Vec<f64>, Vec<f64>) {
    let mut with = worlds::empty(nodes);
    worlds::load(&mut with, nodes, 0.25);
    let mut without = with.clone();
    worlds::wait(&mut with, 250, |i, spec| worlds::keep_away(spec, nodes, i));
    worlds::wait(&mut without, 250, |_, _| {});
    let once = |world: &World| cycle(world, QueueOrder::Muster, 1).0[0];
    (0..repeat).map(|_| (once(&with), once(&without))).unzip()
}

/// Bytes of the World per admitted member.
fn bytes_per_member(world: &World) -> f64 {
    let id = world.gang_named("large").expect("submitted before");
    let gang = world.gang(id).expect("submitted before");
    let mut scratch = Scratch::new(world);
    let seats = place(&mut scratch, &mut Fits::default(), gang).expect("it fits");
    let mut copy = world.clone();
    let action = Action::Admit { gang: id, seats };
    let event = Event::Decided(action);
    let ((), bytes) = memory::measure(|| copy.apply(Time::ZERO, &event).expect("a plan just made"));
    bytes as f64 / 512.0
}

/// Microseconds of a call.
fn timed(what: impl FnOnce()) -> f64 {
    let began = Instant::now();
    what();
    began.elapsed().as_secs_f64() * 1e6
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
