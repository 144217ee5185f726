//! Says why a gang of a simulation waits.

use muster_sim::Sim;

/// The explanation for one gang of a simulation that has stopped.
pub(crate) fn lines(sim: &Sim, name: &str) -> Vec<String> {
    let world = sim.world();
    let Some(id) = world.gang_named(name) else {
        let job = sim.jobs().iter().position(|job| *job.gang.name == *name);
        let known = job.map(|job| &sim.accounts().outcomes()[job]);
        return vec![match known {
            None => format!("{name}: there is no such gang"),
            Some(outcome) if outcome.ended.is_some() => format!("{name}: it has ended"),
            Some(outcome) if outcome.submitted.is_some() => format!("{name}: was cancelled"),
            Some(_) => format!("{name}: was not submitted yet, or refused"),
        }];
    };
    match sim.why(id) {
        Some(why) => muster_local::why::lines(world, id, &why),
        None => vec![format!("{name}: nothing was decided yet")],
    }
}
