//! The unfinished jobs of a simulation, and why they are unfinished.

use std::collections::BTreeMap;

use muster_sim::Sim;

use crate::words;

/// A line for every unfinished job, in the order of the input.
pub(crate) fn unfinished(sim: &Sim) -> Vec<String> {
    let world = sim.world();
    let standing = sim.explain();
    let verdicts: BTreeMap<_, _> = standing.verdicts.iter().map(|(id, v)| (*id, v)).collect();
    let outcomes = sim.accounts().outcomes();
    let open = sim.jobs().iter().zip(outcomes).filter(|(_, outcome)| outcome.ended.is_none());
    open.map(|(job, outcome)| {
        let name = &job.gang.name;
        let standing = world.gang_named(name).and_then(|id| Some((id, *verdicts.get(&id)?)));
        let why = match standing {
            Some((id, verdict)) => words::verdict(world, id, verdict),
            None if outcome.submitted.is_some() => "was cancelled".to_owned(),
            None if job.submit > sim.now() => "was not submitted yet".to_owned(),
            None => "was refused".to_owned(),
        };
        format!("{name}: {why}")
    })
    .collect()
}
