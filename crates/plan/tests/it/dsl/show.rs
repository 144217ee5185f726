//! Plans in words: a line for every action, for every promised start, and for every verdict that no action
//! tells already.

use muster_core::device::DeviceSet;
use muster_core::gang::{Gang, Phase, Seat, members_of};
use muster_core::id::{GangId, NodeIdx, OfferingRef, PoolIdx, QueueIdx, ResourceIdx};
use muster_core::order::{OrderSpec, Place, RollbackReason};
use muster_core::plan::{Action, StopReason, Target};
use muster_core::resource::display_amount;
use muster_core::time::{Span, Time};
use muster_core::verdict::{Blocker, Considered, Help};
use muster_core::{Plan, Verdict, World};
use muster_plan::Why;

/// A plan, line by line.
pub(super) fn plan(world: &World, plan: &Plan) -> String {
    let actions = plan.actions().map(|action| self::action(world, action));
    let told = |gang: GangId| plan.groups.iter().any(|group| group.gang == Some(gang));
    let silent = plan.verdicts.iter().filter(|(gang, _)| !told(*gang));
    let verdicts =
        silent.map(|(id, said)| format!("{} {}", gang(world, *id), verdict(world, said)));
    let promises = plan.reservations.iter();
    let promises =
        promises.map(|(id, start)| format!("{} starts by {}", gang(world, *id), time(*start)));
    let lines: Vec<String> = actions.chain(promises).chain(verdicts).collect();
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
}

/// What a plan does, line by line.
pub(super) fn actions(world: &World, plan: &Plan) -> Vec<String> {
    plan.actions().map(|action| self::action(world, action)).collect()
}

/// What a gang has, has done, has still to do, and was made to do.
pub(super) fn look(world: &World, now: Time, id: GangId) -> String {
    let gang = world.gang(id).expect("it is there");
    let Gang { seats, work, restarts, evictions, .. } = gang;
    let name = &gang.spec.name;
    let done = match gang.phase {
        Phase::Running { .. } => work.done_by(now, gang.speed()),
        _ => work.done,
    };
    let left = Span(gang.spec.estimated_duration().0.saturating_sub(done.0));
    let members = members_of(seats);
    format!(
        "{name} has {members} members, {done} done, {left} left, {restarts} restarts, {evictions} evictions"
    )
}

/// What a pool should have now, and why.
pub(super) fn target(world: &World, (pool, target): &(PoolIdx, Target)) -> String {
    let Target { free, stopped, warm, buffer, spare, scheduled, expected, .. } = target;
    let name = &world.pools()[*pool].spec.name;
    let (mut beside, Target { replacing, growth, .. }) = (String::new(), target);
    if *replacing > 0 {
        beside += &format!(", replacing {replacing}");
    }
    if *growth > 0 {
        beside += &format!(", growth {growth}");
    }
    format!(
        "{name} should have {free} free, {stopped} stopped (warm {warm}, buffer {buffer}, spare {spare}, scheduled \
         {scheduled}, expected {expected}{beside})"
    )
}

/// An instant, as the time since the beginning of the case.
pub(super) fn time(time: Time) -> String {
    time.since(Time::ZERO).to_string()
}

fn action(world: &World, action: &Action) -> String {
    match action {
        Action::Admit { gang: id, seats } => {
            format!("admit {}: {}", gang(world, *id), self::seats(world, seats))
        }
        Action::Order(spec) => order(world, spec),
        Action::RollBack { order, reason } => {
            format!("roll back {order:?}: {}", rollback(world, *reason))
        }
        Action::Stop { gang: id, reason } => {
            format!("stop {}: {}", gang(world, *id), stop(world, *reason))
        }
        Action::Resize { gang: id, seats } => {
            let from = world.gang(*id).map_or(0, |gang| members_of(&gang.seats));
            let (name, to) = (gang(world, *id), members_of(seats));
            format!("resize {name} from {from} to {to}: {}", self::seats(world, seats))
        }
        Action::Release { claim } => format!("release {claim:?}"),
        Action::TopUp { order, lost, claim, offering: of } => {
            format!("top up {order:?}: {claim:?} {} for {lost:?}", offering(world, *of))
        }
        Action::Exchange { gets, coming, gives, ready } => {
            format!("{gets:?} gets {ready:?} from {gives:?} for {coming:?}")
        }
        Action::Stock { claims } => {
            let asked = claims.iter().map(|(id, of)| format!("{id:?} {}", offering(world, *of)));
            format!("stock {}", asked.collect::<Vec<_>>().join(", "))
        }
        Action::Retry { claim, attempt } => format!("retry {claim:?} ({attempt})"),
        Action::Park { claim } => format!("park {claim:?}"),
        Action::Retire { claim } => format!("retire {claim:?}"),
    }
}

fn stop(world: &World, reason: StopReason) -> String {
    match reason {
        StopReason::Cancelled => "cancelled".to_owned(),
        StopReason::NodeLost(lost) => format!("{} lost", node(world, lost)),
        StopReason::NodeFailing(failing) => format!("{} failing", node(world, failing)),
        StopReason::Moved => "moves".to_owned(),
        StopReason::Preempted(by) => format!("preempted by {}", gang(world, by)),
        StopReason::Reclaimed(by) => format!("reclaimed by {}", gang(world, by)),
        StopReason::Rotated(by) => format!("{}'s turn", gang(world, by)),
    }
}

fn order(world: &World, spec: &OrderSpec) -> String {
    let mut bought: Vec<(OfferingRef, u32)> = Vec::new();
    for (_, of) in &spec.claims {
        match bought.iter_mut().find(|(known, _)| known == of) {
            Some((_, count)) => *count += 1,
            None => bought.push((*of, 1)),
        }
    }
    let bought = bought.iter().map(|(of, count)| format!("{count} x {}", offering(world, *of)));
    let bought = bought.collect::<Vec<_>>().join(" + ");
    let seats = spec.reservations.iter().flat_map(|reservation| {
        let at = match reservation.place {
            Place::Node(idx) => node(world, idx),
            Place::Claim(claim) => format!("{claim:?}"),
        };
        let shown = (reservation.role, seat(&at, reservation.devices));
        std::iter::repeat_n(shown, usize::from(reservation.members))
    });
    let (name, due) = (gang(world, spec.gang), time(spec.deadline));
    let after = spec.after.iter().map(|way| {
        let members = members_of(&way.seats);
        let all = if way.stop.is_some() { "all " } else { "" };
        format!("{all}{members} of {}", gang(world, way.gang))
    });
    let after = after.collect::<Vec<_>>().join(", ");
    let after = if after.is_empty() { after } else { format!(" after {after}") };
    format!("order {:?} for {name}: {bought} by {due}{after}: {}", spec.id, by_role(seats))
}

fn rollback(world: &World, reason: RollbackReason) -> String {
    match reason {
        RollbackReason::ClaimFailed(claim, why) => format!("{claim:?} {why:?}"),
        RollbackReason::Overdue(claim, stage) => format!("{claim:?} overdue: {stage:?}"),
        RollbackReason::DeadlinePassed => "too late".to_owned(),
        RollbackReason::NodeLost(lost) => format!("{} lost", node(world, lost)),
        RollbackReason::NodeUnsuitable(bad) => format!("{} unsuitable", node(world, bad)),
        RollbackReason::WayClosed => "way closed".to_owned(),
        RollbackReason::NotNeeded => "not needed".to_owned(),
        RollbackReason::GangGone => "cancelled".to_owned(),
        RollbackReason::NotWritten => "not written".to_owned(),
    }
}

fn verdict(world: &World, verdict: &Verdict) -> String {
    let list = |blockers: &[Blocker]| {
        let said: Vec<String> = blockers.iter().map(|why| blocker(world, why)).collect();
        said.join(", ")
    };
    match verdict {
        Verdict::Admitted => "is admitted".to_owned(),
        Verdict::Running => "runs".to_owned(),
        Verdict::Stopping => "is stopping".to_owned(),
        Verdict::Provisioning { order, ready, total, leaving, deadline, .. } => {
            let leaving = if *leaving > 0 { format!(", {leaving} leaving") } else { String::new() };
            format!("assembles {order:?}: {ready} of {total}{leaving} by {}", time(*deadline))
        }
        Verdict::Waiting { position, blockers, late, .. } => {
            let late = late.as_ref().map_or_else(String::new, |late| {
                let helps: Vec<String> = late.helps.iter().map(|one| help(world, one)).collect();
                format!(", late by {} ({})", late.by, helps.join("; "))
            });
            format!("waits #{position}: {}{late}", list(blockers))
        }
        Verdict::Impossible { blockers } => format!("is impossible: {}", list(blockers)),
    }
}

/// The ways that were compared for each gang.
pub(super) fn ways(world: &World, plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, verdict) in &plan.verdicts {
        let (Verdict::Waiting { ways, .. } | Verdict::Provisioning { ways, .. }) = verdict else {
            continue;
        };
        lines.extend(ways.iter().map(|one| {
            let chosen = if one.chosen { "*" } else { " " };
            let delay = one.delay.map_or_else(|| "never".to_owned(), |delay| delay.to_string());
            let Considered { way, cost, others, lost, .. } = one;
            let name = gang(world, *id);
            format!("{chosen} {name} {way:?} in {delay} for {cost}: {others} others lose {lost}")
        }));
    }
    lines
}

pub(super) fn why(world: &World, name: &str, why: &Why) -> String {
    let start = why.start.map_or_else(|| "never".to_owned(), time);
    let mut lines = vec![format!("{name} is expected to start: {start}")];
    lines.extend(why.helps.iter().map(|one| format!("  now {}", help(world, one))));
    lines.join("\n")
}

fn help(world: &World, help: &Help) -> String {
    match help {
        Help::Closeness => "if closeness were a wish".to_owned(),
        Help::Nodes { offering: of, count } => {
            format!("with {count} more of {}", offering(world, *of))
        }
        Help::NodesLike { node: like, count } => {
            format!("with {count} more like {}", node(world, *like))
        }
        Help::Priority { priority, instead_of } => {
            let names: Vec<String> = instead_of.iter().map(|id| gang(world, *id)).collect();
            format!("at priority {priority} instead of [{}]", names.join(" "))
        }
        Help::Members { role, count } => format!("with {count} of r{role}"),
    }
}

fn blocker(world: &World, blocker: &Blocker) -> String {
    match blocker {
        Blocker::NoFreeCapacity { role, fits, needs } => format!("r{role} fits {fits} of {needs}"),
        Blocker::RolesCompete => "roles compete".to_owned(),
        Blocker::Behind(ahead) => format!("behind {}", gang(world, *ahead)),
        Blocker::SearchSpent => "search spent".to_owned(),
        Blocker::NotConsidered => "not considered".to_owned(),
        Blocker::QueueLimit { queue: at, resource, held, wants, limit } => {
            let limit = amounts(world, *resource, [*held, *wants, *limit]);
            format!("queue {} {limit}", queue(world, *at))
        }
        Blocker::UserLimit { queue: at, resource, held, wants, limit } => {
            let limit = amounts(world, *resource, [*held, *wants, *limit]);
            format!("user in {} {limit}", queue(world, *at))
        }
        Blocker::NotAllowed { queue: at, excess } => {
            format!("queue {} does not allow {excess:?}", queue(world, *at))
        }
        Blocker::BeyondGuarantee { queue: at, resource, held, wants, guaranteed } => {
            let sure = amounts(world, *resource, [*held, *wants, *guaranteed]);
            format!(
                "non-preemptible in {} {}",
                queue(world, *at),
                sure.replace("limit", "guaranteed")
            )
        }
        Blocker::CheaperToWait { start, wait, buy } => {
            format!("waiting until {} costs {wait}, buying {buy}", time(*start))
        }
        Blocker::ProvisioningOff => "provisioning off".to_owned(),
        Blocker::QueueClosed { queue } => {
            format!("queue {} takes nobody", world.queue(*queue).spec.name)
        }
        Blocker::NoOffering { role } => format!("no offering for r{role}"),
        Blocker::Budget { pool, limit, left } => {
            format!("budget of {}: {left} of {limit} left", world.pools()[*pool].spec.name)
        }
        Blocker::PoolsFull { room } => format!("pools full (room {room})"),
        Blocker::OfferingsAvoided { until } => format!("offerings avoided until {}", time(*until)),
        Blocker::CoolingOff { until } => format!("cooling off until {}", time(*until)),
        Blocker::RoleFitsNowhere { role } => format!("r{role} fits nowhere"),
        Blocker::NeverEnough { role, most, needs, offered: _ } => {
            format!("r{role} never {needs}, at most {most}")
        }
    }
}

fn amounts(world: &World, resource: Option<ResourceIdx>, amounts: [u64; 3]) -> String {
    let [held, wants, limit] = amounts.map(|amount| match resource {
        None => format!("{}gpu", amount as f64 / 1e3),
        Some(resource) => {
            let name = world.names().name(resource);
            format!("{}{name}", display_amount(name, amount))
        }
    });
    format!("holds {held}, wants {wants}, limit {limit}")
}

/// Seats role by role: `a1[0-7] a2[0-7] | c0*2` where members of the second role need no GPU.
fn seats(world: &World, seats: &[Seat]) -> String {
    by_role(seats.iter().flat_map(|s| {
        let shown = (s.role, seat(&node(world, s.node), s.devices));
        std::iter::repeat_n(shown, usize::from(s.members))
    }))
}

fn by_role(seats: impl Iterator<Item = (u16, String)>) -> String {
    let mut roles: Vec<Vec<String>> = Vec::new();
    for (role, seat) in seats {
        roles.resize(roles.len().max(usize::from(role) + 1), Vec::new());
        roles[usize::from(role)].push(seat);
    }
    roles.iter().map(|seats| shortened(runs(seats))).collect::<Vec<_>>().join(" | ")
}

/// Of very many seats the first and the last.
fn shortened(seats: String) -> String {
    let words: Vec<&str> = seats.split(' ').collect();
    match words.as_slice() {
        [first, .., last] if words.len() > 64 => format!("{first} ... {last} ({})", words.len()),
        _ => seats,
    }
}

/// Equal seats one after the other are said once.
fn runs(seats: &[String]) -> String {
    let run = |run: &[String]| match run.len() {
        1 => run[0].clone(),
        times => format!("{}*{times}", run[0]),
    };
    seats.chunk_by(PartialEq::eq).map(run).collect::<Vec<_>>().join(" ")
}

fn seat(at: &str, devices: DeviceSet) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for device in devices.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == device => *last = device,
            _ => ranges.push((device, device)),
        }
    }
    let range = |(from, to): &(usize, usize)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    if ranges.is_empty() { at.to_owned() } else { format!("{at}[{}]", ranges.join(",")) }
}

fn gang(world: &World, id: GangId) -> String {
    world.gang(id).map_or_else(|| format!("{id:?}"), |gang| gang.spec.name.to_string())
}

fn node(world: &World, idx: NodeIdx) -> String {
    world.node_name(idx).map_or_else(|| format!("{idx:?}"), ToString::to_string)
}

fn queue(world: &World, idx: QueueIdx) -> &str {
    &world.queue(idx).spec.name
}

fn offering(world: &World, of: OfferingRef) -> String {
    let spec = &world.offering(of).spec;
    format!("{}/{}@{}", world.pools()[of.pool].spec.name, spec.instance_type, spec.zone)
}
