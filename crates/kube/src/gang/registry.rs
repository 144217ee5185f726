//! Which pods make up which gang, as far as they were seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use muster_api::dialects::GroupRef;
use muster_core::event::Refusal;
use muster_core::gang::GangSpec;
use rustc_hash::FxHashMap;

use crate::cache::kinds::GangSource;
use crate::cache::store::Key;
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::volumes::binding::VolumeBinding;
use crate::gang::api_refusal::ApiRefusal;
use crate::gang::pod_templates::create_backoff::CreateBackoff;
use crate::gang::tenancy::trusted_annotations::Released;
use crate::schedule::owner_resize::Size;

/// The pods of one gang.
#[derive(Debug)]
pub(crate) struct GangRecord {
    /// Why they are one.
    pub(crate) origin: GangSource,
    /// All of them, also those that are over.
    pub(crate) pods: BTreeSet<Key>,
    /// The UID of what made them, where something did that stands for the gang.
    pub(crate) maker: Option<Arc<str>>,
    /// Pods of another gang of this name, that begins when nobody of this one is left.
    pub(crate) successors: BTreeSet<Key>,
    /// What the World was last told of it.
    pub(crate) spec: Option<GangSpec>,
    /// The role each pod plays, by place in the gang's list.
    pub(crate) roles: BTreeMap<Key, u16>,
    /// How many members each role of it may still have, by place in the list. Nothing where that is not known.
    pub(crate) sized: BTreeMap<u16, Size>,
    /// Since when it has seats above its minimum for which no member exists.
    pub(crate) vacant: Option<Instant>,
    /// Which one of its role each pod is: the lowest come first and go last.
    pub(crate) ranks: BTreeMap<Key, u32>,
    /// Where pods were told to go and have not been seen yet.
    pub(crate) assigned: BTreeMap<Key, Arc<str>>,
    /// Pods whose gate Muster has lifted.
    pub(crate) released: BTreeMap<Key, Released>,
    /// Whether some of its pods are on nodes beyond what its queue allows: see `outside`.
    pub(crate) is_outside: bool,
    /// Whether its owner was told so.
    pub(crate) is_said_outside: bool,
    /// Whether its placement is written down, so that pods may be bound.
    pub(crate) recorded: bool,
    /// How often that is being written down: the last counts.
    pub(crate) recording: u32,
    /// Whether somebody wrote it as a Gang, which may be gone by now.
    pub(crate) written: bool,
    /// Pods that are being made of its templates.
    pub(crate) making: BTreeSet<Key>,
    /// How fast they are made.
    pub(crate) pace: CreateBackoff,
    /// Whether one of them could not be made.
    pub(crate) gangs_without_object: bool,
    /// Pods that were told to go.
    pub(crate) leaving: BTreeSet<Key>,
    /// Why it cannot be taken in, and since when something is in the way.
    pub(crate) trouble: Option<(String, Instant)>,
    /// What the World has against it, if that is why.
    pub(crate) refused: Option<Refusal>,
    /// What the ties of each pod come to, or came to when it was placed.
    pub(crate) tied: BTreeMap<Key, PodConstraints>,
    /// Whether its wishes were looked at again since it was.
    pub(crate) wished: bool,
    /// Why it cannot go anywhere now, although it was taken in.
    pub(crate) waits: Option<String>,
    /// The volumes it waits for before its pods are bound.
    pub(crate) choosing: Option<VolumeBinding>,
    /// Since when its owner is asked to make its pods, for which there is room now.
    pub(crate) called: Option<Instant>,
    /// Since when pods of it that were let go are waited for to be put on their nodes by another scheduler.
    pub(crate) handed_over: Option<Instant>,
    /// Whether its pods were away when there was room for it.
    pub(crate) is_held_back: bool,
    /// Whether it is by now something else than what has its seats.
    pub(crate) is_unlike: bool,
    /// Since when it is being bound and not whole.
    pub(crate) binding: Option<Instant>,
    /// What the server has against it being bound.
    pub(crate) denied: Option<ApiRefusal>,
    /// How often it had its seats for nothing, and when it last had.
    pub(crate) for_nothing: Option<(u32, Instant)>,
    /// Whether it was whole since it has its seats.
    pub(crate) was_whole: bool,
    /// Whether what the World was told is made of what its Job will be, and not of pods.
    pub(crate) imagined: bool,
    /// For how many members it is sized that do not exist.
    pub(crate) absent: u32,
    /// Since when nobody of it is there and others are to be made: one stage is over, and the next has not begun.
    pub(crate) between: Option<Instant>,
    /// Whether its Job was seen to run since the gang has its seats.
    pub(crate) let_run: bool,
    /// What its Job was last told: whether to be suspended.
    pub(crate) told_suspend: Option<bool>,
}

impl GangRecord {
    fn new(origin: GangSource) -> Self {
        Self {
            origin,
            pods: BTreeSet::new(),
            maker: None,
            successors: BTreeSet::new(),
            spec: None,
            roles: BTreeMap::new(),
            sized: BTreeMap::new(),
            vacant: None,
            ranks: BTreeMap::new(),
            assigned: BTreeMap::new(),
            released: BTreeMap::new(),
            is_outside: false,
            is_said_outside: false,
            recorded: false,
            recording: 0,
            written: false,
            making: BTreeSet::new(),
            pace: CreateBackoff::default(),
            gangs_without_object: false,
            leaving: BTreeSet::new(),
            trouble: None,
            refused: None,
            tied: BTreeMap::new(),
            wished: false,
            waits: None,
            choosing: None,
            called: None,
            handed_over: None,
            is_held_back: false,
            is_unlike: false,
            binding: None,
            denied: None,
            for_nothing: None,
            was_whole: false,
            imagined: false,
            absent: 0,
            between: None,
            let_run: false,
            told_suspend: None,
        }
    }

    /// Whether what was made by this one is of another gang than this.
    pub(crate) fn is_anothers(&self, maker: &Option<Arc<str>>) -> bool {
        maker.is_some() && self.maker.is_some() && self.maker != *maker
    }

    /// A pod's place among those of its role; the last for one that has none.
    pub(crate) fn rank(&self, pod: &str) -> u32 {
        self.ranks.get(pod).copied().unwrap_or(u32::MAX)
    }
}

/// All gangs by name, and the gang of each pod.
#[derive(Debug, Default)]
pub(crate) struct GangRegistry {
    by_name: BTreeMap<Arc<str>, GangRecord>,
    /// Those that cannot be taken in.
    troubled: BTreeSet<Arc<str>>,
    of_pod: FxHashMap<Key, Arc<str>>,
    /// Gangs of several groups, by each of these.
    joined: BTreeMap<GroupRef, BTreeSet<Arc<str>>>,
}

impl GangRegistry {
    /// The gang of a pod.
    pub(crate) fn of(&self, pod: &str) -> Option<(&Arc<str>, &GangRecord)> {
        let name = self.of_pod.get(pod)?;
        Some((name, self.by_name.get(name)?))
    }
    pub(crate) fn get(&self, name: &str) -> Option<&GangRecord> {
        self.by_name.get(name)
    }
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut GangRecord> {
        self.by_name.get_mut(name)
    }
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_name.keys()
    }

    /// A gang there is, with or without pods.
    pub(crate) fn ensure(&mut self, origin: GangSource) -> &mut GangRecord {
        let name = origin.gang_name();
        if let GangSource::Joined(groups) = &origin {
            for group in groups.iter() {
                self.joined.entry(group.clone()).or_default().insert(name.clone());
            }
        }
        self.by_name.entry(name).or_insert_with(|| GangRecord::new(origin))
    }

    /// Gangs of several groups of which this is one, by what some pod says.
    pub(crate) fn joined_with(&self, group: &GroupRef) -> impl Iterator<Item = &Arc<str>> {
        self.joined.get(group).into_iter().flatten()
    }

    /// A pod belongs to a gang, as what this one made. Says which it belonged to before, if that was another.
    pub(crate) fn join(
        &mut self,
        pod: &Key,
        origin: GangSource,
        maker: Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        let name = origin.gang_name();
        let before = self.of_pod.insert(pod.clone(), name.clone()).filter(|before| *before != name);
        if let Some(group) = before.as_deref().and_then(|before| self.by_name.get_mut(before)) {
            group.pods.remove(pod);
            group.successors.remove(pod);
            group.released.remove(pod);
        }
        let group = self.ensure(origin);
        if group.making.remove(pod) {
            group.pace.made();
        }
        group.gangs_without_object &= !group.making.is_empty();
        if group.pods.contains(pod) {
            return before; // whoever is found above what made it, it is of those it came with
        }
        if group.is_anothers(&maker) && !group.pods.is_empty() {
            group.successors.insert(pod.clone());
            return before;
        }
        if group.pods.is_empty() || group.maker.is_none() {
            group.maker = maker;
        }
        group.pods.insert(pod.clone());
        before
    }

    /// A pod is no more, or nobody's. Says whose it was.
    pub(crate) fn leave(&mut self, pod: &str) -> Option<Arc<str>> {
        let name = self.of_pod.remove(pod)?;
        if let Some(group) = self.by_name.get_mut(&name) {
            group.pods.remove(pod);
            group.successors.remove(pod);
            group.assigned.remove(pod);
            group.released.remove(pod);
            group.leaving.remove(pod);
            group.roles.remove(pod);
            group.ranks.remove(pod);
        }
        Some(name)
    }

    /// A gang cannot be taken in, or nothing is in its way any more. Whether that is news.
    pub(crate) fn trouble(&mut self, name: &Arc<str>, why: Option<String>) -> bool {
        let Some(group) = self.by_name.get_mut(name) else { return false };
        group.refused = None;
        let before = group.trouble.take();
        group.trouble = match why {
            Some(why) => {
                self.troubled.insert(name.clone());
                let since = before.as_ref().map_or_else(Instant::now, |(_, since)| *since);
                Some((why, since))
            }
            None => {
                self.troubled.remove(name);
                None
            }
        };
        before.map(|(why, _)| why) != group.trouble.as_ref().map(|(why, _)| why.clone())
    }

    /// The World does not take a gang in.
    pub(crate) fn refuse(&mut self, name: &Arc<str>, why: Refusal) {
        self.trouble(name, Some(why.to_string()));
        if let Some(group) = self.by_name.get_mut(name) {
            group.refused = Some(why);
        }
    }

    /// Gangs that cannot be taken in.
    pub(crate) fn troubled(&self) -> impl Iterator<Item = &Arc<str>> {
        self.troubled.iter()
    }

    /// A gang is over.
    pub(crate) fn forget(&mut self, name: &str) {
        self.troubled.remove(name);
        if let Some(group) = self.by_name.remove(name) {
            if let GangSource::Joined(groups) = &group.origin {
                for of in groups.iter() {
                    let names = self.joined.entry(of.clone()).or_default();
                    names.remove(name);
                    if names.is_empty() {
                        self.joined.remove(of);
                    }
                }
            }
            for pod in group.pods.into_iter().chain(group.successors) {
                self.of_pod.remove(&pod);
            }
        }
    }
}
