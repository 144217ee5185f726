//! Hands booked capacity over to the gang that it was booked for.
//!
//! The booking gives up its seats and the gang gets them, one right after the other: both are events of a World that only this
//! task writes to, and no plan is made between them. The gang's placement is stored first, as for every gang, and only when the
//! gang has started is the request reported as consumed. A leader that starts in between finds either the booking or a gang that
//! has its seats.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
use muster_api::provisioning;
use muster_core::event::RoleSeats;
use muster_core::gang::{Closeness, Gang, Phase, Request, RoleSpec, Seat};
use muster_core::id::{GangId, NodeIdx, SigIdx};
use muster_core::plan::Action;
use muster_core::resource::{TOKEN, display_amount};
use muster_core::signature::Signature;
use muster_core::state::NodeState;
use muster_core::{Event, World};
use rustc_hash::FxHashMap;

use crate::cache::kinds::KindRole;
use crate::cache::store::split_key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::requests_served::build::is_served;
use crate::provision::requests_served::conditions::BOOKING_EXPIRED;
use crate::provision::requests_served::reconcile::request_of_gang;

/// The booking that a gang's pods name.
#[derive(Debug)]
pub(crate) enum BookingState {
    /// They name no request, or one that Muster does not serve, or that is closed: they are scheduled like any other pods.
    None,
    /// They name a request that is not provisioned yet: its gang, and the message for the pods.
    Pending(Arc<str>, String),
    /// Capacity is booked for them: the gang that holds it.
    Provisioned(Arc<str>),
}

impl Host {
    /// The gang of the request that a gang's pods name. One pod is enough: controllers do not always annotate all of them.
    pub(crate) fn booking_named_by(&self, record: &GangRecord) -> Option<Arc<str>> {
        let pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let mut named = pods.filter_map(|(key, pod)| {
            let request = provisioning::consumes(pod.metadata.annotations.as_ref()?)?;
            let (namespace, name) = (split_key(key).0.into(), request.into());
            Some(GangSource::Request { namespace, name }.gang_name())
        });
        named.next()
    }

    /// The booking that a gang's pods name, if the gang has no seats yet.
    pub(crate) fn booking_state(&self, name: &Arc<str>) -> BookingState {
        let Some(record) = self.gangs.get(name) else { return BookingState::None };
        let Some(booking) = self.booking_named_by(record) else { return BookingState::None };
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let has_seats = match gang {
            Some(gang) => gang.phase != Phase::Waiting,
            None => !self.pods_by_state(record).bound.is_empty() || self.has_placement(name),
        };
        if has_seats || self.sources.of(KindRole::Request).is_none() {
            return BookingState::None;
        }
        let GangSource::Request { namespace, name: request } = request_of_gang(&booking) else {
            return BookingState::None;
        };
        let why = match self.object(KindRole::Request, &namespace, &request) {
            None => format!("ProvisioningRequest {request} does not exist"),
            Some(object) if is_served(object) && self.served_requests.is_open(&booking) => {
                if self.is_booking_provisioned(&booking) {
                    return BookingState::Provisioned(booking);
                }
                format!("ProvisioningRequest {request} is not provisioned yet")
            }
            Some(_) => return BookingState::None,
        };
        // A gang in the queue has stopped waiting for its request.
        if gang.is_some() { BookingState::None } else { BookingState::Pending(booking, why) }
    }

    /// Whether a request has its seats, and its placement is stored.
    fn is_booking_provisioned(&self, booking: &str) -> bool {
        let gang = self.world.gang_named(booking).and_then(|id| self.world.gang(id));
        let sits = gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
        });
        sits && self.gangs.get(booking).is_some_and(|record| record.placement_written)
    }

    /// Records that a gang waits until a request is provisioned.
    pub(crate) fn wait_for_booking(&mut self, name: &Arc<str>, booking: Arc<str>) {
        self.served_requests.waiting_gangs.entry(booking).or_default().insert(name.clone());
    }

    /// Gives a waiting gang the seats that were booked for it, if there are any.
    pub(crate) fn hand_over_booking(&mut self, name: &Arc<str>) {
        let BookingState::Provisioned(booking) = self.booking_state(name) else { return };
        let gangs = (self.world.gang_named(&booking), self.world.gang_named(name));
        let (Some(from), Some(to)) = gangs else { return };
        let held = self.world.gang(from).expect("named");
        let consumer = self.world.gang(to).expect("named");
        let handover = match plan_handover(&self.world, held, consumer) {
            Ok(handover) => handover,
            Err(why) => return self.release_mismatched_booking(name, &booking, &why),
        };
        let (spec, all) = (held.spec.clone(), seats_by_node(&single_seats(held)));
        let (since, left) = (self.now(), handover.left.clone());
        match left.is_empty() {
            true => self.apply_event(&Event::GangEnded(from)),
            false => self.apply_event(&Event::GangFound { gang: from, since, sitting: left }),
        };
        let seats = with_devices(&self.world, to, &handover.taken);
        let admitted = seats.is_some_and(|seats| {
            self.apply_event(&Event::Decided(Action::Admit { gang: to, seats }))
        });
        if !admitted {
            // Undone: a node may not be ready now, or the queue's limit does not allow it.
            if handover.left.is_empty() {
                self.apply_event(&Event::GangSubmitted(spec));
            }
            if let Some(gang) = self.world.gang_named(&booking) {
                self.apply_event(&Event::GangFound { gang, since, sitting: all });
            }
            return;
        }
        tracing::info!(gang = &**name, request = &*booking, "takes over the booking");
        if let Some(known) = self.served_requests.requests.get_mut(&booking) {
            known.consumers.insert(name.clone());
            known.is_consumed = handover.left.is_empty();
        }
        if handover.left.is_empty() {
            self.forget_status(&booking);
            self.gangs.remove(&booking);
        }
        self.admit(to);
    }

    /// Releases a booking that does not fit the pods that came for it, and reports that. They can still get the same capacity by
    /// ordinary scheduling; kept for no pods, it would be bought twice.
    fn release_mismatched_booking(&mut self, name: &Arc<str>, booking: &Arc<str>, why: &str) {
        let GangSource::Request { name: request, .. } = request_of_gang(booking) else { return };
        let message =
            format!("the capacity that ProvisioningRequest {request} booked is released: {why}");
        let reason = (MISMATCH, "TakeRoom");
        self.record_event(name, EventType::Warning, reason, &message);
        self.record_event(booking, EventType::Warning, reason, &format!("gang {name}: {why}"));
        if let Some(about) = self.request_reference(booking) {
            self.record_event_about(
                about,
                EventType::Warning,
                reason,
                &format!("gang {name}: {why}"),
            );
        }
        self.close_request(booking, BOOKING_EXPIRED, MISMATCH, &format!("gang {name}: {why}"));
        self.reconcile_gang(booking);
        self.remove_object(booking);
    }

    /// The request of a booking, as events refer to it.
    fn request_reference(&self, booking: &str) -> Option<ObjectReference> {
        let object = self.request(&request_of_gang(booking))?;
        let kind = self.sources.resource(KindRole::Request)?;
        Some(ObjectReference {
            api_version: Some(kind.api_version.clone()),
            kind: Some(kind.kind.clone()),
            name: object.metadata.name.clone(),
            namespace: object.metadata.namespace.clone(),
            uid: object.metadata.uid.clone(),
            ..ObjectReference::default()
        })
    }
}

/// The reason of a booking that was released because it does not fit its pods.
const MISMATCH: &str = "CapacityBookingMismatch";

/// A seat for one member: its role and its node.
pub(crate) type SingleSeat = (u16, NodeIdx);

/// How booked seats are divided.
#[derive(Debug)]
struct Handover {
    /// By role of the gang that takes them over.
    taken: Vec<SingleSeat>,
    /// Seats that stay booked.
    left: Vec<RoleSeats>,
}

/// Plans which booked seats a gang takes over: for at most its maximum of members, and at least its minimum; or why the booking
/// does not fit.
///
/// What was added to its pods since then counts as booked where it is free on the node beside the booking.
fn plan_handover(world: &World, booking: &Gang, consumer: &Gang) -> Result<Handover, String> {
    let close = |gang: &Gang| match &gang.spec.closeness {
        Some(Closeness::Required(level)) => Some(level.clone()),
        Some(Closeness::Preferred(_)) | None => None,
    };
    if close(consumer).is_some() && close(consumer) != close(booking) {
        return Err("its pods must be closer together than was booked".to_owned());
    }
    let mut booked_seats = single_seats(booking);
    let mut taken: Vec<SingleSeat> = Vec::new();
    let mut nodes =
        BookedNodes { world, booking, left: booking.seats.clone(), states: FxHashMap::default() };
    // Roles that request exactly what was booked choose first, and roles that request more last.
    for suffices in [is_same, is_enough, has_same_gpus] {
        for (at, role) in consumer.spec.roles.iter().enumerate() {
            let at = at as u16;
            let mut wants = role.max - in_role(&taken, at);
            booked_seats.retain(|seat| {
                let booked = &booking.spec.roles[usize::from(seat.0)].request;
                let sig = consumer.sigs[usize::from(at)];
                let good = wants > 0
                    && suffices(booked, &role.request)
                    && is_eligible(world, sig, seat.1)
                    && nodes.replace(*seat, world.signature(sig));
                if good {
                    wants -= 1;
                    taken.push((at, seat.1));
                }
                !good
            });
        }
    }
    for (at, role) in consumer.spec.roles.iter().enumerate() {
        let found = in_role(&taken, at as u16);
        if found < role.min {
            return Err(mismatch(booking, role, found));
        }
    }
    Ok(Handover { taken, left: seats_by_node(&booked_seats) })
}

/// The nodes of a booking while members replace its seats, one for one.
struct BookedNodes<'w> {
    world: &'w World,
    booking: &'w Gang,
    /// Seats that are not replaced yet.
    left: Vec<Seat>,
    states: FxHashMap<NodeIdx, NodeState>,
}

impl BookedNodes<'_> {
    /// Replaces a booked seat by a member, if the member fits there with what is free on the node.
    fn replace(&mut self, (role, node): SingleSeat, member: &Signature) -> bool {
        let Some(at) = self.left.iter().position(|seat| (seat.role, seat.node) == (role, node))
        else {
            return false;
        };
        let Some(known) = self.world.node_state(node) else { return false };
        let known = || self.world.states().get(known).clone();
        let mut state = self.states.get(&node).cloned().unwrap_or_else(known);
        let seat = Seat { members: 1, ..self.left[at] };
        state.rise(self.world.signature(self.booking.sigs[usize::from(role)]), &seat);
        if member.times_fits(&state) == 0 {
            return false;
        }
        state.fill(member, 1);
        self.states.insert(node, state);
        match self.left[at].members {
            0 | 1 => drop(self.left.remove(at)),
            _ => self.left[at].members -= 1,
        }
        true
    }
}

/// Why the booking has too few seats for a role.
fn mismatch(booking: &Gang, role: &RoleSpec, found: u32) -> String {
    let (name, min) = (&role.name, role.min);
    let like = booking.spec.roles.iter().find(|booked| booked.request.gpu == role.request.gpu);
    let Some(like) = like else {
        return format!("{name} requests other GPUs than were booked");
    };
    let requested = role.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    let more = requested.filter_map(|(resource, amount)| {
        let booked = like.request.amounts.get(resource).copied().unwrap_or(0);
        let (amount, was) = (*amount, booked);
        (amount > was).then(|| {
            let (amount, was) = (display_amount(resource, amount), display_amount(resource, was));
            format!("{amount} {resource} where {was} was booked")
        })
    });
    let more: Vec<String> = more.collect();
    match more.is_empty() {
        true => format!("{name} needs {min} pods, and the booking has eligible seats for {found}"),
        false => format!(
            "{name} requests {}, which fits beside the booking for {found} of {min} pods",
            more.join(", ")
        ),
    }
}

fn in_role(seats: &[SingleSeat], role: u16) -> u32 {
    seats.iter().filter(|(of, _)| *of == role).count() as u32
}

/// Whether exactly this was booked. Tokens are not compared: their rules are checked when seats are taken over.
fn is_same(booked: &Request, requested: &Request) -> bool {
    let plain = |request: &Request| -> Vec<_> {
        let amounts = request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
        amounts.map(|(name, amount)| (name.clone(), *amount)).collect()
    };
    booked.gpu == requested.gpu && plain(booked) == plain(requested)
}

/// Whether at least this was booked.
fn is_enough(booked: &Request, requested: &Request) -> bool {
    let has = |name: &Arc<str>| booked.amounts.get(name).copied().unwrap_or(0);
    let amounts = requested.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    booked.gpu == requested.gpu && amounts.into_iter().all(|(name, amount)| *amount <= has(name))
}

/// Whether these GPUs were booked, whatever else is requested: the rest may be free beside the booking.
fn has_same_gpus(booked: &Request, requested: &Request) -> bool {
    booked.gpu == requested.gpu
}

/// Whether a node is eligible for members with this signature.
fn is_eligible(world: &World, sig: SigIdx, node: NodeIdx) -> bool {
    world.node(node).is_some_and(|node| {
        let (shape, topology) = (world.class(node.class), world.topology());
        world.signature(sig).score(shape, topology, node.leaf, Some(&node.name)).is_some()
    })
}

/// A gang's seats, one per member.
fn single_seats(gang: &Gang) -> Vec<SingleSeat> {
    let each = |seat: &Seat| std::iter::repeat_n((seat.role, seat.node), usize::from(seat.members));
    gang.seats.iter().flat_map(each).collect()
}

/// Seats, summed by role and node.
pub(crate) fn seats_by_node(seats: &[SingleSeat]) -> Vec<RoleSeats> {
    let mut sitting: Vec<RoleSeats> = Vec::new();
    for (role, node) in seats.iter().copied() {
        match sitting.iter_mut().find(|one| (one.role, one.node) == (role, node)) {
            Some(one) => one.members += 1,
            None => sitting.push(RoleSeats { role, node, members: 1 }),
        }
    }
    sitting
}

/// Seats for a gang on these nodes, role by role, with free devices. `None` if a node has too few.
fn with_devices(world: &World, gang: GangId, chosen: &[SingleSeat]) -> Option<Vec<Seat>> {
    let gang = world.gang(gang)?;
    let mut states: FxHashMap<NodeIdx, NodeState> = FxHashMap::default();
    let mut seats: Vec<Seat> = Vec::new();
    for RoleSeats { role, node, members } in seats_by_node(chosen) {
        let known = world.states().get(world.node_state(node)?);
        let state = states.entry(node).or_insert_with(|| known.clone());
        let signature = world.signature(gang.sigs[usize::from(role)]);
        if signature.times_fits(state) < u32::from(members) {
            return None;
        }
        let devices = state.fill(signature, u32::from(members));
        if devices.is_empty() {
            seats.push(Seat { devices: Default::default(), node, role, members });
        }
        seats.extend(devices.into_iter().map(|devices| Seat { devices, node, role, members: 1 }));
    }
    seats.sort_by_key(|seat| seat.role);
    Some(seats)
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::{Requirement, Test};
    use muster_core::gang::GangSpec;
    use muster_core::node::NodeSpec;
    use muster_core::queue::QueueSpec;
    use muster_core::time::Time;
    use muster_core::topology::Levels;
    use serde_json::json;

    use crate::provision::requests_served::handover::*;

    /// Roles as `NAME MIN..MAX GPUS CPU`.
    fn gang(name: &str, roles: &[(&str, u32, u32, u16, u64)]) -> GangSpec {
        let role = |(name, min, max, gpus, cpu): &(&str, u32, u32, u16, u64)| {
            let gpu = json!({"resource": "nvidia.com/gpu", "count": gpus, "share": 1_000});
            let gpu = if *gpus == 0 { json!(null) } else { gpu };
            let request = json!({"amounts": {"cpu": cpu}, "gpu": gpu});
            json!({"name": name, "min": min, "max": max, "request": request})
        };
        let roles: Vec<_> = roles.iter().map(role).collect();
        let spec = json!({"name": name, "queue": "default", "roles": roles});
        serde_json::from_value(spec).expect("a gang")
    }

    /// Nodes of 8 GPUs, and a booking of two seats with 4 GPUs on the first, one with 8 on the second, and one without
    /// any on the third.
    fn booked() -> (World, GangId) {
        let mut world = World::new(Levels::default());
        let mut apply = |event: &Event| world.apply(Time(0), event).expect("no surprise");
        apply(&Event::QueueSet(QueueSpec::open("default")));
        for name in ["n0", "n1", "n2"] {
            let gpu = json!({"resource": "nvidia.com/gpu", "model": "", "memory": 0});
            let node = json!({"name": name, "allocatable": {"cpu": 16}, "gpu": gpu, "gpus": 8, "ready": true});
            let node: NodeSpec = serde_json::from_value(node).expect("a node");
            apply(&Event::NodeSeen(node));
        }
        let roles = [("half", 2, 2, 4, 2), ("whole", 1, 1, 8, 2), ("none", 1, 1, 0, 2)];
        apply(&Event::GangSubmitted(gang("booking", &roles)));
        let id = world.gang_named("booking").expect("submitted");
        let seats = [(0, "n0"), (0, "n0"), (1, "n1"), (2, "n2")];
        let seat = |(role, node): (u16, &str)| (role, world.node_named(node).expect("seen"));
        let sitting = seats_by_node(&seats.map(seat));
        let found = Event::GangFound { gang: id, since: Time(0), sitting };
        world.apply(Time(0), &found).expect("found");
        (world, id)
    }

    /// The seats that a gang takes over, and those that stay booked: `ROLE@NODE ... | MEMBERS@NODE ...`
    fn handed_over(consumer: &GangSpec) -> Option<String> {
        let (mut world, from) = booked();
        world.apply(Time(0), &Event::GangSubmitted(consumer.clone())).expect("submitted");
        let to = world.gang_named(&consumer.name).expect("submitted");
        let handover = plan_handover(&world, world.gang(from)?, world.gang(to)?).ok()?;
        let name = |node| world.node_name(node).expect("seen").clone();
        let mut words: Vec<String> = Vec::new();
        for (role, node) in &handover.taken {
            words.push(format!("{}@{}", consumer.roles[usize::from(*role)].name, name(*node)));
        }
        words.push("|".to_owned());
        words.extend(handover.left.iter().map(|one| format!("{}@{}", one.members, name(one.node))));
        // The handover is possible: the booking shrinks, and the gang is admitted.
        let event = match handover.left.is_empty() {
            true => Event::GangEnded(from),
            false => {
                Event::GangFound { gang: from, since: Time(0), sitting: handover.left.clone() }
            }
        };
        world.apply(Time(0), &event).expect("given up");
        let seats = with_devices(&world, to, &handover.taken).expect("there is room");
        let admit = Event::Decided(Action::Admit { gang: to, seats });
        world.apply(Time(0), &admit).expect("admitted");
        Some(words.join(" "))
    }

    #[test]
    fn members_take_over_seats_like_their_own_and_the_rest_stays_booked() {
        let all = [("w", 1, 1, 8, 2), ("h", 2, 2, 4, 2), ("n", 1, 1, 0, 2)];
        assert_eq!(handed_over(&gang("all", &all)).as_deref(), Some("w@n1 h@n0 h@n0 n@n2 |"));
        let one = handed_over(&gang("one", &[("h", 1, 1, 4, 2)]));
        assert_eq!(one.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let less = handed_over(&gang("less", &[("h", 1, 1, 4, 1)]));
        assert_eq!(less.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let elastic = handed_over(&gang("elastic", &[("h", 1, 9, 4, 2)]));
        assert_eq!(elastic.as_deref(), Some("h@n0 h@n0 | 1@n1 1@n2"));
    }

    #[test]
    fn larger_members_take_over_seats_where_the_node_has_the_rest_free() {
        let larger = handed_over(&gang("larger", &[("h", 1, 1, 4, 3)]));
        assert_eq!(larger.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        // Of 16 on the first node, 2 stay booked for the other.
        let most = handed_over(&gang("most", &[("h", 1, 1, 4, 14)]));
        assert_eq!(most.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let both = handed_over(&gang("both", &[("h", 2, 2, 4, 8)]));
        assert_eq!(both.as_deref(), Some("h@n0 h@n0 | 1@n1 1@n2"));
        assert_eq!(handed_over(&gang("too-much", &[("h", 2, 2, 4, 9)])), None);
    }

    #[test]
    fn gang_that_does_not_match_the_booking_gets_no_seat() {
        assert_eq!(handed_over(&gang("more", &[("h", 3, 3, 4, 2)])), None);
        assert_eq!(handed_over(&gang("too-large", &[("h", 1, 1, 4, 15)])), None);
        assert_eq!(handed_over(&gang("other", &[("h", 1, 1, 2, 2)])), None);
        let mut picky = gang("picky", &[("h", 1, 1, 4, 2)]);
        let test = Test::In(vec!["b".into()]);
        picky.roles[0].constraints.all = vec![Requirement { key: "zone".into(), test }];
        assert_eq!(handed_over(&picky), None);
    }
}
