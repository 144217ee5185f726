//! Tenants of random worlds: half of the worlds have some, and their guarantees are feasible.

use std::sync::Arc;

use muster_core::gang::GangSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::Span;
use muster_sim::faults::{Drawn, draw};

const SEEDS: u64 = 400;

fn worlds() -> impl Iterator<Item = Drawn> {
    (0..SEEDS).map(draw)
}

fn children<'a>(queues: &'a [QueueSpec], of: &QueueSpec) -> impl Iterator<Item = &'a QueueSpec> {
    let name: Arc<str> = of.name.clone();
    queues.iter().filter(move |queue| queue.parent.as_ref() == Some(&name))
}

#[test]
fn guarantees_stay_within_limits_and_parent_guarantees() {
    let mut guarantees = 0;
    for Drawn { setup, .. } in worlds() {
        for queue in &setup.queues {
            let (sure, limit) = (queue.guaranteed.gpu_milli, queue.limit.gpu_milli);
            assert!(limit.is_none_or(|limit| sure.unwrap_or(0) <= limit), "{queue:?}");
            let below =
                children(&setup.queues, queue).filter_map(|child| child.guaranteed.gpu_milli);
            let below: u64 = below.sum();
            assert!(sure.or(limit).is_none_or(|sure| below <= sure), "{queue:?} above {below}");
            guarantees += usize::from(sure.is_some());
        }
    }
    assert!(guarantees > 100, "{guarantees} guarantees");
}

/// GPUs of a gang's minimum, in thousandths.
fn asks(gang: &GangSpec) -> u64 {
    gang.roles.iter().map(|role| role.request.gpu_milli() * u64::from(role.min)).sum()
}

#[test]
fn only_infeasible_gangs_exceed_the_limit_of_their_user() {
    let (mut limits, mut over) = (0, 0);
    for Drawn { setup, infeasible, .. } in worlds() {
        for queue in &setup.queues {
            let Some(limit) = queue.user_limit.gpu_milli else { continue };
            limits += 1;
            let here = |gang: &GangSpec| {
                gang.queue == queue.name
                    || children(&setup.queues, queue).any(|child| child.name == gang.queue)
            };
            for gang in setup.jobs.iter().map(|job| &job.gang).filter(|gang| here(gang)) {
                let fine = asks(gang) <= limit;
                assert!(fine || infeasible.contains(&gang.name), "{} of {queue:?}", gang.name);
                over += usize::from(!fine);
            }
        }
    }
    assert!(limits > 100 && over > 5, "{limits} limits, {over} gangs beyond them");
}

#[test]
fn half_of_the_worlds_have_tenants_of_every_kind() {
    let (mut worlds_with, mut easy, mut impossible, mut dear) = (0, 0, 0, 0);
    let (mut weights, mut forgetful) = ([0; 5], 0);
    for Drawn { setup, .. } in worlds() {
        let deadlines = setup.jobs.iter().filter_map(|job| Some((job, job.gang.deadline?)));
        let missed = deadlines.map(|(job, deadline)| deadline < job.submit + job.run);
        let missed: Vec<bool> = missed.collect();
        impossible += missed.iter().filter(|missed| **missed).count();
        easy += missed.iter().filter(|missed| !**missed).count();
        dear += setup.jobs.iter().filter(|job| job.gang.cost_of_waiting.is_some()).count();
        setup.queues.iter().for_each(|queue| weights[queue.weight as usize] += 1);
        let forgets = |queue: &&QueueSpec| queue.half_life == Some(Span::ZERO);
        forgetful += setup.queues.iter().filter(forgets).count();
        worlds_with += usize::from(setup.queues.iter().any(|queue| queue.weight > 1));
    }
    assert!((SEEDS as usize / 3..SEEDS as usize * 2 / 3).contains(&worlds_with), "{worlds_with}");
    assert!(easy > 300 && impossible > 300 && dear > 300, "{easy} {impossible} {dear}");
    assert!(weights[1..].iter().all(|count| *count > 50) && forgetful > 50, "{weights:?}");
}
