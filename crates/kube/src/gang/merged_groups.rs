//! Groups that start together or not at all (Koordinator's `groups`): one gang, whose pods are those of all of them.
//!
//! Which groups those are is what each of them says, on its pods or on its object. The list is what makes the gang: who
//! names other groups is of another gang, so nobody is held back by being named. A gang of several groups is taken in
//! when each of them is there, says the same, and has its members.
//!
//! What has seats stays together, whatever is said of it afterwards: it has started. A new leader reads off the status of the
//! gang's object which groups it is of. That object is in the namespace of the first group, and has no owner: an owner must be
//! in the same namespace, and none of the groups stands for all. Its annotations are for people; whoever may edit the first
//! namespace may write them, so they join nothing.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::assemble::{Assembled, Member, Side, labels, unite};
use muster_api::dialects::{self, Dialect, GroupRef, State, Terms};
use muster_core::gang::Phase;
use serde_json::Value;

use crate::cache::kinds::{GangSource, KindRole};
use crate::cache::store::{Key, Moved};
use crate::gang::build::{Marks, Part, Said, marks, unheard};
use crate::gang::registry::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::status::gang::counted;

/// The groups that a gang was made of, on its object.
pub(crate) const GROUPS: &str = "muster.sh/groups";

/// Groups as they are listed there.
pub(crate) fn listed(groups: &[GroupRef]) -> String {
    serde_json::to_string(&names_of(groups)).expect("plain JSON")
}

/// Groups as they are listed in a status.
pub(crate) fn names_of(groups: &[GroupRef]) -> Vec<String> {
    groups.iter().map(GroupRef::full_name).collect()
}

/// The groups that a gang was made of when its placement was recorded.
fn recorded_groups(object: &DynamicObject) -> Vec<GroupRef> {
    let said = object.data.pointer("/status/groups").and_then(Value::as_array);
    let names = said.into_iter().flatten().map(|name| named(name.as_str()?));
    names.collect::<Option<Vec<GroupRef>>>().unwrap_or_default()
}

/// The group that a pod names.
pub(crate) fn group_of(pod: &Pod) -> Option<GroupRef> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let (labels, annotations) = marks(pod);
    dialects::group_of(labels, annotations, &pod.spec, namespace)
}

impl Host {
    /// Whether the pods of a group are a gang, or those of several groups are: as the pod says, or else the group's
    /// object. Where either has seats it stays what it is.
    pub(crate) fn alone_or_joined(&self, of: GroupRef, annotations: &Marks) -> GangSource {
        if of.dialect != Dialect::Koordinator {
            return GangSource::Group(of);
        }
        if let Some(held) = self.held_with(&of) {
            return held;
        }
        let said = dialects::joined(&of, annotations).or_else(|| self.object_says(&of));
        match said {
            Some(groups) if groups.len() > 1 => GangSource::Joined(groups.into()),
            _ => GangSource::Group(of),
        }
    }

    /// The groups that the object of a group says start together.
    pub(crate) fn object_says(&self, of: &GroupRef) -> Option<Vec<GroupRef>> {
        let (_, object) = self.object_of(&GangSource::Group(of.clone()))?;
        dialects::joined(of, object.annotations())
    }

    /// What a group is part of that has seats.
    fn held_with(&self, of: &GroupRef) -> Option<GangSource> {
        let alone = GangSource::Group(of.clone());
        if self.holds_seats(&alone.gang_name()) {
            return Some(alone);
        }
        let name = self.gangs.joined_with(of).find(|name| self.holds_seats(name))?;
        self.gangs.get(name).map(|group| group.origin.clone())
    }

    /// Whether a gang has seats, or is known to while the World is being made.
    fn holds_seats(&self, name: &str) -> bool {
        if !self.world.is_synced() {
            return self.has_placement(name);
        }
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| !matches!(gang.phase, Phase::Waiting | Phase::Assembling(_)))
    }

    /// Pods of a gang that has no seats go with those they name now. Whether nobody of it is left.
    pub(crate) fn regroup(&mut self, name: &Arc<str>) -> bool {
        let Some(group) = self.gangs.get(name) else { return true };
        let may_differ = match &group.origin {
            GangSource::Joined(_) => true,
            GangSource::Group(of) => of.dialect == Dialect::Koordinator,
            _ => false,
        };
        if !may_differ || self.holds_seats(name) {
            return false;
        }
        let pods = group.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let astray = pods.filter(|(_, pod)| self.origin_of(pod) != group.origin);
        let astray: Vec<(Key, Arc<Pod>)> =
            astray.map(|(key, pod)| (key.clone(), pod.clone())).collect();
        if astray.is_empty() {
            return false;
        }
        for (key, pod) in astray {
            let with = self.join(&key, &pod);
            self.dirty.gangs.insert(with);
        }
        let is_left = self.gangs.get(name).is_some_and(|group| !group.pods.is_empty());
        if !is_left {
            self.remove_gang(name);
        }
        !is_left
    }

    /// Gangs of several groups that have seats are known before their pods are: what these say may have changed since.
    pub(crate) fn find_joined(&mut self) {
        for Moved { key, is, .. } in self.all_of(KindRole::Gang) {
            let Some(object) = is else { continue };
            let groups = recorded_groups(&object);
            if groups.len() < 2 {
                continue;
            }
            let origin = GangSource::Joined(groups.into());
            if origin.gang_name() == key && self.has_placement(&key) {
                self.gangs.ensure(origin);
            }
        }
    }

    /// Whether a gang of these groups has started, so that each of them has agreed to it. That some of its pods are on nodes
    /// proves nothing: their owner may have written that.
    fn has_started(&self, group: &GangRecord, groups: &[GroupRef]) -> bool {
        let name = group.origin.gang_name();
        let is_recorded = |object: &Arc<DynamicObject>| recorded_groups(object) == groups;
        match self.world.is_synced() {
            true => self.holds_seats(&name),
            false => self.has_placement(&name) && self.gang_seen(&name).is_some_and(is_recorded),
        }
    }

    /// One gang of several groups, its parts in their order, or why it is none. Once it has started, groups of which no pod
    /// is there are left out: they were there when it did.
    pub(crate) fn unite(
        &self,
        group: &GangRecord,
        groups: &[GroupRef],
        parts: &mut Vec<Part>,
        runs: bool,
    ) -> Result<(Assembled, Said), String> {
        let place = |part: &Part| {
            let of = group_of(&part.pod)?;
            groups.iter().position(|one| *one == of)
        };
        parts.retain(|part| place(part).is_some());
        parts.sort_by_key(|part| place(part));
        let mut sides: Vec<(usize, Terms, Vec<Member<'_>>)> = Vec::new();
        let (mut said, mut priorities) = (Said::default(), Vec::new());
        let has_started = runs && self.has_started(group, groups);
        for (at, of) in groups.iter().enumerate() {
            let mine: Vec<&Part> = parts.iter().filter(|part| place(part) == Some(at)).collect();
            if mine.is_empty() && has_started {
                continue;
            }
            if mine.is_empty() {
                self.says_so_too(groups, of)?;
            }
            let keys: Vec<&Key> = mine.iter().map(|part| &part.key).collect();
            let prefixed = |why: String| format!("{}: {why}", of.full_name());
            let terms =
                self.terms(&GangSource::Group(of.clone()), group, &keys).map_err(prefixed)?;
            if let Some(why) = unheard(&terms) {
                return Err(prefixed(why));
            }
            let priority = self.priority(group, &keys, &terms);
            priorities.push(priority);
            let unheard = self.unheard_priority(&terms, priority);
            said.gentle |= self.never_preempts(&keys, &terms);
            for words in terms.unheard.iter().chain(&unheard) {
                if !said.unheard.contains(words) {
                    said.unheard.push(words.clone());
                }
            }
            sides.push((at, terms, mine.into_iter().map(Part::as_member).collect()));
        }
        let (labels, names) = (labels(groups), groups.iter().map(GroupRef::full_name));
        let names: Vec<String> = names.collect();
        let places: Vec<usize> = sides.iter().map(|(at, _, _)| *at).collect();
        let sides: Vec<Side<'_>> = sides
            .iter()
            .map(|(at, terms, members)| Side {
                name: &names[*at],
                label: &labels[*at],
                terms,
                members,
            })
            .collect();
        let united = unite(&group.origin.gang_name(), &sides, &self.config.gpus);
        let (united, of) = united.map_err(|why| why.to_string())?;
        if !runs {
            all_exist(&united, &of, &sides)?;
        }
        said.groups = of.into_iter().map(|side| groups[places[side]].clone()).collect();
        // They start together, and one that is important does not make the others so.
        said.priority = priorities.iter().copied().min().unwrap_or_default();
        said.priority.is_declared = priorities.iter().any(|priority| priority.is_declared);
        let namespaces = groups.iter().map(|of| &*of.namespace);
        match self.keeps_out(&united.spec.queue, namespaces).filter(|_| !runs) {
            Some(why) => Err(why),
            None => Ok((united, said)),
        }
    }

    /// Whether a group without pods here says that it starts together with these, by its object; or why it does not.
    fn says_so_too(&self, groups: &[GroupRef], of: &GroupRef) -> Result<(), String> {
        let name = of.full_name();
        let others = || {
            let others = self.gangs.joined_with(of).filter_map(|name| self.gangs.get(name));
            let mut pods = others.flat_map(|group| &group.pods);
            pods.any(|key| self.cache.pods.get(key).is_some_and(|pod| self.is_of(pod, of)))
        };
        let alone = || {
            let alone = self.gangs.get(&GangSource::Group(of.clone()).gang_name());
            alone.is_some_and(|group| !group.pods.is_empty())
        };
        match (self.object_says(of), self.object_of(&GangSource::Group(of.clone())).is_some()) {
            (Some(said), _) if *said == *groups => Ok(()),
            (Some(said), _) if said.len() > 1 => Err(format!(
                "it is to start together with {name}, which names other groups: {}",
                listed(&said)
            )),
            (_, true) => Err(format!("it is to start together with {name}, which does not say so")),
            _ if others() => {
                Err(format!("it is to start together with {name}, which names other groups"))
            }
            _ if alone() => {
                Err(format!("it is to start together with {name}, which does not say so"))
            }
            _ => Err(format!("it is to start together with {name}, which does not exist")),
        }
    }

    /// Whether one of the groups that a gang names is of it: it may be somebody who does not say so, and what becomes of
    /// that one is not for this gang to tell.
    pub(crate) fn is_part(&self, group: &GangRecord, groups: &[GroupRef], of: &GroupRef) -> bool {
        let mut pods = group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| self.is_of(pod, of))
            || self.object_says(of).is_some_and(|said| *said == *groups)
    }

    /// Whether a pod names a group.
    pub(crate) fn is_of(&self, pod: &Pod, of: &GroupRef) -> bool {
        group_of(pod).is_some_and(|named| named == *of)
    }

    /// Where one group of a gang stands: as the gang, but for how many of its own members run. It may be done before others.
    pub(crate) fn state_for(&self, name: &str, of: &GroupRef, state: &State) -> State {
        let group = self.gangs.get(name);
        let (State::Running { .. }, Some(GangRecord { origin: GangSource::Joined(_), pods, .. })) =
            (state, group)
        else {
            return state.clone();
        };
        let pods = || {
            let pods = pods.iter().filter_map(|key| self.cache.pods.get(key));
            pods.filter(|pod| self.is_of(pod, of))
        };
        match counted(pods()) {
            State::Running { running: 0, succeeded, failed }
                if succeeded + failed > 0 && pods().all(|pod| pod.is_over()) =>
            {
                State::Finished { succeeded, failed }
            }
            counted => counted,
        }
    }
}

/// Whether all members that the groups speak of exist, or which group lacks some.
fn all_exist(united: &Assembled, of: &[usize], sides: &[Side<'_>]) -> Result<(), String> {
    for (at, side) in sides.iter().enumerate() {
        let roles = united.spec.roles.iter().zip(&united.roles).zip(of);
        let mine = roles.filter(|(_, of)| **of == at).map(|(role, _)| role);
        let absent = mine.map(|(role, who)| (role.max as usize).saturating_sub(who.len()));
        let (exist, absent) = (side.members.len(), absent.sum::<usize>());
        if absent > 0 {
            return Err(format!("{}: {exist} of {} members exist", side.name, exist + absent));
        }
    }
    Ok(())
}

/// A group by its full name.
fn named(name: &str) -> Option<GroupRef> {
    let (namespace, name) = name.split_once('/')?;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Some(GroupRef { dialect: Dialect::Koordinator, namespace, name })
}
