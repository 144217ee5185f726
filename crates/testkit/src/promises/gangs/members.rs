//! Promises about gangs and their members: whole starts, no overcommit of nodes and quota, whole disruption.

use muster_core::Fact;
use muster_core::device::WHOLE;
use muster_core::gang::{Seat, members_of};
use muster_core::id::GangId;
use muster_core::plan::StopReason;

use crate::promises::books::{Books, GangEntry};
use crate::promises::gangs::resizing;
use crate::promises::queue::quota;
use crate::promises::{Promise, Violation};

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::GangSubmitted { gang, spec } => {
            books.has_priorities |= spec.priority != 0;
            let entry = GangEntry {
                spec: spec.clone(),
                submitted: books.now,
                in_line_since: books.now,
                cancelled: false,
                members: Vec::new(),
                partial_since: None,
                lost_node: false,
                mends: false,
                started: None,
                resizing: None,
                shed: Vec::new(),
                order: None,
                promised: false,
            };
            books.gangs.insert(*gang, entry);
        }
        Fact::GangCancelled { gang } => {
            let Some(entry) = books.gangs.get_mut(gang) else { return };
            entry.cancelled = true;
            if entry.members.is_empty() && entry.order.is_none() {
                books.gangs.remove(gang);
            }
        }
        Fact::MembersStarted { gang, role, node, devices, members } => {
            let seat = Seat { devices: *devices, node: *node, role: *role, members: *members };
            start(books, *gang, seat, found);
        }
        Fact::MembersStopped { gang, role, node, devices, members } => {
            let seat = Seat { devices: *devices, node: *node, role: *role, members: *members };
            stop(books, *gang, seat, found);
        }
        Fact::GangStarted { gang } => {
            if let Some(entry) = books.gangs.get_mut(gang) {
                (entry.started, entry.lost_node, entry.mends) = (Some(books.now), false, false);
            }
        }
        Fact::GangStopped { gang, reason } => stopped(books, *gang, *reason, found),
        Fact::GangEnded { gang } => {
            let left = books.gangs.remove(gang).map_or(0, |entry| members_of(&entry.members));
            if left > 0 {
                let what = format!("{gang:?} ended with {left} members still running");
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
        }
        _ => {}
    }
}

pub(crate) fn check(books: &mut Books, found: &mut Vec<Violation>) {
    for gang in std::mem::take(&mut books.touched) {
        let now = books.now;
        let Some(entry) = books.gangs.get_mut(&gang) else { continue };
        let (shed, resizes) = resizing::look(entry);
        if entry.members.is_empty() {
            continue;
        }
        if entry.is_whole() {
            if shed && !resizes {
                let what = format!("{} lost members and was not told to", entry.spec.name);
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
            continue;
        }
        entry.partial_since.get_or_insert(now);
        let (name, running) = (entry.spec.name.clone(), members_of(&entry.members));
        let disrupted = shed || entry.lost_node;
        let promise =
            if disrupted { Promise::WholeGangDisruption } else { Promise::NoPartialStart };
        let what =
            format!("{name} has only {running} members running, below the minimum of a role");
        found.push(books.violation(promise, what));
    }
}

fn start(books: &mut Books, gang: GangId, seat: Seat, found: &mut Vec<Violation>) {
    let Seat { devices, node, role, members } = seat;
    let name = books.name(gang);
    let Some(entry) = books.gangs.get_mut(&gang) else {
        let what = format!("a member of {gang:?}, which is over or never was, started");
        found.push(books.violation(Promise::NoPartialStart, what));
        return;
    };
    entry.members.push(seat);
    // A gang that grows can be made to shrink again, and takes nothing from waiting gangs.
    let promised = entry.promised || entry.resizing.is_some() || entry.mends;
    books.touched.insert(gang);
    if !promised {
        books.served.insert(gang);
    }
    let spec = books.gangs[&gang].spec.clone();
    let request = &spec.roles[usize::from(role)].request;
    let Some(here) = books.nodes.get_mut(&node) else {
        let what = format!("{name} started a member on {node:?}, which is not there");
        found.push(books.violation(Promise::NoPartialStart, what));
        return;
    };
    here.members += u32::from(members);
    let offering = here.claim.and_then(|claim| books.claims.get(&claim)).map(|claim| {
        let pool = &books.terms.pools[usize::from(claim.offering.pool.0)];
        &pool.offerings[usize::from(claim.offering.slot)]
    });
    let here = books.nodes.get_mut(&node).expect("just seen");
    let mut wrong: Vec<(Promise, String)> = Vec::new();
    if let Some((what, shown, promised)) = offering.and_then(|offering| here.lacks(offering)) {
        let what = format!("{name} started on {}, {shown} of {promised} {what} present", here.name);
        wrong.push((Promise::NoPartialStart, what));
    }
    if !here.ready {
        wrong.push((
            Promise::NoPartialStart,
            format!("{name} started on {}, which is not ready", here.name),
        ));
    }
    for (resource, amount) in &request.amounts {
        let used = here.used.entry(resource.clone()).or_default();
        *used += amount * u64::from(members);
        let have = here.allocatable.get(resource).copied().unwrap_or(0);
        if *used > have {
            wrong.push((
                Promise::NoOvercommit,
                format!("{}: {used} of {have} {resource} used", here.name),
            ));
        }
    }
    let (count, share) = request.gpu.as_ref().map_or((0, 0), |gpu| (gpu.count, gpu.share));
    if devices.len() != u32::from(count) || !seat.is_sound() {
        let got = devices.len();
        let what = format!("{name} asked for {count} devices and got {got} for {members} members");
        wrong.push((Promise::NoOvercommit, what));
    }
    for device in devices.iter() {
        here.devices[device] += u32::from(share);
        if device >= usize::from(here.gpus) || here.devices[device] > u32::from(WHOLE) {
            let what = format!(
                "{}: device {device} holds {} thousandths",
                here.name, here.devices[device]
            );
            wrong.push((Promise::NoOvercommit, what));
        }
    }
    found.extend(wrong.into_iter().map(|(promise, what)| books.violation(promise, what)));
    quota::check(books, &spec, found);
}

fn stop(books: &mut Books, gang: GangId, seat: Seat, found: &mut Vec<Violation>) {
    let Seat { devices, node, role, members } = seat;
    let now = books.now;
    let Some(entry) = books.gangs.get_mut(&gang) else { return };
    let Some(at) = entry.members.iter().position(|member| *member == seat) else {
        let what = format!("a member of {gang:?} stopped that never ran");
        found.push(books.violation(Promise::WholeGangDisruption, what));
        return;
    };
    if let Some(since) = entry.partial_since.take() {
        books.partial_gpu_ms += entry.gpu_milli() * now.since(since).0 / 1_000;
    }
    entry.members.swap_remove(at);
    entry.shed.push(node);
    let request = entry.spec.roles[usize::from(role)].request.clone();
    books.touched.insert(gang);
    let Some(here) = books.nodes.get_mut(&node) else { return };
    here.members -= u32::from(members);
    for (resource, amount) in &request.amounts {
        *here.used.get_mut(resource).expect("used before") -= amount * u64::from(members);
    }
    let share = request.gpu.as_ref().map_or(0, |gpu| gpu.share);
    devices.iter().for_each(|device| here.devices[device] -= u32::from(share));
    let idle = (here.members == 0).then_some(here.claim).flatten();
    if let Some(claim) = idle.and_then(|claim| books.claims.get_mut(&claim)) {
        claim.idle_since = now;
    }
}

fn stopped(books: &mut Books, gang: GangId, reason: StopReason, found: &mut Vec<Violation>) {
    let name = books.name(gang);
    let Some(entry) = books.gangs.get_mut(&gang) else { return };
    let excuse = match reason {
        StopReason::NodeLost(_) => entry.lost_node,
        StopReason::Cancelled => entry.cancelled,
        // Checked when they were told.
        StopReason::Moved
        | StopReason::Preempted(_)
        | StopReason::Reclaimed(_)
        | StopReason::Rotated(_)
        | StopReason::NodeFailing(_) => true,
    };
    let left = entry.members.len();
    entry.mends = entry.lost_node || matches!(reason, StopReason::NodeFailing(_));
    entry.lost_node = false;
    entry.promised = false;
    if matches!(reason, StopReason::Rotated(_)) {
        entry.in_line_since = books.now;
    }
    (entry.started, entry.resizing) = (None, None);
    entry.shed.clear();
    if entry.cancelled {
        books.gangs.remove(&gang);
    }
    // A gang whose time slice ended and that was stopped was not overtaken.
    books.waiting.remove(&gang);
    if !excuse {
        let what = format!("{name} was stopped ({reason:?}) without that being so");
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
    if left > 0 {
        let what = format!("{name} was stopped, but {left} members still run");
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
}

#[cfg(test)]
mod tests {
    use muster_core::Fact;
    use muster_core::device::DeviceSet;
    use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, PoolIdx};
    use muster_core::time::Time;

    use crate::build;
    use crate::promises::{Ledger, Terms};

    /// Violations when a gang starts on a bought node that shows so many GPUs and adapters, of eight and four.
    fn starts_on(gpus: u16, adapters: u64, ready: bool) -> Vec<String> {
        let mut offering = build::offering("a", 10.0);
        offering.allocatable.insert("rdma/hca".into(), 4);
        let mut allocatable = offering.allocatable.clone();
        allocatable.insert("rdma/hca".into(), adapters);
        let terms = Terms { pools: vec![build::pool("p", vec![offering])], ..Terms::default() };
        let mut ledger = Ledger::new(terms);
        let (gang, node, claim) = (GangId(0), NodeIdx(0), ClaimId(0));
        let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
        let devices = DeviceSet(1);
        for fact in [
            Fact::ClaimRequested { claim, offering },
            Fact::NodeSeen { node, name: "n".into(), claim: Some(claim), allocatable, gpus, ready },
            Fact::GangSubmitted { gang, spec: build::gang("g", 1, 1).into() },
            Fact::MembersStarted { gang, role: 0, node, devices, members: 1 },
        ] {
            ledger.note(Time::ZERO, &fact);
        }
        ledger.violations().iter().map(|violation| violation.what.clone()).collect()
    }

    #[test]
    fn start_on_an_incomplete_node_is_a_violation() {
        assert_eq!(starts_on(8, 4, true), [""; 0]);
        assert_eq!(starts_on(7, 4, true), ["g started on n, 7 of 8 GPUs present"]);
        assert_eq!(starts_on(8, 3, true), ["g started on n, 3 of 4 rdma/hca present"]);
        assert_eq!(starts_on(8, 4, false), ["g started on n, which is not ready"]);
    }
}
