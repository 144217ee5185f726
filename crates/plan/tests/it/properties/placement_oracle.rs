//! `place` against brute force: on small Worlds it finds a place exactly when there is one.

use std::collections::BTreeMap;

use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, Id, NodeIdx};
use muster_core::plan::Action;
use muster_core::resource::CPU;
use muster_core::topology::Level;
use muster_core::{Event, World};
use muster_plan::place::{Fits, place};
use muster_plan::scratch::Scratch;

use super::seeds::{Rng, for_seeds};
use crate::dsl::Bench;

/// Up to six nodes of up to four GPUs in two racks or none, some of them in use.
fn small_world(rng: &mut Rng) -> Bench {
    let mut bench = Bench::new();
    for n in 0..1 + rng.below(6) {
        let rack = rng.pick(&["rack=r1", "rack=r1", "rack=r2", ""]);
        bench.line(&format!("node n{n} gpus={} cpu={} {rack}", rng.below(5), 1 + rng.below(6)));
    }
    for n in 0..rng.below(5) {
        bench.line(&format!("gang busy{n} {} never", request(rng, 2)));
    }
    bench.line("policy fifo-overtake");
    bench.line("plan");
    for n in (0..5).filter(|_| rng.percent(40)) {
        let name = format!("busy{n}");
        let seated = |id: GangId| bench.world.gang(id).is_some_and(|gang| !gang.is_pending());
        if bench.world.gang_named(&name).is_some_and(seated) {
            bench.line(&format!("end {name}"));
        }
    }
    bench
}

fn request(rng: &mut Rng, most: usize) -> String {
    let gpu =
        rng.pick(&["1gpu", "2gpu", "3gpu", "0.5gpu", "0.4gpu", "2*0.5gpu", "2*0.3gpu", "0gpu"]);
    format!("{}x{gpu}/{}cpu", 1 + rng.below(most), 1 + rng.below(2))
}

/// What is free on a node, counted from its members and not from the World's index.
#[derive(Clone)]
struct Free {
    devices: Vec<u16>,
    cpu: u64,
}

fn free(world: &World, node: NodeIdx) -> Free {
    let shape = world.class(world.node(node).expect("it is here").class);
    let cpu = shape.allocatable.iter().find(|(name, _)| world.names().name(*name) == CPU);
    let mut free =
        Free { devices: vec![1_000; usize::from(shape.gpus)], cpu: cpu.map_or(0, |(_, n)| n) };
    for (_, gang) in world.gangs() {
        for seat in gang.seats.iter().filter(|seat| seat.node == node) {
            let request = &gang.spec.roles[usize::from(seat.role)].request;
            free.cpu -= request.amounts[CPU] * u64::from(seat.members);
            for device in seat.devices.iter() {
                free.devices[device] -= request.gpu.as_ref().map_or(0, |gpu| gpu.share);
            }
        }
    }
    free
}

/// The most members that fit on a node, found by trying every choice of devices for every one of them.
fn most(free: &Free, gang: &Gang, wanted: u32) -> u32 {
    let request = &gang.spec.roles[0].request;
    let (count, share) = request.gpu.as_ref().map_or((0, 0), |gpu| (gpu.count, gpu.share));
    if wanted == 0 || free.cpu < request.amounts[CPU] {
        return 0;
    }
    let sets = (0u32..1 << free.devices.len()).filter(|set| set.count_ones() == u32::from(count));
    let mut best = 0;
    for set in sets {
        let mut left = Free { cpu: free.cpu - request.amounts[CPU], ..free.clone() };
        let has = |(i, free): (usize, &u16)| set >> i & 1 == 0 || *free >= share;
        if left.devices.iter().enumerate().all(has) {
            let taken = left.devices.iter_mut().enumerate().filter(|(i, _)| set >> i & 1 == 1);
            taken.for_each(|(_, free)| *free -= share);
            best = best.max(1 + most(&left, gang, wanted - 1));
        }
    }
    best
}

/// Whether the gang fits: in one domain of its level when it must stay within one, else anywhere.
fn fits(world: &World, gang: &Gang) -> bool {
    let wanted = gang.spec.roles[0].min;
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for (idx, node) in world.nodes() {
        let place = match gang.level {
            None => Some(String::new()),
            Some(Level::Node) => Some(node.name.to_string()),
            Some(Level::Domain(level)) => {
                let label = &world.topology().levels().0[level.index()].label;
                world.topology().label_at(node.leaf, label).map(|name| name.to_string())
            }
        };
        if let Some(place) = place {
            *places.entry(place).or_default() += most(&free(world, idx), gang, wanted);
        }
    }
    places.values().any(|fit| *fit >= wanted)
}

fn place_agrees_with_brute_force(test: &str, options: &str) {
    let (mut placed, mut refused) = (0, 0);
    for_seeds(test, 200, |rng| {
        let mut bench = small_world(rng);
        let request = request(rng, 5);
        bench.line(&format!("gang probe {request} {options}"));
        let id = bench.world.gang_named("probe").expect("it was submitted");
        let gang = bench.world.gang(id).expect("it waits");
        let found = place(&mut Scratch::new(&bench.world), &mut Fits::default(), gang);
        let truth = fits(&bench.world, gang);
        assert_eq!(found.is_ok(), truth, "{request} {options}: {found:?}\n{}", bench.out);
        placed += u32::from(truth);
        refused += u32::from(!truth);
        if let Ok(seats) = found {
            admit(&mut bench, id, seats);
        }
    });
    let both = placed >= 20 && refused >= 20;
    assert!(both || super::seeds::chosen().is_some(), "{placed} placed, {refused} refused");
}

fn admit(bench: &mut Bench, gang: GangId, seats: Vec<Seat>) {
    let told = bench.tell(Event::Decided(Action::Admit { gang, seats }));
    assert_eq!(told, Ok(()), "seats that were found are free");
}

#[test]
fn a_place_is_found_exactly_when_there_is_one() {
    place_agrees_with_brute_force("a_place_is_found_exactly_when_there_is_one", "");
}

#[test]
fn a_rack_is_found_exactly_when_there_is_one() {
    let options = "topology=required:rack";
    place_agrees_with_brute_force("a_rack_is_found_exactly_when_there_is_one", options);
}

#[test]
fn a_node_is_found_exactly_when_there_is_one() {
    let options = "topology=required:node";
    place_agrees_with_brute_force("a_node_is_found_exactly_when_there_is_one", options);
}

#[test]
fn preference_is_never_a_reason_not_to_fit() {
    let options = "topology=preferred:rack wish:50:rack=r2 wish:10:zone=none";
    // A preferred level is no level to fit in: brute force must not look at it.
    for_seeds("preference_is_never_a_reason_not_to_fit", 100, |rng| {
        let mut bench = small_world(rng);
        let request = request(rng, 5);
        bench.line(&format!("gang plain {request}"));
        bench.line(&format!("gang picky {request} {options}"));
        let gang = |name| bench.world.gang_named(name).and_then(|id| bench.world.gang(id));
        let (plain, picky) = (gang("plain").expect("waits"), gang("picky").expect("waits"));
        let found = place(&mut Scratch::new(&bench.world), &mut Fits::default(), picky);
        assert_eq!(found.is_ok(), fits(&bench.world, plain), "{request}: {found:?}");
    });
}

/// The sum of a role's name preferences that a node meets, every list read through.
fn granted(gang: &Gang, name: &str) -> u32 {
    let wishes = gang.spec.roles[0].constraints.prefer.iter();
    let granted = wishes.filter(|wish| wish.term.iter().all(|one| one.holds(Some(name))));
    granted.map(|wish| u32::from(wish.weight)).sum()
}

#[test]
fn name_preferences_are_met_as_far_as_there_is_room() {
    let (mut choices, mut tried) = (0, 0);
    for_seeds("name_preferences_are_met_as_far_as_there_is_room", 200, |rng| {
        let mut bench = small_world(rng);
        let mut wishes = String::new();
        for _ in 0..1 + rng.below(3) {
            let names: Vec<String> =
                (0..1 + rng.below(4)).map(|_| format!("n{}", rng.below(7))).collect();
            let how = rng.pick(&["=", "!="]);
            let weight = 1 + rng.below(50);
            wishes += &format!(" wish:{weight}:hostname{how}{}", names.join(","));
        }
        let gpu = rng.pick(&["1gpu", "0.5gpu", "2*0.3gpu"]);
        bench.line(&format!("gang picky {}x{gpu}/1cpu {wishes}", 1 + rng.below(3)));
        let id = bench.world.gang_named("picky").expect("it was submitted");
        let gang = bench.world.gang(id).expect("it waits");
        let Ok(seats) = place(&mut Scratch::new(&bench.world), &mut Fits::default(), gang) else {
            return;
        };
        let wanted = gang.spec.roles[0].min;
        let mut rooms: Vec<(u32, u32)> = bench
            .world
            .nodes()
            .map(|(idx, node)| {
                (granted(gang, &node.name), most(&free(&bench.world, idx), gang, wanted))
            })
            .filter(|(_, room)| *room > 0)
            .collect();
        rooms.sort_unstable_by_key(|(score, _)| std::cmp::Reverse(*score));
        let mut seated = 0;
        let lowest = rooms.iter().find(|(_, room)| {
            seated += room;
            seated >= wanted
        });
        let (floor, _) = lowest.expect("it was placed");
        for seat in &seats {
            let name = &bench.world.node(seat.node).expect("it is here").name;
            assert!(granted(gang, name) >= *floor, "{wishes}: {seats:?}\n{}", bench.out);
        }
        tried += 1;
        choices += u32::from(rooms.iter().any(|(score, _)| score < floor));
    });
    let both = choices >= 20 && tried >= 60;
    assert!(both || super::seeds::chosen().is_some(), "{choices} of {tried} had a choice");
}
