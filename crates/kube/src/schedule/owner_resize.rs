//! Adjusts the seats of a gang to the size that its owner gives it.
//!
//! A Job, an operator's workload or a Gang may be shrunk while it runs. The owner removes pods; their seats are given
//! back as soon as the pods are gone, and the World gets the new size. Until then these seats go first when the planner
//! shrinks the gang, so that no member that runs is evicted while a seat is empty. Where it is unknown how many members the
//! owner will create, seats above the minimum are kept for `--bind-timeout` for members that are recreated.
//!
//! A gang is never left with fewer seats than its minimum: those are kept for members that are recreated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::RoleSeats;
use muster_core::gang::{Gang, GangSpec, Phase, members_of};
use muster_core::id::GangId;

use crate::cache::store::Key;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::schedule::phase::PodsByState;
use crate::schedule::seats::Seats;

/// How many members a role has by what its owner declares now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// How many its owner will create, where that is known.
    pub(crate) wanted: Option<u32>,
}

impl Size {
    /// A role that is no longer part of its gang.
    pub(crate) const UNWANTED: Self = Self { min: 0, max: 0, wanted: Some(0) };

    /// The sizes of all roles of a gang, by index in the spec.
    pub(crate) fn of_roles(spec: &GangSpec, wanted: &[Option<u32>]) -> BTreeMap<u16, Self> {
        let size = |(at, role): (usize, &muster_core::gang::RoleSpec)| {
            let wanted = wanted.get(at).copied().flatten();
            (at as u16, Self { min: role.min, max: role.max, wanted })
        };
        spec.roles.iter().enumerate().map(size).collect()
    }

    /// Adds the size of another shape of the same role.
    pub(crate) fn add(&mut self, other: &Self) {
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.wanted = self.wanted.zip(other.wanted).map(|(one, more)| one.saturating_add(more));
    }
}

impl Host {
    /// Gives back the seats of deleted members that a gang's owner no longer wants. Returns whether the gang must be reconciled
    /// again.
    pub(crate) fn return_unwanted_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let record = self.gangs.get(name).expect("the gang has a record");
        // Members that are created in stages are wanted before they exist.
        if record.missing_members > 0 && self.may_have_missing_members(record) {
            return false;
        }
        self.return_seats_above(name, id, by_state, |size, _| {
            size.and_then(|size| Some(size.wanted?.max(size.min)))
        })
    }

    /// Gives back the empty seats of a growth for which no member was created, except those that its owner will create members
    /// for, and those of its minimum.
    pub(crate) fn return_empty_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) {
        self.return_seats_above(name, id, by_state, |size, min| {
            let size = size.copied().unwrap_or(Size { min, max: min, wanted: None });
            Some(size.wanted.unwrap_or(0).max(size.min))
        });
    }

    /// Gives back empty seats of each role above the number that `keeps` returns, and updates the size in the World.
    fn return_seats_above(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
        keeps: impl Fn(Option<&Size>, u32) -> Option<u32>,
    ) -> bool {
        let record = self.gangs.get(name).expect("the gang has a record");
        let gang = self.world.gang(id).expect("the World has the gang");
        let is_known = by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key));
        if gang.resize.is_some()
            || record.role_sizes.is_empty()
            || !is_known
            || !record.placement_written
        {
            return false;
        }
        let Seats { mut open, mut barred, .. } = self.seats(record, gang, by_state);
        let mut back: Vec<RoleSeats> = Vec::new();
        let (mut interim, mut resized) = (gang.spec.clone(), gang.spec.clone());
        for (at, role) in (0..).zip(&gang.spec.roles) {
            let Some(keep) = keeps(record.role_sizes.get(&at), role.min) else { continue };
            let held = gang.members_in(at);
            let (open, barred) = (open.remove(&at), barred.remove(&at));
            // Seats on nodes that accept no pods go first.
            let empty: Vec<Arc<str>> = open.into_iter().chain(barred).flatten().rev().collect();
            let less = (held.saturating_sub(keep) as usize).min(empty.len());
            if less == 0 {
                continue;
            }
            self.add_seats(&mut back, at, &empty[..less]);
            let left = held - less as u32;
            let least = record.role_sizes.get(&at).map_or(role.min, |size| size.min);
            let interim_role = &mut interim.roles[usize::from(at)];
            let resized_role = &mut resized.roles[usize::from(at)];
            (interim_role.min, interim_role.max) = (least.clamp(1, held), role.max.max(held));
            (resized_role.min, resized_role.max) = (least.clamp(1, left.max(1)), left.max(1));
        }
        if back.is_empty() {
            return false;
        }
        if let Some(gone) = self.roles_without_seats(gang, &back) {
            return self.remove_roles(name, id, &gone);
        }
        let from = members_of(&gang.seats);
        if interim != gang.spec && !self.apply_event(&Event::GangChanged(interim)) {
            return false;
        }
        if !self.apply_event(&Event::SeatsGivenBack { gang: id, seats: back }) {
            return false;
        }
        self.apply_event(&Event::GangChanged(resized));
        self.finish_shrinking(name, id, from);
        true
    }

    /// The roles that would have no seat left; none where every role keeps some.
    fn roles_without_seats(&self, gang: &Gang, back: &[RoleSeats]) -> Option<Vec<u16>> {
        let gone: Vec<u16> = (0..gang.spec.roles.len() as u16)
            .filter(|role| {
                let mine = back.iter().filter(|one| one.role == *role);
                let less: u32 = mine.map(|one| u32::from(one.members)).sum();
                less > 0 && less == gang.members_in(*role)
            })
            .collect();
        (!gone.is_empty()).then_some(gone)
    }

    /// Removes roles from a gang that its owner has removed and that have no members left.
    fn remove_roles(&mut self, name: &Arc<str>, id: GangId, gone: &[u16]) -> bool {
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        let is_removed = |role: &u16| record.role_sizes.get(role) == Some(&Size::UNWANTED);
        if gone.len() >= gang.spec.roles.len() || !gone.iter().all(is_removed) {
            return false;
        }
        let from = members_of(&gang.seats);
        let mut spec = gang.spec.clone();
        let stays = |at: usize| !gone.contains(&(at as u16));
        let mut at = 0;
        spec.roles.retain(|_| {
            at += 1;
            stays(at - 1)
        });
        let mut sitting: Vec<RoleSeats> = Vec::new();
        for seat in gang.seats.iter().filter(|seat| stays(usize::from(seat.role))) {
            let before = gone.iter().filter(|role| **role < seat.role).count() as u16;
            let role = seat.role - before;
            match sitting.iter_mut().find(|one| (one.role, one.node) == (role, seat.node)) {
                Some(one) => one.members += seat.members,
                None => sitting.push(RoleSeats { role, node: seat.node, members: seat.members }),
            }
        }
        if !self.apply_event(&Event::GangTurnedOut { spec, sitting }) {
            return false;
        }
        self.finish_shrinking(name, id, from);
        true
    }

    /// Writes the smaller placement of a gang, records an Event, and requeues the gang.
    fn finish_shrinking(&mut self, name: &Arc<str>, id: GangId, from: u32) {
        let to = self.world.gang(id).map_or(0, |gang| members_of(&gang.seats));
        let words = format!("from {from} to {to} members, the size that is asked for now");
        let action = format!("FollowOwnerTo{to}");
        self.record_event(name, EventType::Normal, ("Shrunk", &action), &words);
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        (record.submitted_spec, record.empty_seats_since) = (None, None);
        self.write_placement(name, id);
        self.dirty.gangs.insert(name.clone());
    }

    /// Updates in the World which seats of a gang go first when it shrinks: those whose members are deleted or terminating, and
    /// those of members beyond the owner's size, which the owner deletes next. Notes since when some are empty.
    pub(crate) fn update_spare_seats(&mut self, name: &Arc<str>, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let record = self.gangs.get(name).expect("the gang has a record");
        if !matches!(gang.phase, Phase::Running { .. }) || gang.resize.is_some() {
            return;
        }
        let by_state = self.pods_by_state(record);
        let (stay, has_empty_seats) =
            (self.staying_pods(record, &by_state), self.has_empty_seats(gang, record));
        let Seats { open, barred, .. } = self.seats(record, gang, &stay);
        let mut spare: Vec<RoleSeats> = Vec::new();
        for (role, nodes) in open.into_iter().chain(barred) {
            self.add_seats(&mut spare, role, &nodes);
        }
        spare.sort_unstable_by_key(|one| (one.role, one.node));
        if spare != gang.spare {
            self.apply_event(&Event::SeatsSpare { gang: id, seats: spare });
        }
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        record.empty_seats_since =
            has_empty_seats.then(|| record.empty_seats_since.unwrap_or_else(Instant::now));
    }

    /// The members of a gang that are on nodes and stay there.
    fn staying_pods(&self, record: &GangRecord, by_state: &PodsByState) -> PodsByState {
        let stays = |(key, _): &&(Key, Arc<str>)| {
            let role = record.pod_roles.get(key);
            let wanted =
                role.and_then(|role| record.role_sizes.get(role)).and_then(|size| size.wanted);
            let is_request_open = wanted.is_none_or(|wanted| record.rank(key) < wanted);
            is_request_open && self.cache.pods.get(key).is_none_or(|pod| !pod.is_terminating())
        };
        let bound = by_state.bound.iter().filter(stays).cloned().collect();
        PodsByState { bound, unbound: by_state.unbound.clone() }
    }

    /// Whether a gang has seats above its minimum for which no member exists.
    fn has_empty_seats(&self, gang: &Gang, record: &GangRecord) -> bool {
        let exist = |at: u16| {
            let mine = record.pod_roles.iter().filter(|(_, role)| **role == at);
            let live = mine.filter_map(|(key, _)| self.cache.pods.get(key));
            live.filter(|pod| !pod.is_finished()).count() as u32
        };
        let mut roles = (0..).zip(&gang.spec.roles);
        roles.any(|(at, role)| gang.members_in(at) > exist(at).max(role.min))
    }

    /// Gives back seats above the minimum for which no member was created within the bind timeout.
    pub(crate) fn expire_empty_seats(&mut self) {
        let timeout = Duration::from_millis(self.config.bind_timeout.0);
        let late = |name: &&Arc<str>| {
            let since = self.gangs.get(name).and_then(|record| record.empty_seats_since);
            since.is_some_and(|since| since.elapsed() >= timeout)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            self.gangs.get_mut(&name).expect("the gang has a record").empty_seats_since = None;
            let Some(id) = self.world.gang_named(&name) else { continue };
            let by_state =
                self.pods_by_state(self.gangs.get(&name).expect("the gang has a record"));
            let unbound = by_state.unbound.len() as u32;
            self.return_seats_above(&name, id, &by_state, |size, min| {
                Some(size.map_or(min, |size| size.min).saturating_add(unbound))
            });
        }
    }

    /// Limits the growth of a gang that has seats until all its new members exist: seats are not kept for members that may never
    /// be created.
    pub(crate) fn limit_growth_to_existing(
        &self,
        name: &str,
        spec: &mut GangSpec,
        roles: &BTreeMap<Key, u16>,
    ) {
        let Some(record) =
            self.gangs.get(name).filter(|record| !self.may_have_missing_members(record))
        else {
            return;
        };
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let Some(gang) = gang.filter(|gang| matches!(gang.phase, Phase::Running { .. })) else {
            return;
        };
        let creates_pods = self.template_gang(record).is_some();
        for (at, role) in (0..).zip(&mut spec.roles) {
            let known = gang.spec.roles.iter().position(|known| known.name == role.name);
            let held = known.map_or(0, |known| gang.members_in(known as u16));
            let most = known.map_or(0, |known| gang.spec.roles[known].max);
            let exist = roles.values().filter(|of| **of == at).count() as u32;
            if held > 0 && held < role.min && exist < role.min && !creates_pods {
                (role.min, role.max) = (held, role.max.min(most).max(held));
            }
        }
    }
}
