//! Merges groups that start together or not at all (Koordinator's `groups`) into one gang with the pods of all of them.
//!
//! Each group lists the groups it starts with, on its pods or on its object. The list identifies the gang: a group that
//! lists other groups belongs to another gang, so no group is held back by being listed elsewhere. A merged gang is
//! submitted when each of its groups exists, has the same list, and has its members.
//!
//! A gang that has seats stays merged, whatever its lists say afterwards: it has started. A new leader reads its groups from
//! the status of the gang's object. That object is in the namespace of the first group, and has no owner: an owner must be
//! in the same namespace, and none of the groups stands for all. Its annotations are for people; any user that may edit the
//! first namespace may write them, so they merge nothing.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::assemble::{Assembled, Member, MergedGroup, merge, role_prefixes};
use muster_api::dialects::{self, Dialect, GroupRef, State, Terms};
use muster_core::gang::Phase;
use serde_json::Value;

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, ObjectChange};
use crate::gang::build::{
    GroupTerms, MemberPod, StringMap, labels_and_annotations, unsupported_requirement,
};
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::status::reasons::count_pods;

/// The annotation of a gang's object that lists its groups.
pub(crate) const GROUPS: &str = "muster.sh/groups";

/// Groups as that annotation lists them.
pub(crate) fn listed(groups: &[GroupRef]) -> String {
    serde_json::to_string(&names_of(groups)).expect("plain JSON")
}

/// Groups as a status lists them.
pub(crate) fn names_of(groups: &[GroupRef]) -> Vec<String> {
    groups.iter().map(GroupRef::full_name).collect()
}

/// The groups of a gang at the time its placement was written.
fn recorded_groups(object: &DynamicObject) -> Vec<GroupRef> {
    let listed = object.data.pointer("/status/groups").and_then(Value::as_array);
    let names = listed.into_iter().flatten().map(|name| named(name.as_str()?));
    names.collect::<Option<Vec<GroupRef>>>().unwrap_or_default()
}

/// The group that a pod names.
pub(crate) fn group_of(pod: &Pod) -> Option<GroupRef> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let (labels, annotations) = labels_and_annotations(pod);
    dialects::group_of(labels, annotations, &pod.spec, namespace)
}

impl Host {
    /// The gang of a group: the group alone, or merged with others, by the pod's annotations or else the group's object. A
    /// gang that has seats stays what it is.
    pub(crate) fn group_source(&self, of: GroupRef, annotations: &StringMap) -> GangSource {
        if of.dialect != Dialect::Koordinator {
            return GangSource::Group(of);
        }
        if let Some(held) = self.source_with_seats(&of) {
            return held;
        }
        let listed =
            dialects::merged_groups(&of, annotations).or_else(|| self.groups_in_object(&of));
        match listed {
            Some(groups) if groups.len() > 1 => GangSource::Merged(groups.into()),
            _ => GangSource::Group(of),
        }
    }

    /// The groups that the object of a group lists to start together with it.
    pub(crate) fn groups_in_object(&self, of: &GroupRef) -> Option<Vec<GroupRef>> {
        let (_, object) = self.source_object(&GangSource::Group(of.clone()))?;
        dialects::merged_groups(of, object.annotations())
    }

    /// The gang with seats that a group belongs to, if there is one.
    fn source_with_seats(&self, of: &GroupRef) -> Option<GangSource> {
        let alone = GangSource::Group(of.clone());
        if self.holds_seats(&alone.gang_name()) {
            return Some(alone);
        }
        let name = self.gangs.merged_gangs_with(of).find(|name| self.holds_seats(name))?;
        self.gangs.get(name).map(|record| record.source.clone())
    }

    /// Whether a gang has seats; while the World is rebuilt, whether it has a recorded placement.
    fn holds_seats(&self, name: &str) -> bool {
        if !self.world.is_synced() {
            return self.has_placement(name);
        }
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| !matches!(gang.phase, Phase::Waiting | Phase::Assembling(_)))
    }

    /// Moves pods of a gang without seats to the groups they name now. Returns whether the gang has no pods left.
    pub(crate) fn regroup(&mut self, name: &Arc<str>) -> bool {
        let Some(record) = self.gangs.get(name) else { return true };
        let may_differ = match &record.source {
            GangSource::Merged(_) => true,
            GangSource::Group(of) => of.dialect == Dialect::Koordinator,
            _ => false,
        };
        if !may_differ || self.holds_seats(name) {
            return false;
        }
        let pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let misplaced = pods.filter(|(_, pod)| self.source_of(pod) != record.source);
        let misplaced: Vec<(Key, Arc<Pod>)> =
            misplaced.map(|(key, pod)| (key.clone(), pod.clone())).collect();
        if misplaced.is_empty() {
            return false;
        }
        for (key, pod) in misplaced {
            let with = self.add_to_gang(&key, &pod);
            self.dirty.gangs.insert(with);
        }
        let is_left = self.gangs.get(name).is_some_and(|record| !record.pods.is_empty());
        if !is_left {
            self.remove_gang(name);
        }
        !is_left
    }

    /// Registers merged gangs that have a recorded placement before their pods are observed: the lists on the pods may have
    /// changed since.
    pub(crate) fn register_merged_gangs(&mut self) {
        for ObjectChange { key, is, .. } in self.all_objects(KindRole::Gang) {
            let Some(object) = is else { continue };
            let groups = recorded_groups(&object);
            if groups.len() < 2 {
                continue;
            }
            let source = GangSource::Merged(groups.into());
            if source.gang_name() == key && self.has_placement(&key) {
                self.gangs.ensure(source);
            }
        }
    }

    /// Whether a gang of these groups has started, so that each of them agreed to it. Pods on nodes prove nothing: a tenant
    /// may have written `spec.nodeName`.
    fn has_started(&self, record: &GangRecord, groups: &[GroupRef]) -> bool {
        let name = record.source.gang_name();
        let is_recorded = |object: &Arc<DynamicObject>| recorded_groups(object) == groups;
        match self.world.is_synced() {
            true => self.holds_seats(&name),
            false => self.has_placement(&name) && self.gang_object(&name).is_some_and(is_recorded),
        }
    }

    /// Assembles one gang of several groups, its members in the order of the groups, or returns why it is none. Once it has
    /// started, groups without pods are omitted: they had pods when it started.
    pub(crate) fn merge_groups(
        &self,
        record: &GangRecord,
        groups: &[GroupRef],
        members: &mut Vec<MemberPod>,
        runs: bool,
    ) -> Result<(Assembled, GroupTerms), String> {
        let place = |member: &MemberPod| {
            let of = group_of(&member.pod)?;
            groups.iter().position(|one| *one == of)
        };
        members.retain(|member| place(member).is_some());
        members.sort_by_key(|member| place(member));
        let mut sides: Vec<(usize, Terms, Vec<Member<'_>>)> = Vec::new();
        let (mut merged, mut priorities) = (GroupTerms::default(), Vec::new());
        let has_started = runs && self.has_started(record, groups);
        for (at, of) in groups.iter().enumerate() {
            let mine: Vec<&MemberPod> =
                members.iter().filter(|member| place(member) == Some(at)).collect();
            if mine.is_empty() && has_started {
                continue;
            }
            if mine.is_empty() {
                self.check_group_agrees(groups, of)?;
            }
            let keys: Vec<&Key> = mine.iter().map(|member| &member.key).collect();
            let prefixed = |why: String| format!("{}: {why}", of.full_name());
            let terms =
                self.terms(&GangSource::Group(of.clone()), record, &keys).map_err(prefixed)?;
            if let Some(why) = unsupported_requirement(&terms) {
                return Err(prefixed(why));
            }
            let priority = self.priority(record, &keys, &terms);
            priorities.push(priority);
            let ignored = self.ignored_priority(&terms, priority);
            merged.never_preempts |= self.never_preempts(&keys, &terms);
            for words in terms.ignored.iter().chain(&ignored) {
                if !merged.unsupported.contains(words) {
                    merged.unsupported.push(words.clone());
                }
            }
            sides.push((at, terms, mine.into_iter().map(MemberPod::as_member).collect()));
        }
        let (prefixes, names) = (role_prefixes(groups), groups.iter().map(GroupRef::full_name));
        let names: Vec<String> = names.collect();
        let places: Vec<usize> = sides.iter().map(|(at, _, _)| *at).collect();
        let sides: Vec<MergedGroup<'_>> = sides
            .iter()
            .map(|(at, terms, members)| MergedGroup {
                name: &names[*at],
                role_prefix: &prefixes[*at],
                terms,
                members,
            })
            .collect();
        let united = merge(&record.source.gang_name(), &sides, &self.config.gpus);
        let (united, of) = united.map_err(|why| why.to_string())?;
        if !runs {
            check_all_members_exist(&united, &of, &sides)?;
        }
        merged.role_groups = of.into_iter().map(|side| groups[places[side]].clone()).collect();
        // They start together, and one group of high priority does not raise the others.
        merged.priority = priorities.iter().copied().min().unwrap_or_default();
        merged.priority.is_declared = priorities.iter().any(|priority| priority.is_declared);
        let namespaces = groups.iter().map(|of| &*of.namespace);
        match self.queue_excludes(&united.spec.queue, namespaces).filter(|_| !runs) {
            Some(why) => Err(why),
            None => Ok((united, merged)),
        }
    }

    /// Checks that a group without pods here lists the same groups on its object, or returns why it does not.
    fn check_group_agrees(&self, groups: &[GroupRef], of: &GroupRef) -> Result<(), String> {
        let name = of.full_name();
        let others = || {
            let others = self.gangs.merged_gangs_with(of).filter_map(|name| self.gangs.get(name));
            let mut pods = others.flat_map(|record| &record.pods);
            pods.any(|key| self.cache.pods.get(key).is_some_and(|pod| self.names_group(pod, of)))
        };
        let alone = || {
            let alone = self.gangs.get(&GangSource::Group(of.clone()).gang_name());
            alone.is_some_and(|record| !record.pods.is_empty())
        };
        match (
            self.groups_in_object(of),
            self.source_object(&GangSource::Group(of.clone())).is_some(),
        ) {
            (Some(list), _) if *list == *groups => Ok(()),
            (Some(list), _) if list.len() > 1 => Err(format!(
                "it is to start together with {name}, which names other groups: {}",
                listed(&list)
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

    /// Whether one of the groups that a gang lists belongs to it. A listed group may not agree, and then this gang must not
    /// write its status.
    pub(crate) fn is_member_group(
        &self,
        record: &GangRecord,
        groups: &[GroupRef],
        of: &GroupRef,
    ) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| self.names_group(pod, of))
            || self.groups_in_object(of).is_some_and(|list| *list == *groups)
    }

    /// Whether a pod names a group.
    pub(crate) fn names_group(&self, pod: &Pod, of: &GroupRef) -> bool {
        group_of(pod).is_some_and(|named| named == *of)
    }

    /// The state of one group of a gang: the gang's, but with the group's own running members. A group may finish before
    /// others.
    pub(crate) fn state_for(&self, name: &str, of: &GroupRef, state: &State) -> State {
        let record = self.gangs.get(name);
        let (State::Running { .. }, Some(GangRecord { source: GangSource::Merged(_), pods, .. })) =
            (state, record)
        else {
            return state.clone();
        };
        let pods = || {
            let pods = pods.iter().filter_map(|key| self.cache.pods.get(key));
            pods.filter(|pod| self.names_group(pod, of))
        };
        match count_pods(pods()) {
            State::Running { running: 0, succeeded, failed }
                if succeeded + failed > 0 && pods().all(|pod| pod.is_finished()) =>
            {
                State::Finished { succeeded, failed }
            }
            counted => counted,
        }
    }
}

/// Checks that all members that the groups declare exist, or names a group that lacks some.
fn check_all_members_exist(
    united: &Assembled,
    of: &[usize],
    sides: &[MergedGroup<'_>],
) -> Result<(), String> {
    for (at, side) in sides.iter().enumerate() {
        let roles = united.spec.roles.iter().zip(&united.roles).zip(of);
        let mine = roles.filter(|(_, of)| **of == at).map(|(role, _)| role);
        let absent = mine.map(|(role, pods)| (role.max as usize).saturating_sub(pods.len()));
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
