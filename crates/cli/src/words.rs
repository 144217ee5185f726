//! Verdicts in words. Every place that shows one shows it through here.

use muster_core::World;
use muster_core::gang::Closeness;
use muster_core::id::{ClaimId, GangId, ResourceIdx};
use muster_core::order::{ClaimFailure, ClaimStage, RollbackReason};
use muster_core::plan::Target;
use muster_core::resource::display_amount;
use muster_core::verdict::{Blocker, Verdict};

use crate::figures;

/// What a verdict says to the one who waits.
pub(crate) fn verdict(world: &World, gang: GangId, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted => "starting".to_owned(),
        Verdict::Running => "running".to_owned(),
        Verdict::Stopping => "stopping".to_owned(),
        Verdict::Provisioning { ready, total, .. } => format!("{ready}/{total} nodes ready"),
        Verdict::Waiting { position, blockers, start, late } => {
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
        Verdict::Impossible { blockers } => {
            format!("can never run: {}", join(world, gang, blockers))
        }
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
    // Counts of members are those of the best place when all of them must be in one.
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
            let name =
                world.gang(*ahead).map_or_else(String::new, |gang| gang.spec.name.to_string());
            format!("behind {name}")
        }
        Blocker::NotConsidered => "not looked at in this cycle".to_owned(),
        Blocker::QueueLimit { queue, resource, held, wants, limit } => {
            let queue = &world.queue(*queue).spec.name;
            let amount = |amount| amount_of(world, *resource, amount);
            let (held, limit, wants) = (amount(*held), amount(*limit), amount(*wants));
            let name = resource_name(world, *resource);
            format!("queue {queue} holds {held} of {limit} {name}, and this wants {wants} more")
        }
        Blocker::UserLimit { queue, resource, held, wants, limit } => {
            let queue = &world.queue(*queue).spec.name;
            let amount = |amount| amount_of(world, *resource, amount);
            let (held, limit, wants) = (amount(*held), amount(*limit), amount(*wants));
            let name = resource_name(world, *resource);
            format!(
                "its user holds {held} of the {limit} {name} that one may in queue {queue}, \
                 and this wants {wants} more"
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
            format!("offerings that failed are left alone for {}", until(*at))
        }
        Blocker::CoolingOff { until: at } => {
            format!("too many orders failed, next try in {}", until(*at))
        }
        Blocker::RoleFitsNowhere { role: r } => {
            format!("{} fits on no node and no offering, not even an empty one", role(*r))
        }
        Blocker::NeverEnough { role: r, most, needs } => {
            format!("at most {most} of {needs} x {} could ever run at once{close}", role(*r))
        }
    }
}

/// The resource a limit is about.
fn resource_name(world: &World, resource: Option<ResourceIdx>) -> &str {
    resource.map_or("GPUs", |resource| world.names().name(resource))
}

/// An amount of it, as people write it.
fn amount_of(world: &World, resource: Option<ResourceIdx>, amount: u64) -> String {
    match resource {
        None => format!("{}", amount as f64 / 1_000.0),
        Some(resource) => display_amount(world.names().name(resource), amount).to_string(),
    }
}

/// How many free nodes a pool should have, and why.
pub(crate) fn target(target: &Target) -> String {
    let reasons = [
        ("always", target.warm),
        ("buffer", target.buffer),
        ("spare", target.spare),
        ("by schedule", target.scheduled),
        ("expected", target.expected),
    ];
    let told: Vec<String> =
        reasons.iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{why} {n}")).collect();
    let why = if told.is_empty() { "nothing is wanted".to_owned() } else { told.join(", ") };
    let stopped = match target.stopped {
        0 => String::new(),
        stopped => format!(" and {} stopped", figures::count(stopped as usize, "node")),
    };
    format!("{} free{stopped}: {why}", figures::count(target.free as usize, "node"))
}

/// Where a claim was made, as the end of a phrase; nothing once the claim is forgotten.
fn zone_of(world: &World, claim: ClaimId) -> String {
    world.claims().get(&claim).map_or_else(String::new, |claim| {
        format!(" in {}", world.offering(claim.offering).spec.zone)
    })
}

/// Why an order was given up.
pub(crate) fn rollback(world: &World, reason: RollbackReason) -> String {
    match reason {
        RollbackReason::ClaimFailed(claim, failure) => {
            let zone = zone_of(world, claim);
            match failure {
                ClaimFailure::StockOut => format!("no more nodes can be had{zone}"),
                ClaimFailure::BootFailed => format!("a node{zone} did not boot"),
                ClaimFailure::GpusMissing => format!("a node{zone} lacks GPUs"),
                ClaimFailure::Vanished => format!("a node{zone} vanished"),
                ClaimFailure::Throttled => format!("the provider{zone} does not take requests now"),
            }
        }
        RollbackReason::Overdue(claim, stage) => {
            let zone = zone_of(world, claim);
            match stage {
                ClaimStage::Launch => format!("a node{zone} was not launched in time"),
                ClaimStage::Register => format!("a node{zone} did not join in time"),
                ClaimStage::Gpus => format!("a node{zone} did not show its GPUs in time"),
            }
        }
        RollbackReason::DeadlinePassed => "not complete in time".to_owned(),
        RollbackReason::NodeUnsuitable(_) => "a node is not where or what was asked for".to_owned(),
        RollbackReason::NodeLost(_) => "a node it counted on is gone".to_owned(),
        RollbackReason::NotNeeded => "it fits on nodes that have become free".to_owned(),
        RollbackReason::GangGone => "the gang was cancelled".to_owned(),
    }
}
