//! Pods become gangs, and gangs are followed: submitted, started, done, gone.

use std::sync::Arc;

use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::gang::{GangSpec, Phase, Seat};
use muster_core::id::GangId;
use muster_core::time::Time;

use super::Host;
use super::groups::Group;
use crate::intake::{Gathered, Origin};
use crate::objects::Pod;
use crate::shelf::{Key, Moved};

/// The pods of a gang by what they do now.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Put on a node, and not over.
    pub(super) bound: Vec<(Key, Arc<str>)>,
    /// Nowhere yet, and free to go.
    pub(super) free: Vec<Key>,
    /// Over.
    pub(super) over: u32,
}

impl Host {
    /// Takes in a change of a pod.
    pub(super) fn see_pod(&mut self, moved: &Moved<Pod>) {
        let nodes = [&moved.was, &moved.is].map(|pod| pod.as_deref().and_then(Pod::node));
        let Some(pod) = &moved.is else {
            self.unwrite_pod(&moved.key);
            match self.groups.leave(&moved.key) {
                Some(gang) => drop(self.dirty.gangs.insert(gang)),
                None => self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from)),
            }
            return;
        };
        if !self.config.serves(pod) {
            // Somebody else's: what counts is what it takes.
            let over = |pod: &Pod| pod.is_over();
            if nodes[0] != nodes[1] || moved.was.as_deref().is_some_and(over) != pod.is_over() {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            return;
        }
        let origin = self.origin_of(pod);
        let name = origin.gang_name();
        if let Some(before) = self.groups.join(&moved.key, origin) {
            self.dirty.gangs.insert(before);
        }
        if let (Some(group), Some(node)) = (self.groups.get_mut(&name), pod.node())
            && group.assigned.get(&moved.key).is_some_and(|told| **told == *node)
        {
            group.assigned.remove(&moved.key);
        }
        self.dirty.gangs.insert(name);
    }

    /// Looks at a gang again: some of its pods have changed, or what says what it is has.
    pub(super) fn look_at_gang(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get(name) else { return };
        if group.pods.is_empty() && !self.is_there(&group.origin) {
            return self.gang_is_gone(name);
        }
        match self.gather(group) {
            Ok(gathered) => self.gang_is(name, gathered),
            Err(why) => {
                let group = self.groups.get_mut(name).expect("just seen");
                if group.trouble.as_ref() != Some(&why) {
                    tracing::info!(gang = &**name, why, "not a whole gang");
                }
                group.trouble = Some(why);
            }
        }
        self.follow(name);
    }

    /// Tells the World what a gang is, if it does not know.
    fn gang_is(&mut self, name: &Arc<str>, gathered: Gathered) {
        let Gathered { spec, roles } = gathered;
        let group = self.groups.get_mut(name).expect("just seen");
        group.roles = roles;
        group.trouble = None;
        if group.spec.as_ref() == Some(&spec) {
            return;
        }
        let known = self.world.gang_named(name).is_some();
        let event = match known {
            false => Event::GangSubmitted(spec.clone()),
            true => Event::GangChanged(spec.clone()),
        };
        let now = self.now();
        match self.world.apply(now, &event) {
            Ok(()) => {
                self.changed = true;
                self.groups.get_mut(name).expect("just seen").spec = Some(spec);
                if !known {
                    self.ensure_object(name);
                }
            }
            // What runs or has an order stays as it was taken in.
            Err(refusal) if known => tracing::debug!(gang = &**name, %refusal, "not changed"),
            Err(refusal) => {
                let group = self.groups.get_mut(name).expect("just seen");
                group.trouble = Some(refusal.to_string());
            }
        }
    }

    /// Gangs that could not be taken in are tried again when what they name may be there.
    pub(super) fn try_troubled(&mut self) {
        let troubled =
            |name: &&Arc<str>| self.groups.get(name).is_some_and(|group| group.trouble.is_some());
        let names: Vec<Arc<str>> = self.groups.names().filter(troubled).cloned().collect();
        self.dirty.gangs.extend(names);
    }

    fn gang_is_gone(&mut self, name: &Arc<str>) {
        if let Some(id) = self.world.gang_named(name) {
            match self.world.gang(id).expect("named").phase {
                Phase::Waiting | Phase::Assembling(_) => {
                    self.happened(&Event::GangCancelled(id));
                    if self.world.gang(id).is_some() {
                        return; // its order is rolled back first
                    }
                }
                Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                    self.happened(&Event::GangEnded(id));
                }
            }
        }
        self.write_off(name);
        self.unwrite(name);
        self.groups.forget(name);
    }

    /// The pods of a group by what they do now.
    pub(super) fn standing(&self, group: &Group) -> Standing {
        let mut standing = Standing::default();
        for key in &group.pods {
            let Some(pod) = self.mirror.pods.get(key) else { continue };
            if pod.is_over() {
                standing.over += 1;
            } else if let Some(node) = pod.node() {
                standing.bound.push((key.clone(), node.into()));
            } else if let Some(node) = group.assigned.get(key) {
                standing.bound.push((key.clone(), node.clone()));
            } else if !pod.is_leaving() && !pod.is_gated() {
                standing.free.push(key.clone());
            }
        }
        standing
    }

    /// Holds what the World thinks of a gang against what its pods do.
    pub(super) fn follow(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        let Some(group) = self.groups.get(name) else { return };
        let standing = self.standing(group);
        match self.world.gang(id).expect("named").phase {
            Phase::Waiting | Phase::Assembling(_) => {}
            Phase::Admitted { .. } | Phase::Running { .. }
                if standing.bound.is_empty() && standing.free.is_empty() =>
            {
                // Done, or removed: nobody is left to hold seats for.
                self.happened(&Event::GangEnded(id));
                let group = self.groups.get_mut(name).expect("just seen");
                (group.spec, group.recorded) = (None, false);
                self.unwrite(name);
                self.write_off(name);
            }
            Phase::Admitted { .. } => {
                self.fill_seats(name, id, &standing);
                self.may_have_started(name, id);
            }
            Phase::Running { .. } => {
                self.fill_seats(name, id, &standing);
                self.resize(name, id, &standing);
                self.let_go_of_those_done(name, id, &standing);
            }
            Phase::Stopping => self.may_have_stopped(name, id, &standing),
        }
    }

    /// A gang has started when every role has its minimum bound, and has been seen to.
    fn may_have_started(&mut self, name: &Arc<str>, id: GangId) {
        let group = self.groups.get(name).expect("followed");
        let gang = self.world.gang(id).expect("followed");
        let seen = |key: &Key| self.mirror.pods.get(key).is_some_and(|pod| pod.node().is_some());
        let enough = gang.spec.roles.iter().enumerate().all(|(at, role)| {
            let mine = group.roles.iter().filter(|(_, of)| usize::from(**of) == at);
            mine.filter(|(key, _)| seen(key)).count() >= role.min as usize
        });
        if enough {
            self.happened(&Event::GangStarted(id));
        }
    }

    /// Members that are done leave their seats, unless somebody is there to take them.
    fn let_go_of_those_done(&mut self, name: &Arc<str>, id: GangId, standing: &Standing) {
        let gang = self.world.gang(id).expect("followed");
        let seats: u32 = gang.seats.iter().map(|seat| u32::from(seat.members)).sum();
        let live = standing.bound.len() as u32;
        if standing.over == 0 || !standing.free.is_empty() || live >= seats || live == 0 {
            return;
        }
        if gang.resize.is_some() {
            return;
        }
        let group = self.groups.get(name).expect("followed");
        let sitting = self.sitting(group, &standing.bound);
        let since = self.now();
        if !sitting.is_empty() {
            self.happened(&Event::GangFound { gang: id, since, sitting });
        }
    }

    /// Members that a resized gang gives up go; when they are gone, and those it gets are there, it is done.
    fn resize(&mut self, name: &Arc<str>, id: GangId, standing: &Standing) {
        let gang = self.world.gang(id).expect("followed");
        let Some(resize) = &gang.resize else { return };
        let group = self.groups.get(name).expect("followed");
        let mut seats: Vec<(u16, Arc<str>)> = Vec::new();
        for Seat { role, node, members, .. } in &resize.to {
            let Some(node) = self.world.node_name(*node) else { continue };
            seats.extend((0..*members).map(|_| (*role, node.clone())));
        }
        let mut surplus: Vec<(Key, Arc<str>)> = Vec::new();
        for (key, node) in &standing.bound {
            let role = group.roles.get(key).copied().unwrap_or(u16::MAX);
            match seats.iter().position(|seat| *seat == (role, node.clone())) {
                Some(at) => drop(seats.swap_remove(at)),
                None => surplus.push((key.clone(), node.clone())),
            }
        }
        let grace = gang.spec.disruption.grace;
        if !surplus.is_empty() {
            self.send_away(name, &surplus, grace);
        } else if seats.is_empty() || standing.free.is_empty() {
            self.happened(&Event::GangResized(id));
            self.record(name, id);
        }
    }

    /// Where pods sit, by role and node, on nodes that are known.
    pub(super) fn sitting(&self, group: &Group, bound: &[(Key, Arc<str>)]) -> Vec<Sitting> {
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
        if standing.bound.is_empty() {
            self.happened(&Event::GangStopped(id));
            let group = self.groups.get_mut(name).expect("followed");
            group.recorded = false;
            group.leaving.clear();
            if self.world.gang(id).is_none() {
                group.spec = None;
            }
            self.write_off(name);
            return;
        }
        let grace = self.world.gang(id).expect("followed").spec.disruption.grace;
        self.send_away(name, &standing.bound, grace);
    }

    /// When a group was made: the first of its pods, or what stands for it.
    pub(super) fn made_at(&self, group: &Group) -> Time {
        let stamps = group.pods.iter().filter_map(|key| self.mirror.pods.get(key));
        let stamps = stamps.filter_map(|pod| pod.metadata.creation_timestamp.as_ref());
        let first = stamps.map(|stamp| Time(stamp.0.as_millisecond())).min();
        first.unwrap_or_else(|| self.now())
    }
}

/// Whether a gang is one pod that stands for itself.
pub(super) fn is_single(spec: &GangSpec, origin: &Origin) -> bool {
    matches!(origin, Origin::Pod { .. }) && spec.roles.len() == 1 && spec.roles[0].max == 1
}
