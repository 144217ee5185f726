//! Pods become gangs, and gangs are followed: submitted, started, done, gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::{Refusal, Sitting};
use muster_core::gang::{GangSpec, Phase, RoleSpec};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::resource::TOKEN;

use crate::cache::kinds::{BuiltGang, GangSource};
use crate::cache::node_usage::takes_otherwise;
use crate::cache::store::{Key, Moved};
use crate::gang::registry::GangRecord;
use crate::gang::tenancy::trusted_annotations::Released;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::requests_served::handover::Room;
use crate::schedule::owner_resize::Size;
use crate::status::gang::LEFT_OUT;

/// The pods of a gang by what they do now.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Put on a node, and not over.
    pub(crate) bound: Vec<(Key, Arc<str>)>,
    /// Nowhere yet, and free to be told where to go.
    pub(crate) free: Vec<Key>,
}

impl Host {
    /// Takes in a change of a pod.
    pub(crate) fn observe_pod(&mut self, moved: &Moved<Pod>) {
        #[cfg(any(test, feature = "cluster"))]
        crate::recover::injected_faults::strike(
            &self.config.faults,
            crate::recover::injected_faults::Spot::Pod,
            &moved.key,
        );
        let nodes = [&moved.was, &moved.is].map(|pod| pod.as_deref().and_then(Pod::node));
        self.pod_may_invalidate(moved);
        let Some(pod) = &moved.is else {
            self.unwrite_pod(&moved.key);
            let gang = self.gangs.leave(&moved.key);
            let is_known = gang.as_ref().is_some_and(|gang| self.world.gang_named(gang).is_some());
            if !is_known || nodes.iter().flatten().any(|node| self.excess_usage.contains(*node)) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            self.dirty.gangs.extend(gang);
            return;
        };
        if !self.is_ours(pod) {
            // Somebody else's: what counts is what it takes. Who lifts Muster's gate by hand makes it so.
            if let Some(gang) = self.gangs.leave(&moved.key) {
                self.dirty.gangs.insert(gang);
            }
            if takes_otherwise(moved) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            return;
        }
        let name = self.join(&moved.key, pod);
        // Who goes where it was told takes what there is a seat for.
        let told = self.gangs.get(&name).and_then(|group| group.assigned.get(&moved.key));
        let is_told = told.is_some_and(|told| nodes[0].is_none() && nodes[1] == Some(&**told));
        self.seat_seen(&moved.key, pod);
        let is_beyond = nodes.iter().flatten().any(|node| self.excess_usage.contains(*node));
        let is_elsewhere = takes_otherwise(moved) && !is_told && !pod.is_over();
        if is_elsewhere || is_beyond || self.world.gang_named(&name).is_none() {
            self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
        }
        if moved.was.is_none() && pod.node().is_none() {
            self.written_status.is_untold(&name);
        }
        self.dirty.gangs.insert(name);
    }

    /// Where a pod is, or will be: it was told so, and here it can be seen.
    pub(crate) fn seat_seen(&mut self, key: &Key, pod: &Pod) {
        let seat: Option<Arc<str>> = self.seat_of(key, pod).map(Arc::from);
        let Some(name) = self.gangs.of(key).map(|(name, _)| name.clone()) else { return };
        let group = self.gangs.get_mut(&name).expect("just seen");
        if let Some(node) = &seat {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            group.released.insert(key.clone(), Released { uid, node: node.clone() });
        }
        match (pod.node(), seat) {
            (Some(node), _) if group.assigned.get(key).is_some_and(|told| **told == *node) => {
                group.assigned.remove(key);
            }
            // Its gate is lifted: its scheduler has no other node to choose.
            (None, Some(seat)) => drop(group.assigned.insert(key.clone(), seat)),
            _ => {}
        }
    }

    /// Looks at a gang again: some of its pods have changed, or what says what it is has.
    pub(crate) fn reconcile_gang(&mut self, name: &Arc<str>) {
        #[cfg(any(test, feature = "cluster"))]
        if self.left_out(name).is_none() {
            crate::recover::injected_faults::strike(
                &self.config.faults,
                crate::recover::injected_faults::Spot::Gang,
                name,
            );
        }
        if self.left_out(name).is_none() && self.regroup(name) {
            return;
        }
        let Some(group) = self.gangs.get(name) else { return };
        let nobody = group.pods.is_empty() && group.successors.is_empty();
        if nobody && !self.is_there(&group.origin) {
            return self.remove_gang(name);
        }
        if let Some(why) = self.left_out(name) {
            return self.withhold(name, &why);
        }
        if let GangSource::Request { .. } = group.origin {
            return self.reconcile_request(name);
        }
        if self.is_superseded(group) {
            return self.start_successor(name);
        }
        self.withdraw(name);
        self.watch_stages(name);
        self.make_members(name);
        match self.gather_named(name) {
            Ok(gathered) => {
                self.gangs.get_mut(name).expect("just seen").wished = false;
                self.submit_or_update(name, gathered);
                self.take_room(name);
            }
            Err(why) => {
                let group = self.gangs.get_mut(name).expect("just seen");
                group.sized.clear();
                // That members are missing helps their owner less than why they are.
                let why = group.pace.refusal().map_or(why, str::to_owned);
                if self.gangs.trouble(name, Some(why.clone())) {
                    tracing::info!(gang = &**name, why, "not a whole gang");
                }
                self.is_no_gang(name);
            }
        }
        self.follow(name);
    }

    /// A gang whose handling caused a panic is not planned, bound or evicted; its pods are told why.
    fn withhold(&mut self, name: &Arc<str>, why: &str) {
        if self.gangs.trouble(name, Some(why.to_owned())) {
            self.record_event(name, EventType::Warning, (LEFT_OUT, "Schedule"), why);
        }
    }

    /// A gang of pods that asks for its tokens by name, or why they are none. Whoever named room that is not there yet
    /// does not stand in line for other room.
    pub(crate) fn gather_named(&mut self, name: &Arc<str>) -> Result<BuiltGang, String> {
        if let Some(why) = self.left_out(name) {
            return Err(why);
        }
        if let Room::Awaited(booking, why) = self.room_of(name) {
            self.await_room(name, booking);
            return Err(why);
        }
        let group = self.gangs.get(name).expect("just seen");
        let mut gathered = self.gather(group)?;
        self.name_tokens(name, &mut gathered);
        self.defer_until(name, &mut gathered);
        self.retry_bound_elsewhere(name, &mut gathered);
        Ok(gathered)
    }

    /// Tells the World what a gang is, if it does not know.
    pub(crate) fn submit_or_update(&mut self, name: &Arc<str>, gathered: BuiltGang) {
        let BuiltGang { mut spec, roles, ranks, tied, waits, imagined, absent, wanted, unheard } =
            gathered;
        self.no_larger_than_exists(name, &mut spec, &roles);
        let group = self.gangs.get_mut(name).expect("just seen");
        (group.imagined, group.absent) = (imagined, absent);
        group.sized = Size::of_roles(&spec, &wanted);
        (group.roles, group.ranks, group.tied, group.waits) = (roles, ranks, tied, waits);
        let same = group.spec.as_ref() == Some(&spec);
        let was_refused = group.refused.is_some();
        (group.is_unlike, group.is_held_back) = (false, false);
        self.gangs.trouble(name, None);
        if same {
            return;
        }
        let known = self.world.gang_named(name).is_some();
        if !known && let Some(why) = self.is_over_gang_limit(name) {
            self.gangs.trouble(name, Some(why));
            return;
        }
        let event = match known {
            false => Event::GangSubmitted(spec.clone()),
            true => Event::GangChanged(spec.clone()),
        };
        let now = self.now();
        match self.world.apply(now, &event) {
            Ok(()) => {
                self.world_changed = true;
                self.gangs.get_mut(name).expect("just seen").spec = Some(spec);
                if !known && was_refused {
                    // It has stood in line for as long as what it lacked was not there.
                    let since = self.made_at(self.gangs.get(name).expect("just seen"));
                    self.has_waited(name, since);
                }
                if !known {
                    self.say_unheard(name, &unheard);
                    self.gangs_without_object.insert(name.clone());
                    self.look_where_it_is(name);
                }
            }
            // Nobody can be what it would be now: as what it was nobody wants it any more.
            Err(refusal) if known && self.is_wrong(name, &refusal) => {
                self.take_out(name);
                self.gangs.refuse(name, refusal);
            }
            // Seats that were taken for members nobody had seen are for what they turn out to be.
            Err(_) if known && self.has_seats_for_others(name, &spec) => {
                self.turn_out(name, spec);
            }
            // An order for what it was would start it in part, or hold nodes that nobody uses.
            Err(_) if known && self.outgrew_its_order(name, &spec) => {
                tracing::info!(gang = &**name, "it is another than its order was made for");
                self.change_anew(name, spec);
            }
            // What runs stays as it was taken in.
            Err(refusal) if known => {
                tracing::debug!(gang = &**name, %refusal, "not changed");
                self.keep_roles(name, &spec);
                let group = self.gangs.get(name).expect("just seen");
                let waits = |key: &Key| {
                    let pod = self.cache.pods.get(key);
                    pod.is_some_and(|pod| !pod.is_over() && pod.node().is_none())
                };
                let has_no_seat = |key: &Key| waits(key) && !group.roles.contains_key(key);
                let is_unlike = group.pods.iter().any(has_no_seat);
                self.gangs.get_mut(name).expect("just seen").is_unlike = is_unlike;
            }
            Err(refusal) => self.gangs.refuse(name, refusal),
        }
    }

    /// Whether a gang that has no seats yet is refused for what it says, and not for how far it is.
    fn is_wrong(&self, name: &str, refusal: &Refusal) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting | Phase::Assembling(_));
        !matches!(refusal, Refusal::Stale(_)) && gang.is_some_and(|gang| waits(&gang.phase))
    }

    /// A gang that has no seats yet is planned no more, and holds nothing.
    fn take_out(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.give_order_up(id);
        self.apply_event(&Event::GangCancelled(id));
        self.gangs.get_mut(name).expect("just seen").spec = None;
    }

    /// Whether an order assembles for other members than a gang has now, or in another queue's name. Where they may go is
    /// looked at when it is complete: that changes with everybody who moves.
    fn outgrew_its_order(&self, name: &str, now: &GangSpec) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Assembling(_))
                && (!are_such_members(&gang.spec, now) || gang.spec.queue != now.queue)
        })
    }

    /// Ends the order of a gang that has become another, and has it planned as what it is, in its old place.
    fn change_anew(&mut self, name: &Arc<str>, spec: GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.give_order_up(id);
        if self.apply_event(&Event::GangChanged(spec.clone())) {
            self.gangs.get_mut(name).expect("just seen").spec = Some(spec);
        }
    }

    /// Nodes on which pods of a gang are that was not known are looked at again: what they take was counted as a
    /// stranger's.
    fn look_where_it_is(&mut self, name: &Arc<str>) {
        let group = self.gangs.get(name).expect("just seen");
        let pods = group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        self.dirty.nodes.extend(pods.filter_map(|pod| pod.node()).map(Arc::from));
    }

    /// Members of a gang that stays as it was taken in play the roles it has, by their names: they may be listed in
    /// another order since some of them exist. Who takes more than there is on a seat of its role plays none.
    pub(crate) fn keep_roles(&mut self, name: &Arc<str>, now: &GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        let roles = &self.world.gang(id).expect("named").spec.roles;
        let place = |at: &u16| {
            let of = now.roles.get(usize::from(*at))?;
            let named = |role: &&RoleSpec| role.name == of.name && has_room_for(role, of);
            // Shapes of one role are told apart by numbers, which change when one of them is done.
            let alike = |role: &&RoleSpec| is_of(role, of) && has_room_for(role, of);
            let found = roles.iter().find(named).or_else(|| roles.iter().find(alike))?;
            u16::try_from(roles.iter().position(|role| role.name == found.name)?).ok()
        };
        let group = self.gangs.get_mut(name).expect("just seen");
        let played = std::mem::take(&mut group.roles);
        group.roles = played.into_iter().filter_map(|(pod, at)| Some((pod, place(&at)?))).collect();
        let mut sized: BTreeMap<u16, Size> = BTreeMap::new();
        for (at, size) in &group.sized {
            if let Some(place) = place(at) {
                sized.entry(place).and_modify(|sum| sum.add(size)).or_insert(*size);
            }
        }
        // A role that no template names any more is wanted by nobody.
        let is_known = group.sized.values().all(|size| size.wanted.is_some());
        for (at, role) in (0..).zip(roles).filter(|_| is_known && !group.sized.is_empty()) {
            if !now.roles.iter().any(|of| is_of(role, of)) {
                sized.entry(at).or_insert(Size::UNWANTED);
            }
        }
        group.sized = sized;
    }

    /// Gangs that could not be taken in are tried again when what they name may be there.
    pub(crate) fn try_troubled(&mut self) {
        let names: Vec<Arc<str>> = self.gangs.troubled().cloned().collect();
        self.dirty.gangs.extend(names);
    }

    pub(crate) fn remove_gang(&mut self, name: &Arc<str>) {
        if let Some(id) = self.world.gang_named(name) {
            match self.world.gang(id).expect("named").phase {
                Phase::Waiting | Phase::Assembling(_) => {
                    self.apply_event(&Event::GangCancelled(id));
                    if self.world.gang(id).is_some() {
                        return; // its order is rolled back first
                    }
                }
                Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                    self.apply_event(&Event::GangEnded(id));
                }
            }
        }
        self.clear_placement(name);
        self.unwrite(name);
        self.gangs.forget(name);
        self.served_requests.waits_no_more(name);
        self.constraints.forget(name);
    }

    /// The pods of a group by what they do now.
    pub(crate) fn standing(&self, group: &GangRecord) -> Standing {
        let mut standing = Standing::default();
        for key in &group.pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            if pod.is_over() {
                continue;
            }
            if let Some(node) = pod.node() {
                standing.bound.push((key.clone(), node.into()));
            } else if let Some(node) = group.assigned.get(key) {
                standing.bound.push((key.clone(), node.clone()));
            } else if !pod.is_leaving()
                && !pod.is_held()
                && (self.config.binds(pod) || pod.has_gate())
            {
                standing.free.push(key.clone());
            }
        }
        standing
    }

    /// Holds what the World thinks of a gang against what its pods do.
    pub(crate) fn follow(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        let Some(group) = self.gangs.get(name) else { return };
        if let GangSource::Request { .. } = group.origin {
            return self.reconcile_request_phase(name, id);
        }
        let standing = self.standing(group);
        let goes_on =
            self.is_to_go_on(group) || self.awaits_members(group) || self.is_made_again(group);
        self.watch_hand_over(name, id);
        self.watch_binding(name, id, &standing);
        match self.world.gang(id).expect("named").phase {
            Phase::Waiting => {
                self.seat_as_seen(name, id, &standing);
                self.seat_bound_pods(name, id);
            }
            Phase::Assembling(_) => {}
            Phase::Admitted { .. } | Phase::Running { .. }
                if standing.bound.is_empty() && standing.free.is_empty() && !goes_on =>
            {
                // Done, or removed: nobody is left to hold seats for.
                self.apply_event(&Event::GangEnded(id));
                let group = self.gangs.get_mut(name).expect("just seen");
                (group.spec, group.recorded, group.choosing) = (None, false, None);
                group.called = None;
                (group.let_run, group.told_suspend) = (false, None);
                self.constraints.forget(name);
                self.unwrite(name);
                self.clear_placement(name);
            }
            Phase::Admitted { .. } => {
                if !self.resume_job(name, id) {
                    return;
                }
                self.seat_as_seen(name, id, &standing);
                if self.starts_anew(name, id, &standing) || self.leave_given_up(name, id, &standing)
                {
                    return;
                }
                if self.give_back_unwanted(name, id, &standing) {
                    return;
                }
                self.bind_members(name, id, &standing);
                self.may_have_started(name, id);
            }
            Phase::Running { .. } => {
                if !self.resume_job(name, id) {
                    return;
                }
                self.seat_as_seen(name, id, &standing);
                if self.starts_anew(name, id, &standing) || self.leave_given_up(name, id, &standing)
                {
                    return;
                }
                if self.give_back_unwanted(name, id, &standing) {
                    return;
                }
                self.bind_members(name, id, &standing);
                self.resize(name, id, &standing);
                self.let_go_of_those_done(name, id, &standing);
                self.tell_spare_seats(name, id);
            }
            Phase::Stopping => self.may_have_stopped(name, id, &standing),
        }
    }

    /// A gang that waits and has members on nodes: it was not understood when they were found. They have their seats; if
    /// they are too few it starts over as a whole.
    fn seat_bound_pods(&mut self, name: &Arc<str>, id: GangId) {
        let group = self.gangs.get(name).expect("followed");
        let sitting = self.sitting(group, &self.on_nodes(group));
        let waits = matches!(self.world.gang(id).expect("followed").phase, Phase::Waiting);
        if waits && sitting.is_empty() {
            self.set_outside(name, false);
        }
        if !waits || sitting.is_empty() || !self.find_seated(name, id, self.now(), sitting) {
            return;
        }
        if self.is_whole(name, id) {
            self.record(name, id);
        } else {
            self.stop(id, StopReason::Moved);
        }
        self.dirty.gangs.insert(name.clone());
    }

    /// A gang has started when it is whole.
    fn may_have_started(&mut self, name: &Arc<str>, id: GangId) {
        if self.is_whole(name, id) {
            self.apply_event(&Event::GangStarted(id));
            self.gangs.get_mut(name).expect("followed").denied = None;
        }
    }

    /// Whether every role has its minimum bound, and has been seen to.
    pub(crate) fn is_whole(&self, name: &str, id: GangId) -> bool {
        let group = self.gangs.get(name).expect("followed");
        let gang = self.world.gang(id).expect("followed");
        let seen = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        gang.spec.roles.iter().enumerate().all(|(at, role)| {
            let mine = group.roles.iter().filter(|(_, of)| usize::from(**of) == at);
            mine.filter(|(key, _)| seen(key)).count() >= role.min as usize
        })
    }

    /// Where pods sit, by role and node, on nodes that are known.
    pub(crate) fn sitting(&self, group: &GangRecord, bound: &[(Key, Arc<str>)]) -> Vec<Sitting> {
        let mut sitting: Vec<Sitting> = Vec::new();
        for (key, node) in bound {
            let (Some(role), Some(node)) = (group.roles.get(key), self.world.node_named(node))
            else {
                continue;
            };
            let same = |one: &&mut Sitting| one.role == *role && one.node == node;
            match sitting.iter_mut().find(same) {
                Some(one) => one.members += 1,
                None => sitting.push(Sitting { role: *role, node, members: 1 }),
            }
        }
        sitting
    }

    /// A gang has stopped when none of its pods is on a node any more.
    fn may_have_stopped(&mut self, name: &Arc<str>, id: GangId, standing: &Standing) {
        let held = self.suspend_job(name);
        if standing.bound.is_empty() && held != Some(false) {
            self.apply_event(&Event::GangStopped(id));
            let group = self.gangs.get_mut(name).expect("followed");
            (group.recorded, group.choosing) = (false, None);
            (group.let_run, group.told_suspend) = (false, None);
            group.leaving.clear();
            // What it is tied to may have become something else while it ran.
            self.dirty.gangs.insert(name.clone());
            let group = self.gangs.get_mut(name).expect("followed");
            if self.world.gang(id).is_none() {
                group.spec = None;
            }
            self.clear_placement(name);
            self.may_be_deferred(name);
            return;
        }
        if held.is_some() {
            return; // the Job's controller sends them away
        }
        let grace = self.world.gang(id).expect("followed").spec.disruption.grace;
        self.evict_pods(name, &standing.bound, grace);
    }
}

/// Whether two gangs need as many members that ask for the same, role by role, in whatever order. What they are tied to
/// aside.
pub(crate) fn are_such_members(one: &GangSpec, other: &GangSpec) -> bool {
    let asks = |role: &RoleSpec| {
        let amounts = role.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
        let amounts: Vec<(Arc<str>, u64)> = amounts.map(|(name, n)| (name.clone(), *n)).collect();
        (role.name.clone(), role.min, amounts, role.request.gpu.clone())
    };
    one.roles.len() == other.roles.len()
        && one.roles.iter().all(|role| other.roles.iter().any(|now| asks(now) == asks(role)))
}

/// Whether two roles have one name, but for a number.
fn is_of(one: &RoleSpec, other: &RoleSpec) -> bool {
    let stem = |role: &RoleSpec| match role.name.rsplit_once('-') {
        Some((stem, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => stem.to_owned(),
        _ => role.name.to_string(),
    };
    stem(one) == stem(other)
}

/// Whether a seat of a role is enough for a member of another: as many GPUs, and no less of the rest.
fn has_room_for(seat: &RoleSpec, member: &RoleSpec) -> bool {
    let asked = member.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    let has = |name: &Arc<str>| seat.request.amounts.get(name).copied().unwrap_or(0);
    seat.request.gpu == member.request.gpu
        && asked.into_iter().all(|(name, amount)| *amount <= has(name))
}

/// Whether a gang is one pod that stands for itself.
pub(crate) fn is_single(spec: &GangSpec, origin: &GangSource) -> bool {
    matches!(origin, GangSource::Pod { .. }) && spec.roles.len() == 1 && spec.roles[0].max == 1
}
