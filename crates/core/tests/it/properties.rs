//! After any sequence of events the counters are right, and refused events left no trace.

use std::collections::BTreeMap;

use muster_core::time::{Span, Time};
use muster_core::topology::Levels;
use muster_core::{Event, World};

use crate::audit::audit;
use crate::random_events;
use crate::seeds::{self, for_seeds};

#[test]
fn incremental_counters_equal_a_recount() {
    let mut accepted: BTreeMap<String, u32> = BTreeMap::new();
    for_seeds("incremental_counters_equal_a_recount", 120, |rng| {
        let mut world = World::new(Levels::default());
        for step in 0..200 {
            let event = random_events::event(rng, &world);
            let told = world.apply(Time::ZERO + Span::secs(step), &event);
            if told.is_ok() {
                *accepted.entry(kind(&event)).or_default() += 1;
            }
            audit(&world);
        }
    });
    // Every kind of event is often accepted, else the property says little.
    let rare = accepted.iter().find(|(_, times)| **times < 20);
    assert!(accepted.len() == 35 && rare.is_none() || seeds::chosen().is_some(), "{accepted:#?}");
}

/// The event's name, and the action's if it is a decision.
fn kind(event: &Event) -> String {
    let text = match event {
        Event::Decided(action) => format!("{action:?}"),
        other => format!("{other:?}"),
    };
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

#[test]
fn refused_event_leaves_no_trace() {
    let mut refusals: BTreeMap<String, u32> = BTreeMap::new();
    for_seeds("refused_event_leaves_no_trace", 25, |rng| {
        let mut world = World::new(Levels::default());
        for _ in 0..150 {
            let event = random_events::event(rng, &world);
            let before = format!("{world:?}");
            if let Err(refusal) = world.apply(Time::ZERO, &event) {
                assert_eq!(format!("{world:?}"), before, "{event:?} was refused: {refusal}");
                let name = format!("{refusal:?}");
                let words: Vec<&str> = name.split(['(', ')', '"']).take(2).collect();
                let stale = words[0] == "Stale";
                *refusals.entry(words[..1 + usize::from(stale)].join(" ")).or_default() += 1;
            }
        }
    });
    assert!(refusals.len() >= 12 || seeds::chosen().is_some(), "{refusals:#?}");
}

#[test]
fn time_never_goes_back() {
    let mut world = World::new(Levels::default());
    world.apply(Time(5_000), &Event::Tick).expect("time passes");
    world.apply(Time(3_000), &Event::Tick).expect("a late event is taken in");
    assert_eq!(world.now(), Time(5_000));
}
