//! The scratch overlay: a dropped trial leaves no trace.

use muster_core::gang::Gang;
use muster_core::id::{DomainIdx, GangId, Id, OfferingRef, StateIdx};
use muster_core::queue::Usage;
use muster_plan::place::{Fits, place};
use muster_plan::scratch::Scratch;

use super::seeds::{Rng, for_seeds};
use super::story::Story;

/// Everything an overlay shows of a World.
#[derive(PartialEq, Debug)]
struct Shown {
    tallies: Vec<Vec<(StateIdx, u32)>>,
    /// Slots per leaf and state.
    groups: Vec<(DomainIdx, StateIdx, Vec<u32>)>,
    rooms: Vec<u32>,
    queues: Vec<Usage>,
    paper: usize,
}

fn show(scratch: &Scratch<'_>) -> Shown {
    let world = scratch.world;
    let domains: Vec<DomainIdx> = (0..world.topology().len()).map(DomainIdx::from_index).collect();
    let mut groups = Vec::new();
    for leaf in domains.iter().filter(|domain| world.topology().is_leaf(**domain)) {
        for state in (0..scratch.state_count()).map(StateIdx::from_index) {
            let slots: Vec<u32> = scratch.groups(*leaf).slots_in(state).collect();
            if !slots.is_empty() {
                groups.push((*leaf, state, slots));
            }
        }
    }
    Shown {
        tallies: domains.iter().map(|domain| scratch.tally(*domain).to_vec()).collect(),
        groups,
        rooms: offerings(scratch).iter().map(|offering| scratch.room(*offering)).collect(),
        queues: world.queues().ids().map(|queue| scratch.queue_usage(queue).clone()).collect(),
        paper: scratch.paper().len(),
    }
}

fn offerings(scratch: &Scratch<'_>) -> Vec<OfferingRef> {
    let pools = scratch.world.pools().iter();
    pools
        .flat_map(|(pool, listed)| {
            (0..listed.offerings.len() as u16).map(move |slot| OfferingRef { pool, slot })
        })
        .collect()
}

/// A World some way into a random case, with gangs that wait in it.
fn some_world(rng: &mut Rng) -> Story {
    let mut story = Story::begin(rng);
    for _ in 0..25 {
        story.step(rng);
        if rng.percent(30) {
            let decided = story.decide();
            story.act(&decided);
        }
    }
    (0..6).for_each(|_| story.gang(rng));
    story
}

fn waiting(story: &Story) -> Vec<(GangId, &Gang)> {
    story.bench.world.gangs().filter(|(_, gang)| gang.is_pending()).collect()
}

/// Places, charges and opens nodes on paper, at random, some of it in trials within.
fn change_at_random(
    rng: &mut Rng,
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gangs: &[(GangId, &Gang)],
    depth: u32,
) {
    for _ in 0..1 + rng.below(4) {
        let (_, gang) = gangs[rng.below(gangs.len())];
        match rng.below(5) {
            4 => {
                let known = offerings(scratch);
                if !known.is_empty() {
                    let offering = scratch.world.offering(known[rng.below(known.len())]);
                    scratch.appear(offering.class, offering.leaf);
                }
            }
            0 => scratch.charge(gang, gang.sigs[0], 1),
            1 => {
                let known = offerings(scratch);
                if !known.is_empty() {
                    scratch.open_paper(known[rng.below(known.len())]);
                }
            }
            2 if depth > 0 => {
                let before = show(scratch);
                let mut trial = scratch.trial();
                change_at_random(rng, &mut trial, fits, gangs, depth - 1);
                if rng.percent(50) {
                    trial.keep();
                } else {
                    drop(trial);
                    assert_eq!(show(scratch), before, "a trial within that was dropped");
                }
            }
            _ => {
                let _ = place(scratch, fits, gang);
            }
        }
    }
}

#[test]
fn a_dropped_trial_leaves_no_trace() {
    for_seeds("a_dropped_trial_leaves_no_trace", 60, |rng| {
        let story = some_world(rng);
        let gangs = waiting(&story);
        let (mut scratch, mut fits) = (Scratch::new(&story.bench.world), Fits::default());
        for _ in 0..6 {
            let before = show(&scratch);
            let mut trial = scratch.trial();
            change_at_random(rng, &mut trial, &mut fits, &gangs, 3);
            drop(trial);
            assert_eq!(show(&scratch), before);
            // What is done outside of any trial stays, also when a later trial is dropped.
            change_at_random(rng, &mut scratch, &mut fits, &gangs, 2);
        }
    });
}

#[test]
fn a_kept_trial_shows_the_same_as_no_trial() {
    for_seeds("a_kept_trial_shows_the_same_as_no_trial", 30, |rng| {
        let story = some_world(rng);
        let gangs = waiting(&story);
        let mut with = Scratch::new(&story.bench.world);
        let mut without = Scratch::new(&story.bench.world);
        for (_, gang) in &gangs {
            let mut trial = with.trial();
            let kept = place(&mut trial, &mut Fits::default(), gang);
            trial.keep();
            assert_eq!(kept, place(&mut without, &mut Fits::default(), gang));
        }
        assert_eq!(show(&with), show(&without));
    });
}

#[test]
fn a_failed_placement_leaves_no_trace_and_a_good_one_does() {
    let (mut failed, mut placed) = (0, 0);
    for_seeds("a_failed_placement_leaves_no_trace_and_a_good_one_does", 60, |rng| {
        let story = some_world(rng);
        let (mut scratch, mut fits) = (Scratch::new(&story.bench.world), Fits::default());
        for (_, gang) in waiting(&story) {
            let before = show(&scratch);
            let found = place(&mut scratch, &mut fits, gang);
            assert_eq!(show(&scratch) == before, found.is_err(), "{:?}: {found:?}", gang.spec);
            failed += u32::from(found.is_err());
            placed += u32::from(found.is_ok());
        }
    });
    assert!(failed >= 25 && placed >= 25 || super::seeds::chosen().is_some());
}
