//! Free GPUs stay usable for gangs that are likely to come.

use insta::assert_snapshot;
use muster_core::World;
use muster_core::id::{NodeIdx, SigIdx};
use muster_core::state::NodeState;
use muster_plan::place::{Fits, place};
use muster_plan::scratch::Scratch;

use crate::dsl::{Bench, check};
use crate::properties::seeds::{Rng, for_seeds};

#[test]
fn a_pair_of_gpus_stays_a_pair_while_pairs_are_asked_for() {
    assert_snapshot!(check("
        node two gpus=2
        node three gpus=3
        policy fifo-overtake
        gang pairs 8x2gpu never
        gang one 1x1gpu
    "), @"
    admit one: three[0]
    pairs is impossible: r0 never 8, at most 2
    ");
}

#[test]
fn a_share_goes_where_the_rest_is_of_use() {
    assert_snapshot!(check("
        node a gpus=1
        node b gpus=1
        gang half 1x0.5gpu
        plan
        policy fifo-overtake
        gang halves 9x0.5gpu never
        gang third 1x0.3gpu
        plan
    "), @"
    admit half: a[0]
    admit third: b[0]
    half runs
    halves is impossible: r0 never 9, at most 4
    ");
}

#[test]
fn gang_that_takes_any_model_leaves_the_wanted_one() {
    let case = |nodes: &str, how: &str| {
        check(&format!(
            "{nodes}
             policy fifo-overtake
             gang picky 4x8gpu model=A100 never
             gang any 1x8gpu {how}"
        ))
    };
    let one_rack = "node a gpus=8 model=A100\nnode b gpus=8 model=H100";
    let two_racks = "node a gpus=8 model=A100 rack=r1\nnode b gpus=8 model=H100 rack=r2";
    assert_snapshot!(case(one_rack, ""), @"
    admit any: b[0-7]
    picky is impossible: r0 never 4, at most 1
    ");
    assert_snapshot!(case(two_racks, ""), @"
    admit any: b[0-7]
    picky is impossible: r0 never 4, at most 1
    ");
    assert_snapshot!(case(two_racks, "topology=required:node"), @"
    admit any: b[0-7]
    picky is impossible: r0 never 4, at most 1
    ");
    assert_snapshot!(case(two_racks, "topology=required:rack"), @"
    admit any: b[0-7]
    picky is impossible: r0 never 4, at most 1
    ");
}

#[test]
fn members_without_gpus_leave_gpus_the_cpu_they_need() {
    assert_snapshot!(check("
        node tight gpus=2 cpu=32
        node roomy gpus=4 cpu=128
        policy fifo-overtake
        gang train 50x1gpu/10cpu never
        gang etl 1x30cpu
    "), @"
    admit etl: roomy
    train is impossible: r0 never 50, at most 6
    ");
}

#[test]
fn on_nodes_of_one_kind_with_members_of_one_kind_nothing_is_different() {
    assert_snapshot!(check("
        node a[1..3] gpus=8
        gang one[1..3] 1x4gpu
        gang two 2x4gpu
    "), @"
    admit one1: a1[0-3]
    admit one2: a1[4-7]
    admit one3: a2[0-3]
    admit two: a3[0-3] a3[4-7]
    ");
}

/// What is lost of a node, computed from the definition of the measure and not as the planner does it.
fn lost(world: &World, node: &NodeState) -> i128 {
    let free = i128::from(node.devices.free_milli());
    let levels = world.topology().levels();
    let kinds = world.shapes().kinds().iter();
    kinds
        .map(|kind| {
            let signature = world.signature(kind.sig);
            let runs =
                signature.suits(world.class(node.class), levels) && signature.times_fits(node) > 0;
            let (_, share) = signature.gpu();
            let mut by_devices = 0;
            let mut by_all = 0;
            if runs {
                by_devices = i128::from(node.devices.with_room(share).1);
                let milli = i128::from(signature.gpu_milli());
                let goes_for =
                    signature.key.amounts.iter().map(|(idx, want)| {
                        i128::from(node.free.get(idx)) * milli / i128::from(want)
                    });
                by_all = goes_for.fold(by_devices, i128::min);
            }
            i128::from(kind.members) * (3 * free - 2 * by_devices - by_all)
        })
        .sum()
}

/// Nodes of a few kinds with members on them; all stand in the same place.
fn lived_in(rng: &mut Rng) -> Bench {
    let mut bench = Bench::new();
    for i in 0..6 {
        let (gpus, model) = (rng.pick(&["1", "2", "4"]), rng.pick(&["H100", "A100"]));
        let cpu = rng.pick(&["16", "40"]);
        bench.line(&format!("node n{i} gpus={gpus} model={model} cpu={cpu}"));
    }
    bench.line("policy fifo-overtake");
    for i in 0..8 {
        bench.line(&format!("gang g{i} 1x{}", member(rng)));
    }
    bench.line("plan");
    bench
}

fn member(rng: &mut Rng) -> String {
    let gpus = rng.pick(&["0.3gpu", "0.5gpu", "0.7gpu", "1gpu", "1gpu", "2gpu"]);
    let model = if rng.percent(30) { " model=A100" } else { "" };
    format!("{gpus}/{}cpu{model}", rng.pick(&["1", "4", "8"]))
}

#[test]
fn a_member_is_placed_where_the_least_is_lost() {
    let (mut placed, mut choices) = (0, 0);
    for_seeds("a_member_is_placed_where_the_least_is_lost", 200, |rng| {
        let mut bench = lived_in(rng);
        let probe = if rng.percent(20) { "8cpu".to_owned() } else { member(rng) };
        bench.line(&format!("gang probe 1x{probe}"));
        let world = &bench.world;
        let gang = world.gang(world.gang_named("probe").expect("submitted")).expect("it waits");
        let Ok(seats) = place(&mut Scratch::new(world), &mut Fits::default(), gang) else { return };
        let costs: Vec<(NodeIdx, i128)> = world
            .nodes()
            .filter_map(|(idx, _)| Some((idx, cost(world, idx, gang.sigs[0])?)))
            .collect();
        let least = costs.iter().map(|(_, cost)| *cost).min().expect("it was placed");
        let chosen = costs.iter().find(|(idx, _)| *idx == seats[0].node).expect("it fits there");
        assert_eq!(chosen.1, least, "{probe}: {costs:?}\n{}", bench.out);
        placed += 1;
        choices += u32::from(costs.iter().any(|(_, cost)| *cost != least));
    });
    let enough = placed >= 50 && choices >= 25;
    assert!(
        enough || crate::properties::seeds::chosen().is_some(),
        "{placed} placed, {choices} with a choice"
    );
}

/// What is lost beyond what is lost already if one member takes a seat on a node; none if it cannot.
fn cost(world: &World, node: NodeIdx, sig: SigIdx) -> Option<i128> {
    let signature = world.signature(sig);
    let before = world.states().get(world.node_state(node)?);
    let suits = signature.suits(world.class(before.class), world.topology().levels());
    if !suits || signature.times_fits(before) == 0 {
        return None;
    }
    let mut after = before.clone();
    after.fill(signature, 1);
    Some(lost(world, &after) - lost(world, before))
}
