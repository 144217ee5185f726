//! The sentences that explain verdicts to users: why a gang waits, is stopped, or lost its order.
//!
//! The CLI, the dashboard, events and statuses all use these, so that they agree.

use muster_core::World;
use muster_core::allowed::{Bounded, Excess};
use muster_core::gang::{Closeness, Gang, GangSpec, members_of};
use muster_core::id::{ClaimId, GangId, ResourceIdx};
use muster_core::order::{ClaimFailure, ClaimStage, RollbackReason};
use muster_core::plan::{StopReason, Target};
use muster_core::pool::Lack;
use muster_core::resource::display_amount;
use muster_core::time::Span;
use muster_core::verdict::{Blocker, Verdict};

use crate::words::figures;

/// A gang's verdict in a sentence.
pub fn verdict(world: &World, gang: GangId, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted => "starting".to_owned(),
        Verdict::Running => running(world, gang),
        Verdict::Stopping => {
            let why = world.gang(gang).and_then(|gang| gang.stop);
            why.map_or("stopping".to_owned(), |why| format!("stopping: {}", stop(world, why)))
        }
        Verdict::Provisioning { total: 0, leaving, .. } => {
            format!("waits until {} stopped", victims(*leaving, "has", "have"))
        }
        Verdict::Provisioning { ready, total, leaving: 0, .. } => {
            format!("{ready}/{total} nodes ready")
        }
        Verdict::Provisioning { ready, total, leaving, .. } => {
            format!(
                "{ready}/{total} nodes ready, then {} to be preempted",
                victims(*leaving, "is", "are")
            )
        }
        Verdict::Waiting { position, blockers, start, late, .. } => {
            let mut text = format!("#{position} in line: {}", join(world, gang, blockers));
            if let Some(start) = start {
                text += &format!(
                    "; starts in {} at the latest",
                    figures::span(start.since(world.now()))
                );
            }
            if let Some(late) = late {
                text += &format!("; its deadline is missed by {}", figures::span(late.by));
            }
            text
        }
        Verdict::Impossible { blockers }
            if matches!(blockers.first(), Some(Blocker::NotAllowed { .. })) =>
        {
            format!("not allowed: {}", join(world, gang, blockers))
        }
        Verdict::Impossible { blockers } => {
            format!("can never run: {}", join(world, gang, blockers))
        }
    }
}

/// An elastic gang reports its number of members; a rigid one has all of them, unless it was enlarged.
fn running(world: &World, gang: GangId) -> String {
    match world.gang(gang).filter(|gang| !gang.spec.is_rigid() || gang.is_short()) {
        Some(gang) if gang.is_short() => {
            let roles = 0..gang.spec.roles.len() as u16;
            let lacks = |role| gang.needs_in(role).saturating_sub(gang.members_in(role));
            let members = figures::count(members_of(&gang.seats) as usize, "member");
            format!(
                "running with {members}, and waits for room for {} more",
                roles.map(lacks).sum::<u32>()
            )
        }
        Some(gang) => {
            let members = members_of(&gang.seats) as usize;
            format!("running with {}", figures::count(members, "member"))
        }
        None => "running".to_owned(),
    }
}

fn join(world: &World, gang: GangId, blockers: &[Blocker]) -> String {
    let words: Vec<String> = blockers.iter().map(|blocker| one(world, gang, blocker)).collect();
    words.join("; ")
}

fn one(world: &World, gang: GangId, blocker: &Blocker) -> String {
    let role = |role: u16| {
        let spec = world.gang(gang).and_then(|gang| gang.spec.roles.get(usize::from(role)));
        spec.map_or_else(|| format!("role {role}"), |role| role.name.to_string())
    };
    // If all members must be in one domain, counts of members are those of the best domain.
    let close = match world.gang(gang).and_then(|gang| gang.spec.closeness.as_ref()) {
        Some(Closeness::Required(level)) => format!(" in one {level}"),
        Some(Closeness::Preferred(_)) | None => String::new(),
    };
    let until = |time: muster_core::time::Time| figures::span(time.since(world.now()));
    match blocker {
        Blocker::NoFreeCapacity { role: r, fits, needs } => {
            format!("{fits} of {needs} x {} fit on free nodes{close}", role(*r))
        }
        Blocker::RolesCompete => "its roles do not fit on free nodes together".to_owned(),
        Blocker::Behind(ahead) => {
            format!("behind {}", crate::words::verdicts::gang(world, *ahead))
        }
        Blocker::SearchSpent => "the search for victims ended at gangs ahead of it".to_owned(),
        Blocker::NotConsidered => "not considered in this cycle".to_owned(),
        Blocker::QueueLimit { queue, resource, held, wants, limit } => {
            let queue = &world.queue(*queue).spec.name;
            let amount = |amount| amount_of(world, *resource, amount);
            let (held, limit, wants) = (amount(*held), amount(*limit), amount(*wants));
            let name = resource_name(world, *resource);
            format!(
                "queue {queue} holds {held} of {limit} {name}, and this gang wants {wants} more"
            )
        }
        Blocker::QueueClosed { queue } => {
            let queue = world.queue(*queue);
            match queue.gone {
                true => format!("queue {} does not exist any more", queue.spec.name),
                false => format!("queue {} is closed", queue.spec.name),
            }
        }
        Blocker::UserLimit { queue, resource, held, wants, limit } => {
            let queue = &world.queue(*queue).spec.name;
            let amount = |amount| amount_of(world, *resource, amount);
            let (held, limit, wants) = (amount(*held), amount(*limit), amount(*wants));
            let name = resource_name(world, *resource);
            format!(
                "its user holds {held} of the {limit} {name} that queue {queue} allows one user, \
                 and this gang wants {wants} more"
            )
        }
        Blocker::NotAllowed { queue, excess } => {
            let name = world.gang(gang).map(|gang| &gang.spec);
            not_allowed(&world.queue(*queue).spec.name, name, excess)
        }
        Blocker::BeyondGuarantee { queue, resource, held, wants, guaranteed } => {
            let queue = &world.queue(*queue).spec.name;
            let amount = |amount| amount_of(world, *resource, amount);
            let (held, sure, wants) = (amount(*held), amount(*guaranteed), amount(*wants));
            let name = resource_name(world, *resource);
            format!(
                "it cannot be preempted, queue {queue} is guaranteed {sure} {name}, of which such gangs hold {held}, \
                 and this gang wants {wants} more: it starts when they fit, when it is preemptible, or when the queue says \
                 `allowNonPreemptible: Always`"
            )
        }
        Blocker::CheaperToWait { start, wait, buy } => {
            let start = until(*start);
            format!("waiting {start} costs {wait}, and buying nodes {buy}")
        }
        Blocker::ProvisioningOff => "no nodes are bought for it".to_owned(),
        Blocker::NoOffering { role: r } => format!("no offering suits {}", role(*r)),
        Blocker::PoolsFull { room: 0 } => "pools are at their limits".to_owned(),
        Blocker::PoolsFull { room } => {
            format!("pools may add only {}", figures::count(*room as usize, "node"))
        }
        Blocker::Budget { pool, limit, left } => {
            let name = &world.pools()[*pool].spec.name;
            format!("the budget of pool {name} is {limit} an hour, of which {left} is left")
        }
        Blocker::OfferingsAvoided { until: at } => {
            format!("offerings that failed are avoided for {}", until(*at))
        }
        Blocker::CoolingOff { until: at } => {
            format!("too many orders failed, next try in {}", until(*at))
        }
        Blocker::RoleFitsNowhere { role: r } => {
            format!("{} fits on no node and no offering, not even an empty one", role(*r))
        }
        Blocker::NeverEnough { role: r, most, needs, .. } => {
            format!("at most {most} of {needs} x {} could ever run at once{close}", role(*r))
        }
    }
}

/// The declaration of a gang that a queue does not allow.
fn not_allowed(queue: &str, gang: Option<&GangSpec>, excess: &Excess) -> String {
    match excess {
        Excess::Namespace => {
            let namespace = gang.map_or("its namespace", GangSpec::namespace);
            format!(
                "queue {queue} is not for gangs of namespace {namespace} (`namespaces` of the queue)"
            )
        }
        Excess::Priority { declared, allowed } => format!(
            "its priority is {declared}, and queue {queue} allows {allowed} at most (`maxPriority` of the queue)"
        ),
        Excess::NonPreemptible => format!(
            "it cannot be preempted, and queue {queue} admits no such gangs (`allowNonPreemptible: Never`)"
        ),
        Excess::CostOfWaiting { declared, allowed } => format!(
            "its `costOfWaiting` is {declared}, and queue {queue} allows {allowed} at most (`maxCostOfWaiting` of the \
             queue)"
        ),
        Excess::Duration { field, declared, allowed } => {
            let (field, bound) = match field {
                Bounded::Grace => ("disruption.grace", "maxGrace"),
                Bounded::MinRuntime => ("disruption.minRuntime", "maxMinRuntime"),
                Bounded::ProvisioningTimeout => ("provisioning.timeout", "maxProvisioningTimeout"),
            };
            format!(
                "its `{field}` is {declared}, and queue {queue} allows {allowed} at most (`{bound}` of the queue)"
            )
        }
    }
}

/// Why a gang is stopped.
pub fn stop(world: &World, reason: StopReason) -> String {
    match reason {
        StopReason::NodeLost(_) => "a node under it failed".to_owned(),
        StopReason::NodeFailing(_) => "a node under it is about to be lost".to_owned(),
        StopReason::Cancelled => "it was cancelled".to_owned(),
        StopReason::Moved => "it is moved to other nodes".to_owned(),
        StopReason::Preempted(by) => {
            format!("it is preempted for {} of higher priority", gang(world, by))
        }
        StopReason::Reclaimed(by) => {
            format!("{} reclaims what its queue had lent", gang(world, by))
        }
        StopReason::Rotated(by) => {
            format!("its time slice is over, and {} is next", gang(world, by))
        }
    }
}

/// How much of its work a stopped gang keeps.
pub fn kept(gang: &Gang) -> String {
    match gang.work.kept {
        Span::ZERO => "its work is lost".to_owned(),
        kept => format!("{} of its work is kept", figures::span(kept)),
    }
}

/// The name of a gang.
pub fn gang(world: &World, gang: GangId) -> String {
    world.gang(gang).map_or_else(|| "another gang".to_owned(), |gang| gang.spec.name.to_string())
}

/// The largest number of gangs that are named in one sentence.
const NAMED: usize = 5;

/// The names of several gangs, or of the first few.
pub fn gangs(world: &World, gangs: &[GangId]) -> String {
    let named: Vec<String> = gangs.iter().take(NAMED).map(|id| gang(world, *id)).collect();
    match (gangs.len().saturating_sub(NAMED), named.as_slice()) {
        (0, [rest @ .., last]) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        (0, _) => named.concat(),
        (more, _) => format!("{} and {more} more", named.join(", ")),
    }
}

/// The name of the resource of a limit.
fn resource_name(world: &World, resource: Option<ResourceIdx>) -> &str {
    resource.map_or("GPUs", |resource| world.names().name(resource))
}

/// An amount of a resource, in the unit of manifests.
fn amount_of(world: &World, resource: Option<ResourceIdx>, amount: u64) -> String {
    match resource {
        None => format!("{}", amount as f64 / 1_000.0),
        Some(resource) => display_amount(world.names().name(resource), amount).to_string(),
    }
}

/// The number of free nodes that a pool should have, and why.
pub fn target(target: &Target) -> String {
    let reasons = [
        ("always", target.warm),
        ("buffer", target.buffer),
        ("spare", target.spare),
        ("by schedule", target.scheduled),
        ("expected", target.expected),
    ];
    let listed: Vec<String> =
        reasons.iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{why} {n}")).collect();
    let why = if listed.is_empty() { "nothing is wanted".to_owned() } else { listed.join(", ") };
    let stopped = match target.stopped {
        0 => String::new(),
        stopped => format!(" and {} stopped", figures::count(stopped as usize, "node")),
    };
    format!("{} free{stopped}: {why}", figures::count(target.free as usize, "node"))
}

/// The zone of a claim as the end of a phrase; empty once the claim is forgotten.
fn zone_of(world: &World, claim: ClaimId) -> String {
    world.claims().get(&claim).map_or_else(String::new, |claim| {
        format!(" in {}", world.offering(claim.offering).spec.zone)
    })
}

/// Why an order was rolled back.
pub fn rollback(world: &World, reason: RollbackReason) -> String {
    match reason {
        RollbackReason::ClaimFailed(claim, failure) => {
            let zone = zone_of(world, claim);
            match failure {
                ClaimFailure::StockOut => format!("nodes{zone} are out of stock"),
                ClaimFailure::BootFailed => format!("a node{zone} did not boot"),
                ClaimFailure::GpusMissing => format!("a node{zone} lacks GPUs"),
                ClaimFailure::TooSmall => {
                    format!("a node{zone} is too small for its members")
                }
                ClaimFailure::Vanished => format!("a node{zone} vanished"),
                ClaimFailure::Throttled => format!("the provider{zone} throttles requests"),
            }
        }
        RollbackReason::Overdue(claim, stage) => {
            let zone = zone_of(world, claim);
            match stage {
                ClaimStage::Launch => format!("a node{zone} was not launched in time"),
                ClaimStage::Register => format!("a node{zone} did not join in time"),
                ClaimStage::Gpus => match world.lacks(claim) {
                    Some(Lack::Gpus) => format!("a node{zone} did not show its GPUs in time"),
                    Some(Lack::Resource(name)) => {
                        format!("a node{zone} did not show {name} in time")
                    }
                    None => format!("a node{zone} was not ready in time"),
                },
            }
        }
        RollbackReason::DeadlinePassed => "not complete in time".to_owned(),
        RollbackReason::NodeUnsuitable(_) => {
            "a node is not of the kind or in the place that was ordered".to_owned()
        }
        RollbackReason::NodeLost(_) => "a node of its placement is gone".to_owned(),
        RollbackReason::WayClosed => "a victim could not be preempted".to_owned(),
        RollbackReason::NotWritten => "the Order could not be stored".to_owned(),
        RollbackReason::NotNeeded => "it fits on nodes that have become free".to_owned(),
        RollbackReason::GangGone => "the gang was cancelled".to_owned(),
    }
}

/// The victims of an order, with a verb in the singular or the plural.
fn victims(count: u32, one: &str, several: &str) -> String {
    if count == 1 {
        format!("one other gang {one}")
    } else {
        format!("{count} other gangs {several}")
    }
}

#[cfg(test)]
mod tests {
    use muster_core::World;
    use muster_core::event::Event;
    use muster_core::gang::GangSpec;
    use muster_core::id::{ClaimId, GangId, OfferingRef, PoolIdx};
    use muster_core::order::{ClaimFailure, ClaimStage, RollbackReason};
    use muster_core::plan::Action;
    use muster_core::queue::QueueSpec;
    use muster_core::time::Time;

    use crate::words::verdicts::{gangs, rollback};

    #[test]
    fn rolled_back_order_names_the_resource_that_a_node_lacked() {
        let pool = "{kind: Pool, metadata: {name: p}, spec: {tier: t, offerings: [{instanceType: i, zone: z, \
                    gpu: {count: 8}, allocatable: {cpu: 8, vpc.amazonaws.com/efa: 32}}]}}";
        let read = crate::read_texts(&[("p.yaml", pool)]).expect("it is good");
        let mut world = World::new(read.levels);
        let (claim, offering) = (ClaimId(0), OfferingRef { pool: PoolIdx(0), slot: 0 });
        let stock = Action::Stock { claims: vec![(claim, offering)] };
        world.apply(Time::ZERO, &Event::PoolSet(read.pools[0].spec.clone())).expect("it fits");
        world.apply(Time::ZERO, &Event::Decided(stock)).expect("it fits");
        let overdue = RollbackReason::Overdue(claim, ClaimStage::Gpus);
        for (gpus, adapters, expected) in [
            (7, 0, "a node in z did not show its GPUs in time"),
            (8, 0, "a node in z did not show vpc.amazonaws.com/efa in time"),
            (8, 32, "a node in z was not ready in time"),
        ] {
            let spec = &world.offering(offering).spec;
            let mut node = spec.node("n".into(), claim, gpus, false);
            node.allocatable.insert("vpc.amazonaws.com/efa".into(), adapters);
            world.apply(Time::ZERO, &Event::NodeSeen(node)).expect("it fits");
            assert_eq!(rollback(&world, overdue), expected);
        }
        let small = RollbackReason::ClaimFailed(claim, ClaimFailure::TooSmall);
        assert_eq!(rollback(&world, small), "a node in z is too small for its members");
    }

    #[test]
    fn of_many_gangs_only_the_first_few_are_named() {
        let text = "{kind: Gang, metadata: {name: g}, spec: {roles: [{name: w, min: 1}]}}";
        let read = crate::read_texts(&[("g.yaml", text)]).expect("it is good");
        let mut world = World::new(read.levels);
        world.apply(Time::ZERO, &Event::QueueSet(QueueSpec::open("default"))).expect("it fits");
        for number in 0..8 {
            let spec = GangSpec { name: format!("g{number}").into(), ..read.gangs[0].spec.clone() };
            world.apply(Time::ZERO, &Event::GangSubmitted(spec)).expect("it fits");
        }
        let ids: Vec<GangId> = (0..8).map(GangId).collect();
        for (number, named) in [
            (0, ""),
            (1, "g0"),
            (2, "g0 and g1"),
            (3, "g0, g1 and g2"),
            (5, "g0, g1, g2, g3 and g4"),
            (8, "g0, g1, g2, g3, g4 and 3 more"),
        ] {
            assert_eq!(gangs(&world, &ids[..number]), named);
        }
    }
}
