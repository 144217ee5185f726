//! Booked room passes to those it was booked for.
//!
//! The booking gives up its seats and the gang gets them, one right after the other: both are events of a World that only
//! this task speaks to, and the planner is not asked between them. Written down is first where the gang goes, as for
//! every gang, and only when it has started that the room was taken. Whoever is killed in between finds either the
//! booking, or a gang that has its seats.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
use muster_api::provisioning;
use muster_core::event::Sitting;
use muster_core::gang::{Closeness, Gang, Phase, Request, RoleSpec, Seat};
use muster_core::id::{GangId, NodeIdx, SigIdx};
use muster_core::plan::Action;
use muster_core::resource::{TOKEN, display_amount};
use muster_core::signature::Signature;
use muster_core::state::NodeState;
use muster_core::{Event, World};
use rustc_hash::FxHashMap;

use crate::cache::kinds::KindRole;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::order_object::parts;
use crate::provision::requests_served::build::is_served;
use crate::provision::requests_served::conditions::BOOKING_EXPIRED;
use crate::provision::requests_served::reconcile::origin_of_gang;

/// What a gang's pods say of room that was booked for them.
#[derive(Debug)]
pub(crate) enum Room {
    /// They name no request, or one that is none of Muster's, or is over: they are scheduled like any others.
    Unasked,
    /// They name a request that has no room yet, by its gang; and how that is said.
    Awaited(Arc<str>, String),
    /// There is room for them: the gang that holds it.
    Booked(Arc<str>),
}

impl Host {
    /// The gang of the request whose room the pods of a group come to take. Some may not say so: those who hand out the
    /// annotation do not always give it to all.
    pub(crate) fn consumes(&self, group: &GangRecord) -> Option<Arc<str>> {
        let pods = group.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let mut named = pods.filter_map(|(key, pod)| {
            let request = provisioning::consumes(pod.metadata.annotations.as_ref()?)?;
            let (namespace, name) = (parts(key).0.into(), request.into());
            Some(GangSource::Request { namespace, name }.gang_name())
        });
        named.next()
    }

    /// What a gang's pods say of room that was booked for them.
    pub(crate) fn room_of(&self, name: &Arc<str>) -> Room {
        let Some(group) = self.gangs.get(name) else { return Room::Unasked };
        let Some(booking) = self.consumes(group) else { return Room::Unasked };
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let has_seats = match gang {
            Some(gang) => gang.phase != Phase::Waiting,
            None => !self.pods_by_state(group).bound.is_empty() || self.has_placement(name),
        };
        if has_seats || self.sources.of(KindRole::Request).is_none() {
            return Room::Unasked;
        }
        let GangSource::Request { namespace, name: request } = origin_of_gang(&booking) else {
            return Room::Unasked;
        };
        let why = match self.object(KindRole::Request, &namespace, &request) {
            None => format!("ProvisioningRequest {request} does not exist"),
            Some(object) if is_served(object) && self.served_requests.is_open(&booking) => {
                if self.has_room(&booking) {
                    return Room::Booked(booking);
                }
                format!("ProvisioningRequest {request} has no room yet")
            }
            Some(_) => return Room::Unasked,
        };
        // Who stands in line already has given up waiting for it.
        if gang.is_some() { Room::Unasked } else { Room::Awaited(booking, why) }
    }

    /// Whether a request has its room, and it is written down where.
    fn has_room(&self, booking: &str) -> bool {
        let gang = self.world.gang_named(booking).and_then(|id| self.world.gang(id));
        let sits = gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
        });
        sits && self.gangs.get(booking).is_some_and(|group| group.placement_written)
    }

    /// Notes that a gang waits until a request has its room.
    pub(crate) fn await_room(&mut self, name: &Arc<str>, booking: Arc<str>) {
        self.served_requests.awaited_by.entry(booking).or_default().insert(name.clone());
    }

    /// A gang that waits takes the room that was booked for it, if there is any.
    pub(crate) fn take_room(&mut self, name: &Arc<str>) {
        let Room::Booked(booking) = self.room_of(name) else { return };
        let gangs = (self.world.gang_named(&booking), self.world.gang_named(name));
        let (Some(from), Some(to)) = gangs else { return };
        let held = self.world.gang(from).expect("named");
        let taker = self.world.gang(to).expect("named");
        let share = match share(&self.world, held, taker) {
            Ok(share) => share,
            Err(why) => return self.refuse_room(name, &booking, &why),
        };
        let (spec, all) = (held.spec.clone(), sittings(&places(held)));
        let (since, left) = (self.now(), share.left.clone());
        match left.is_empty() {
            true => self.apply_event(&Event::GangEnded(from)),
            false => self.apply_event(&Event::GangFound { gang: from, since, sitting: left }),
        };
        let seats = seats(&self.world, to, &share.taken);
        let admitted = seats.is_some_and(|seats| {
            self.apply_event(&Event::Decided(Action::Admit { gang: to, seats }))
        });
        if !admitted {
            // As if nothing had been: a node may not be ready now, or the queue's limit is in the way.
            if share.left.is_empty() {
                self.apply_event(&Event::GangSubmitted(spec));
            }
            if let Some(gang) = self.world.gang_named(&booking) {
                self.apply_event(&Event::GangFound { gang, since, sitting: all });
            }
            return;
        }
        tracing::info!(gang = &**name, request = &*booking, "takes the room that was booked");
        if let Some(known) = self.served_requests.known.get_mut(&booking) {
            known.takers.insert(name.clone());
            known.is_spent = share.left.is_empty();
        }
        if share.left.is_empty() {
            self.unwrite(&booking);
            self.gangs.remove(&booking);
        }
        self.admit(to);
    }

    /// Pods cannot use the room that was booked for them. That is said, and the room is free for them like any other: kept for
    /// nobody, it would be bought twice.
    fn refuse_room(&mut self, name: &Arc<str>, booking: &Arc<str>, why: &str) {
        let GangSource::Request { name: request, .. } = origin_of_gang(booking) else { return };
        let message =
            format!("the room that ProvisioningRequest {request} booked is released: {why}");
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
        self.say_last(booking, BOOKING_EXPIRED, MISMATCH, &format!("gang {name}: {why}"));
        self.reconcile_gang(booking);
        self.remove_object(booking);
    }

    /// The request that a booking was made of, as events name it.
    fn request_reference(&self, booking: &str) -> Option<ObjectReference> {
        let object = self.request(&origin_of_gang(booking))?;
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

/// Why booked room is released although its pods came.
const MISMATCH: &str = "CapacityBookingMismatch";

/// Room for one member: the role it was booked as, or is taken by, and where it is.
pub(crate) type Spot = (u16, NodeIdx);

/// How booked room is divided.
#[derive(Debug)]
struct Share {
    /// By role of the gang that takes it.
    taken: Vec<Spot>,
    /// What stays booked.
    left: Vec<Sitting>,
}

/// What a gang takes of booked room: as many members as it may have, and at least as many as it must; or why what was
/// booked is not what it needs.
///
/// What was added to its pods since counts as booked where it is free on the node beside the booking.
fn share(world: &World, booking: &Gang, taker: &Gang) -> Result<Share, String> {
    let close = |gang: &Gang| match &gang.spec.closeness {
        Some(Closeness::Required(level)) => Some(level.clone()),
        Some(Closeness::Preferred(_)) | None => None,
    };
    if close(taker).is_some() && close(taker) != close(booking) {
        return Err("its pods must be closer together than was booked".to_owned());
    }
    let mut spots = places(booking);
    let mut taken: Vec<Spot> = Vec::new();
    let mut beside =
        Beside { world, booking, left: booking.seats.clone(), states: FxHashMap::default() };
    // Those who ask for exactly what was booked choose first, and those who ask for more last.
    for suffices in [is_same, is_enough, has_same_gpus] {
        for (at, role) in taker.spec.roles.iter().enumerate() {
            let at = at as u16;
            let mut wants = role.max - in_role(&taken, at);
            spots.retain(|spot| {
                let booked = &booking.spec.roles[usize::from(spot.0)].request;
                let sig = taker.sigs[usize::from(at)];
                let good = wants > 0
                    && suffices(booked, &role.request)
                    && suits(world, sig, spot.1)
                    && beside.swap(*spot, world.signature(sig));
                if good {
                    wants -= 1;
                    taken.push((at, spot.1));
                }
                !good
            });
        }
    }
    for (at, role) in taker.spec.roles.iter().enumerate() {
        let found = in_role(&taken, at as u16);
        if found < role.min {
            return Err(lacking(booking, role, found));
        }
    }
    Ok(Share { taken, left: sittings(&spots) })
}

/// Nodes of a booking while members take its seats, one for another.
struct Beside<'w> {
    world: &'w World,
    booking: &'w Gang,
    /// Seats that are not taken yet.
    left: Vec<Seat>,
    states: FxHashMap<NodeIdx, NodeState>,
}

impl Beside<'_> {
    /// Puts a member in the place of a booked seat, if it fits there with what is free on the node.
    fn swap(&mut self, (role, node): Spot, member: &Signature) -> bool {
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

/// Why a role finds too little of what was booked.
fn lacking(booking: &Gang, role: &RoleSpec, found: u32) -> String {
    let (name, min) = (&role.name, role.min);
    let like = booking.spec.roles.iter().find(|booked| booked.request.gpu == role.request.gpu);
    let Some(like) = like else {
        return format!("{name} asks for other GPUs than were booked");
    };
    let asked = role.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    let more = asked.filter_map(|(resource, amount)| {
        let booked = like.request.amounts.get(resource).copied().unwrap_or(0);
        let (amount, was) = (*amount, booked);
        (amount > was).then(|| {
            let (amount, was) = (display_amount(resource, amount), display_amount(resource, was));
            format!("{amount} {resource} where {was} was booked")
        })
    });
    let more: Vec<String> = more.collect();
    match more.is_empty() {
        true => format!(
            "{name} needs {min} pods, and the booking has room for {found} that may go there"
        ),
        false => format!(
            "{name} asks for {}, which fits beside the booking for {found} of {min} pods",
            more.join(", ")
        ),
    }
}

fn in_role(spots: &[Spot], role: u16) -> u32 {
    spots.iter().filter(|(of, _)| *of == role).count() as u32
}

/// Whether exactly this was booked. Tokens are not: what they stand for is looked at when seats are taken.
fn is_same(booked: &Request, asked: &Request) -> bool {
    let plain = |request: &Request| -> Vec<_> {
        let amounts = request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
        amounts.map(|(name, amount)| (name.clone(), *amount)).collect()
    };
    booked.gpu == asked.gpu && plain(booked) == plain(asked)
}

/// Whether so much was booked.
fn is_enough(booked: &Request, asked: &Request) -> bool {
    let has = |name: &Arc<str>| booked.amounts.get(name).copied().unwrap_or(0);
    let amounts = asked.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    booked.gpu == asked.gpu && amounts.into_iter().all(|(name, amount)| *amount <= has(name))
}

/// Whether as many GPUs were booked, whatever else is asked for: that may be free beside the booking.
fn has_same_gpus(booked: &Request, asked: &Request) -> bool {
    booked.gpu == asked.gpu
}

/// Whether members of this kind may be on a node.
fn suits(world: &World, sig: SigIdx, node: NodeIdx) -> bool {
    world.node(node).is_some_and(|node| {
        let (shape, topology) = (world.class(node.class), world.topology());
        world.signature(sig).score(shape, topology, node.leaf, Some(&node.name)).is_some()
    })
}

/// A gang's seats, one by one.
fn places(gang: &Gang) -> Vec<Spot> {
    let each = |seat: &Seat| std::iter::repeat_n((seat.role, seat.node), usize::from(seat.members));
    gang.seats.iter().flat_map(each).collect()
}

/// As a host would find them.
pub(crate) fn sittings(spots: &[Spot]) -> Vec<Sitting> {
    let mut sitting: Vec<Sitting> = Vec::new();
    for (role, node) in spots.iter().copied() {
        match sitting.iter_mut().find(|one| (one.role, one.node) == (role, node)) {
            Some(one) => one.members += 1,
            None => sitting.push(Sitting { role, node, members: 1 }),
        }
    }
    sitting
}

/// Seats for a gang in these spots, role by role, on devices that are free.
fn seats(world: &World, gang: GangId, spots: &[Spot]) -> Option<Vec<Seat>> {
    let gang = world.gang(gang)?;
    let mut states: FxHashMap<NodeIdx, NodeState> = FxHashMap::default();
    let mut seats: Vec<Seat> = Vec::new();
    for Sitting { role, node, members } in sittings(spots) {
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
        let mut tell = |event: &Event| world.apply(Time(0), event).expect("no surprise");
        tell(&Event::QueueSet(QueueSpec::open("default")));
        for name in ["n0", "n1", "n2"] {
            let gpu = json!({"resource": "nvidia.com/gpu", "model": "", "memory": 0});
            let node = json!({"name": name, "allocatable": {"cpu": 16}, "gpu": gpu, "gpus": 8, "ready": true});
            let node: NodeSpec = serde_json::from_value(node).expect("a node");
            tell(&Event::NodeSeen(node));
        }
        let roles = [("half", 2, 2, 4, 2), ("whole", 1, 1, 8, 2), ("none", 1, 1, 0, 2)];
        tell(&Event::GangSubmitted(gang("booking", &roles)));
        let id = world.gang_named("booking").expect("submitted");
        let spots = [(0, "n0"), (0, "n0"), (1, "n1"), (2, "n2")];
        let spot = |(role, node): (u16, &str)| (role, world.node_named(node).expect("seen"));
        let sitting = sittings(&spots.map(spot));
        let found = Event::GangFound { gang: id, since: Time(0), sitting };
        world.apply(Time(0), &found).expect("found");
        (world, id)
    }

    /// Who gets what of the booking, and what stays: `ROLE@NODE ... | MEMBERS@NODE ...`
    fn shared(taker: &GangSpec) -> Option<String> {
        let (mut world, from) = booked();
        world.apply(Time(0), &Event::GangSubmitted(taker.clone())).expect("submitted");
        let to = world.gang_named(&taker.name).expect("submitted");
        let share = share(&world, world.gang(from)?, world.gang(to)?).ok()?;
        let name = |node| world.node_name(node).expect("seen").clone();
        let mut words: Vec<String> = Vec::new();
        for (role, node) in &share.taken {
            words.push(format!("{}@{}", taker.roles[usize::from(*role)].name, name(*node)));
        }
        words.push("|".to_owned());
        words.extend(share.left.iter().map(|one| format!("{}@{}", one.members, name(one.node))));
        // What is shared can be had: the booking shrinks, and the gang is admitted.
        let event = match share.left.is_empty() {
            true => Event::GangEnded(from),
            false => Event::GangFound { gang: from, since: Time(0), sitting: share.left.clone() },
        };
        world.apply(Time(0), &event).expect("given up");
        let seats = seats(&world, to, &share.taken).expect("there is room");
        let admit = Event::Decided(Action::Admit { gang: to, seats });
        world.apply(Time(0), &admit).expect("admitted");
        Some(words.join(" "))
    }

    #[test]
    fn members_get_what_was_booked_for_their_like_and_the_rest_stays() {
        let all = [("w", 1, 1, 8, 2), ("h", 2, 2, 4, 2), ("n", 1, 1, 0, 2)];
        assert_eq!(shared(&gang("all", &all)).as_deref(), Some("w@n1 h@n0 h@n0 n@n2 |"));
        let one = shared(&gang("one", &[("h", 1, 1, 4, 2)]));
        assert_eq!(one.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let less = shared(&gang("less", &[("h", 1, 1, 4, 1)]));
        assert_eq!(less.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let elastic = shared(&gang("elastic", &[("h", 1, 9, 4, 2)]));
        assert_eq!(elastic.as_deref(), Some("h@n0 h@n0 | 1@n1 1@n2"));
    }

    #[test]
    fn members_that_ask_for_more_take_booked_room_where_the_rest_is_free() {
        let larger = shared(&gang("larger", &[("h", 1, 1, 4, 3)]));
        assert_eq!(larger.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        // Of 16 on the first node, 2 stay booked for the other.
        let most = shared(&gang("most", &[("h", 1, 1, 4, 14)]));
        assert_eq!(most.as_deref(), Some("h@n0 | 1@n0 1@n1 1@n2"));
        let both = shared(&gang("both", &[("h", 2, 2, 4, 8)]));
        assert_eq!(both.as_deref(), Some("h@n0 h@n0 | 1@n1 1@n2"));
        assert_eq!(shared(&gang("too-much", &[("h", 2, 2, 4, 9)])), None);
    }

    #[test]
    fn who_asks_for_something_else_gets_nothing_of_it() {
        assert_eq!(shared(&gang("more", &[("h", 3, 3, 4, 2)])), None);
        assert_eq!(shared(&gang("too-large", &[("h", 1, 1, 4, 15)])), None);
        assert_eq!(shared(&gang("other", &[("h", 1, 1, 2, 2)])), None);
        let mut picky = gang("picky", &[("h", 1, 1, 4, 2)]);
        let test = Test::In(vec!["b".into()]);
        picky.roles[0].constraints.all = vec![Requirement { key: "zone".into(), test }];
        assert_eq!(shared(&picky), None);
    }
}
