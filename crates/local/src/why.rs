//! Explains in sentences why a gang waits, when it is expected to start, and what would start it now.

use muster_api::figures::{count, span};
use muster_api::words;
use muster_core::World;
use muster_core::id::GangId;
use muster_core::verdict::{Considered, Help, Verdict, Way};
use muster_plan::Why;

/// All sentences about one gang, the most important first.
pub fn lines(world: &World, id: GangId, why: &Why) -> Vec<String> {
    let name = world.gang(id).map_or("", |gang| &*gang.spec.name);
    let mut lines = vec![format!("{name}: {}", words::verdict(world, id, &why.verdict))];
    lines.extend(stopped(world, id));
    lines.extend(outlook(world, why));
    lines.extend(compared(&why.verdict));
    let helps =
        why.helps.iter().map(|one| format!("  it would start now {}", help(world, id, one)));
    lines.extend(helps);
    lines
}

/// Why a waiting gang was stopped, if it ran before.
fn stopped(world: &World, id: GangId) -> Option<String> {
    let gang = world.gang(id).filter(|gang| gang.is_pending())?;
    let why = words::stop(world, gang.stop?);
    Some(format!("  it ran before and was stopped: {why}; {}", words::kept(gang)))
}

/// The alternatives that the planner compared, and its choice.
fn compared(verdict: &Verdict) -> Vec<String> {
    let (Verdict::Waiting { ways, .. } | Verdict::Provisioning { ways, .. }) = verdict else {
        return Vec::new();
    };
    let one = |considered: &Considered| {
        let Considered { way, delay, cost, others, lost, chosen } = considered;
        let what = match way {
            Way::Wait => "wait for others to end",
            Way::Buy => "buy nodes",
            Way::Shrink => "have others go on with fewer members",
            Way::Reclaim => "take back what was lent",
            Way::Rotate => "have its turn",
            Way::Preempt => "stop others of lower priority",
            Way::Move => "move others elsewhere",
        };
        let delay = delay.map_or_else(|| "no known time".to_owned(), span);
        let mut text = format!("  to {what}: starts in {delay}, costs {cost}");
        if *others > 0 {
            let (gangs, hours) = (count(*others as usize, "gang"), lost.as_secs_f64() / 3_600.0);
            text += &format!(", {gangs} losing {hours:.1} GPU-hours");
        }
        if *chosen { text + " (taken)" } else { text }
    };
    ways.iter().map(one).collect()
}

fn outlook(world: &World, why: &Why) -> Option<String> {
    if !matches!(why.verdict, Verdict::Waiting { .. }) {
        return None;
    }
    Some(match why.start {
        Some(start) => {
            let wait = span(start.since(world.now()));
            format!(
                "  it is expected to start in {wait}, if run times are as declared and no other gang is submitted"
            )
        }
        None => "  when it starts is not known: nodes have to come first".to_owned(),
    })
}

/// What would help, to follow "it would start now".
fn help(world: &World, id: GangId, help: &Help) -> String {
    match help {
        Help::Closeness => "if its closeness were preferred, not required".to_owned(),
        Help::Nodes { offering, count: more } => {
            let pool = &world.pools()[offering.pool].spec.name;
            let spec = &world.offering(*offering).spec;
            let nodes = count(*more as usize, "more node");
            let place =
                if spec.zone.is_empty() { String::new() } else { format!(" in {}", spec.zone) };
            format!("with {nodes} of pool {pool} ({}{place})", spec.instance_type)
        }
        Help::NodesLike { node, count: more } => {
            let name = world.node_name(*node).map_or("those here", |name| name);
            format!("with {} like {name}", count(*more as usize, "more node"))
        }
        Help::Priority { priority, instead_of } if instead_of.is_empty() => {
            format!("at priority {priority}")
        }
        Help::Priority { priority, instead_of } => {
            let names = words::gangs(world, instead_of);
            format!("at priority {priority}, if {names} made way")
        }
        Help::Members { role, count } => {
            let spec = world.gang(id).and_then(|gang| gang.spec.roles.get(usize::from(*role)));
            let (name, of) = spec.map_or(("members", 0), |role| (&*role.name, role.min));
            format!("with {count} of {of} x {name}")
        }
    }
}
