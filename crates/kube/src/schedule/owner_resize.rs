//! Seats of a gang follow the size that its owner gives it.
//!
//! A Job, an operator's workload or a Gang may be made smaller while it runs. The owner removes pods; their seats are given
//! back as soon as the pods are gone, and the World is told the new size. Until then these seats go first when the planner has
//! the gang shrink, so that no member that runs is evicted while a seat is empty. Where nothing says how many members the
//! owner will make, seats above the minimum are kept for `--bind-timeout` for members that are made again.
//!
//! A gang is never left with fewer seats than its minimum: those are kept for members that come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::gang::{Gang, GangSpec, Phase, members_of};
use muster_core::id::GangId;

use crate::cache::store::Key;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::schedule::phase::PodsByState;
use crate::schedule::seats::Seats;

/// How many members a role has by what its owner says now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// How many its owner is to make, where that is known.
    pub(crate) wanted: Option<u32>,
}

impl Size {
    /// A role that is no longer part of its gang.
    pub(crate) const UNWANTED: Self = Self { min: 0, max: 0, wanted: Some(0) };

    /// The sizes of all roles of a gang, by their place in the list.
    pub(crate) fn of_roles(spec: &GangSpec, wanted: &[Option<u32>]) -> BTreeMap<u16, Self> {
        let size = |(at, role): (usize, &muster_core::gang::RoleSpec)| {
            let wanted = wanted.get(at).copied().flatten();
            (at as u16, Self { min: role.min, max: role.max, wanted })
        };
        spec.roles.iter().enumerate().map(size).collect()
    }

    /// Two shapes of one role are of one size together.
    pub(crate) fn add(&mut self, other: &Self) {
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.wanted = self.wanted.zip(other.wanted).map(|(one, more)| one.saturating_add(more));
    }
}

impl Host {
    /// Gives back the seats of members that a gang's owner no longer wants and that are gone. Whether the gang is to be
    /// looked at again for it.
    pub(crate) fn return_unwanted_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let record = self.gangs.get(name).expect("followed");
        // Members that come in stages are wanted before they exist.
        if record.missing_members > 0 && self.may_have_missing_members(record) {
            return false;
        }
        self.return_seats_above(name, id, by_state, |size, _| {
            size.and_then(|size| Some(size.wanted?.max(size.min)))
        })
    }

    /// Gives back the empty seats that a gang was to grow onto and no member came for, but for those its owner will make
    /// members for, and those of its minimum.
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

    /// Gives back empty seats of each role above as many as `keeps` says, and tells the World the size that is left.
    fn return_seats_above(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
        keeps: impl Fn(Option<&Size>, u32) -> Option<u32>,
    ) -> bool {
        let record = self.gangs.get(name).expect("followed");
        let gang = self.world.gang(id).expect("followed");
        let is_known = by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key));
        if gang.resize.is_some()
            || record.role_sizes.is_empty()
            || !is_known
            || !record.placement_written
        {
            return false;
        }
        let Seats { mut open, mut barred, .. } = self.seats(record, gang, by_state);
        let mut back: Vec<Sitting> = Vec::new();
        let (mut eased, mut settled) = (gang.spec.clone(), gang.spec.clone());
        for (at, role) in (0..).zip(&gang.spec.roles) {
            let Some(keep) = keeps(record.role_sizes.get(&at), role.min) else { continue };
            let held = gang.members_in(at);
            let (open, barred) = (open.remove(&at), barred.remove(&at));
            // Those on nodes that take nobody are of least use.
            let empty: Vec<Arc<str>> = open.into_iter().chain(barred).flatten().rev().collect();
            let less = (held.saturating_sub(keep) as usize).min(empty.len());
            if less == 0 {
                continue;
            }
            self.add_seats(&mut back, at, &empty[..less]);
            let left = held - less as u32;
            let least = record.role_sizes.get(&at).map_or(role.min, |size| size.min);
            let (eases, settles) =
                (&mut eased.roles[usize::from(at)], &mut settled.roles[usize::from(at)]);
            (eases.min, eases.max) = (least.clamp(1, held), role.max.max(held));
            (settles.min, settles.max) = (least.clamp(1, left.max(1)), left.max(1));
        }
        if back.is_empty() {
            return false;
        }
        if let Some(gone) = self.roles_without_seats(gang, &back) {
            return self.remove_roles(name, id, &gone);
        }
        let from = members_of(&gang.seats);
        if eased != gang.spec && !self.apply_event(&Event::GangChanged(eased)) {
            return false;
        }
        if !self.apply_event(&Event::SeatsGivenBack { gang: id, seats: back }) {
            return false;
        }
        self.apply_event(&Event::GangChanged(settled));
        self.finish_shrinking(name, id, from);
        true
    }

    /// The roles that would have no seat left; none where every role keeps some.
    fn roles_without_seats(&self, gang: &Gang, back: &[Sitting]) -> Option<Vec<u16>> {
        let gone: Vec<u16> = (0..gang.spec.roles.len() as u16)
            .filter(|role| {
                let mine = back.iter().filter(|one| one.role == *role);
                let less: u32 = mine.map(|one| u32::from(one.members)).sum();
                less > 0 && less == gang.members_in(*role)
            })
            .collect();
        (!gone.is_empty()).then_some(gone)
    }

    /// A gang goes on without roles that its owner has removed, all of whose members are gone.
    fn remove_roles(&mut self, name: &Arc<str>, id: GangId, gone: &[u16]) -> bool {
        let gang = self.world.gang(id).expect("followed");
        let record = self.gangs.get(name).expect("followed");
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
        let mut sitting: Vec<Sitting> = Vec::new();
        for seat in gang.seats.iter().filter(|seat| stays(usize::from(seat.role))) {
            let before = gone.iter().filter(|role| **role < seat.role).count() as u16;
            let role = seat.role - before;
            match sitting.iter_mut().find(|one| (one.role, one.node) == (role, seat.node)) {
                Some(one) => one.members += seat.members,
                None => sitting.push(Sitting { role, node: seat.node, members: seat.members }),
            }
        }
        if !self.apply_event(&Event::GangTurnedOut { spec, sitting }) {
            return false;
        }
        self.finish_shrinking(name, id, from);
        true
    }

    /// Writes down and tells that a gang has fewer seats, and has it looked at as what it is now.
    fn finish_shrinking(&mut self, name: &Arc<str>, id: GangId, from: u32) {
        let to = self.world.gang(id).map_or(0, |gang| members_of(&gang.seats));
        let words = format!("from {from} to {to} members, the size that is asked for now");
        let action = format!("FollowOwnerTo{to}");
        self.record_event(name, EventType::Normal, ("Shrunk", &action), &words);
        let record = self.gangs.get_mut(name).expect("followed");
        (record.submitted_spec, record.empty_seats_since) = (None, None);
        self.write_placement(name, id);
        self.dirty.gangs.insert(name.clone());
    }

    /// Tells the World which seats of a gang go first when it has to shrink: those whose members are gone or leaving, and those
    /// of members beyond what its owner wants, which the owner removes next. Notes since when some are empty.
    pub(crate) fn update_spare_seats(&mut self, name: &Arc<str>, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let record = self.gangs.get(name).expect("followed");
        if !matches!(gang.phase, Phase::Running { .. }) || gang.resize.is_some() {
            return;
        }
        let by_state = self.pods_by_state(record);
        let (stay, has_empty_seats) =
            (self.staying_pods(record, &by_state), self.has_empty_seats(gang, record));
        let Seats { open, barred, .. } = self.seats(record, gang, &stay);
        let mut spare: Vec<Sitting> = Vec::new();
        for (role, nodes) in open.into_iter().chain(barred) {
            self.add_seats(&mut spare, role, &nodes);
        }
        spare.sort_unstable_by_key(|one| (one.role, one.node));
        if spare != gang.spare {
            self.apply_event(&Event::SeatsSpare { gang: id, seats: spare });
        }
        let record = self.gangs.get_mut(name).expect("followed");
        record.empty_seats_since =
            has_empty_seats.then(|| record.empty_seats_since.unwrap_or_else(Instant::now));
    }

    /// The members of a gang that are on nodes and stay there.
    fn staying_pods(&self, record: &GangRecord, by_state: &PodsByState) -> PodsByState {
        let stays = |(key, _): &&(Key, Arc<str>)| {
            let role = record.pod_roles.get(key);
            let wanted =
                role.and_then(|role| record.role_sizes.get(role)).and_then(|size| size.wanted);
            let is_wanted = wanted.is_none_or(|wanted| record.rank(key) < wanted);
            is_wanted && self.cache.pods.get(key).is_none_or(|pod| !pod.is_leaving())
        };
        let bound = by_state.bound.iter().filter(stays).cloned().collect();
        PodsByState { bound, unbound: by_state.unbound.clone() }
    }

    /// Whether a gang has seats above its minimum for which no member exists.
    fn has_empty_seats(&self, gang: &Gang, record: &GangRecord) -> bool {
        let exist = |at: u16| {
            let mine = record.pod_roles.iter().filter(|(_, role)| **role == at);
            let live = mine.filter_map(|(key, _)| self.cache.pods.get(key));
            live.filter(|pod| !pod.is_over()).count() as u32
        };
        let mut roles = (0..).zip(&gang.spec.roles);
        roles.any(|(at, role)| gang.members_in(at) > exist(at).max(role.min))
    }

    /// Gangs give back seats above their minimum for which no member was made for too long.
    pub(crate) fn expire_empty_seats(&mut self) {
        let patience = Duration::from_millis(self.config.bind_timeout.0);
        let late = |name: &&Arc<str>| {
            let since = self.gangs.get(name).and_then(|record| record.empty_seats_since);
            since.is_some_and(|since| since.elapsed() >= patience)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            self.gangs.get_mut(&name).expect("just seen").empty_seats_since = None;
            let Some(id) = self.world.gang_named(&name) else { continue };
            let by_state = self.pods_by_state(self.gangs.get(&name).expect("just seen"));
            let unbound = by_state.unbound.len() as u32;
            self.return_seats_above(&name, id, &by_state, |size, min| {
                Some(size.map_or(min, |size| size.min).saturating_add(unbound))
            });
        }
    }

    /// A gang that has seats is made larger only when all members it is to have exist: seats are not kept for members that
    /// may never be made.
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
        let is_made = self.template_gang(record).is_some();
        for (at, role) in (0..).zip(&mut spec.roles) {
            let known = gang.spec.roles.iter().position(|known| known.name == role.name);
            let held = known.map_or(0, |known| gang.members_in(known as u16));
            let most = known.map_or(0, |known| gang.spec.roles[known].max);
            let exist = roles.values().filter(|of| **of == at).count() as u32;
            if held > 0 && held < role.min && exist < role.min && !is_made {
                (role.min, role.max) = (held, role.max.min(most).max(held));
            }
        }
    }
}
