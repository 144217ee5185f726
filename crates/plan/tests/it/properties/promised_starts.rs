//! A promised start is kept: no backfilled gang delays it.

use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::Action;
use muster_core::time::Time;
use muster_core::{Event, Plan, Verdict};
use muster_plan::plan;

use super::seeds::{Rng, chosen, for_seeds};
use crate::dsl::Bench;

/// Nodes of two kinds in three racks, and room for a dozen gangs.
fn begin(rng: &mut Rng, order: &str) -> Bench {
    let mut bench = Bench::new();
    bench.line(&format!("policy {order}"));
    for n in 0..3 + rng.below(8) {
        let rack = rng.pick(&["rack=r1", "rack=r1", "rack=r2", "rack=r3", ""]);
        let kind = rng.pick(&["gpus=8", "gpus=8", "gpus=4", "gpus=8 model=V100", "cpu=9"]);
        bench.line(&format!("node n{n} {kind} {rack}"));
    }
    bench
}

fn submit(rng: &mut Rng, bench: &mut Bench, name: usize) {
    let asks = ["8gpu", "8gpu", "4gpu", "2gpu", "0.5gpu", "3*0.4gpu", "4cpu", "1gpu/30cpu"];
    let (count, ask) = (1 + rng.below(5), rng.pick(&asks));
    let length = rng.pick(&["for=1m", "for=10m", "for=30m", "for=1h", "for=3h", "for=9h", ""]);
    let near = rng.pick(&["", "", "topology=required:rack", "topology=preferred:rack"]);
    let wish = rng.pick(&["", "", "", "model=V100", "if:rack=r1", "wish:9:rack=r2"]);
    let user = rng.pick(&["user=ann", "user=bob"]);
    bench.line(&format!("gang g{name} {count}x{ask} {length} {near} {wish} {user}"));
}

/// A gang starts, a gang ends, or time passes; some gangs end early, some late.
fn advance(rng: &mut Rng, bench: &mut Bench) {
    let (mut admitted, mut running) = (Vec::new(), Vec::new());
    for (_, gang) in bench.world.gangs() {
        match gang.phase {
            Phase::Admitted { .. } => admitted.push(gang.spec.name.to_string()),
            Phase::Running { .. } => running.push(gang.spec.name.to_string()),
            Phase::Waiting | Phase::Assembling(_) | Phase::Stopping => {}
        }
    }
    admitted.iter().for_each(|name| bench.line(&format!("started {name}")));
    if !running.is_empty() && rng.percent(50) {
        bench.line(&format!("end {}", running[rng.below(running.len())]));
    }
    bench.line(rng.pick(&["+1m", "+5m", "+20m", "+1h"]));
}

fn act(bench: &mut Bench, decided: &Plan) -> usize {
    let mut admitted = 0;
    for action in decided.actions() {
        admitted += usize::from(matches!(action, Action::Admit { .. }));
        let told = bench.tell(Event::Decided(action.clone()));
        assert_eq!(told, Ok(()), "refused the moment it was decided: {action:?}");
    }
    admitted
}

/// Whether a gang that was promised a start still is, for no later, or need not wait at all.
fn kept(again: &Plan, head: GangId, start: Time) -> bool {
    let promised = again.reservations.iter().any(|(gang, now)| *gang == head && *now <= start);
    let waits = |(gang, verdict): &(GangId, Verdict)| {
        *gang == head && matches!(verdict, Verdict::Waiting { .. })
    };
    promised || !again.verdicts.iter().any(waits)
}

/// Plans again after applying the plan, at the same instant and so with the same predictions.
fn promises_are_kept(test: &str, order: &str) {
    let (mut promises, mut passed) = (0, 0);
    for_seeds(test, 60, |rng| {
        let mut bench = begin(rng, order);
        for step in 0..40 {
            if rng.percent(70) {
                submit(rng, &mut bench, step);
            }
            let decided = plan(&bench.world, bench.now, &bench.policy);
            bench.check_plan(&decided);
            let admitted = act(&mut bench, &decided);
            let again = plan(&bench.world, bench.now, &bench.policy);
            // An order rolled back in this very plan brings an older gang back, which goes first.
            let older = decided.actions().any(|action| matches!(action, Action::RollBack { .. }));
            if let ([(head, start)], false) = (&decided.reservations[..], older) {
                let (head, start) = (*head, *start);
                assert!(start > bench.now, "a promise is about the future");
                let kept = kept(&again, head, start);
                assert!(kept, "{head:?} was promised {start:?}: {decided:#?}, then {again:#?}");
                promises += 1;
                passed += admitted;
            }
            assert!(decided.reservations.len() <= 1, "one promise at a time");
            advance(rng, &mut bench);
        }
    });
    let often = promises >= 200 && passed >= 50;
    assert!(often || chosen().is_some(), "{promises} promises, {passed} went before");
}

#[test]
fn no_backfilled_gang_delays_the_first() {
    promises_are_kept("no_backfilled_gang_delays_the_first", "easy");
}

#[test]
fn no_short_backfilled_gang_delays_the_first() {
    promises_are_kept("no_short_backfilled_gang_delays_the_first", "easy-sjbf");
}

#[test]
fn no_backfilled_gang_predicted_short_delays_the_first() {
    let test = "no_backfilled_gang_predicted_short_delays_the_first";
    promises_are_kept(test, "easy-plus-plus");
}
