//! A gang's ties, resolved: what those of each member come to now.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::Constraints;
use muster_core::gang::{Closeness, GangSpec, Phase};

use crate::cache::store::Key;
use crate::constraints::cluster_view::{ClusterView, Member, domain};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::preferred::PreferredTerms;
use crate::constraints::selector::PodSelector;
use crate::constraints::topology_spread::distribute::{Domain, deal};
use crate::constraints::topology_spread::rule;
use crate::constraints::volumes::claims::Store;
use crate::constraints::volumes::lister::Shop;
use crate::constraints::volumes::{attach_limits, claims, static_volumes};
use crate::constraints::{host_ports, pod_affinity, pod_anti_affinity, preferred};
use crate::gang::identity::BuiltGang;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

/// Whether what a pod is tied to may change when others do.
fn is_tied(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    near.is_some_and(|near| !near.required.is_empty())
        || !pod_anti_affinity::terms(pod).is_empty()
        || rule::rules(pod).next().is_some()
        || !claims::claims(pod).is_empty()
        || !pod.spec.resource_claims.is_empty()
}

/// What is true of a gang's members whoever else is where.
fn fixed(gang: &[Member<'_>], around: &ClusterView<'_>) -> Vec<PodConstraints> {
    let mut all = vec![PodConstraints::default(); gang.len()];
    for (member, tied) in gang.iter().zip(&mut all) {
        for (meaning, amount) in host_ports::takes(&member.pod.spec) {
            tied.take(meaning, amount);
        }
        pod_anti_affinity::tokens(member, gang, &around.spaces, tied);
    }
    all
}

/// What the ties of a gang's members come to now.
fn resolve(
    name: &Arc<str>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    store: &impl Store,
) -> Vec<PodConstraints> {
    let mut all = fixed(gang, around);
    let mut one_each = std::collections::BTreeSet::new();
    for (at, member) in gang.iter().enumerate() {
        let tied = &mut all[at];
        if !member.pod.spec.resource_claims.is_empty() {
            tied.wait("devices by ResourceClaims are not supported".to_owned());
        }
        let others = gang.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&Pod> = others.map(|(_, other)| other.pod).collect();
        claims::volumes(member.pod, &others, store, tied);
        pod_affinity::near(member, gang, around, tied);
        one_each.extend(pod_anti_affinity::away(member, gang, around, tied));
    }
    static_volumes::by_hand(gang, around, store, &mut all);
    let pods: Vec<&Pod> = gang.iter().map(|member| member.pod).collect();
    let others: Vec<&Pod> = around.pods.iter().map(|other| other.pod).collect();
    attach_limits::attach(name, &pods, &others, store, &mut all);
    rule::spread(name, gang, around, &mut all);
    for key in one_each {
        deal_one_each(&key, gang, around, &mut all);
    }
    all
}

/// Members that must not meet, each in a domain of its own where nobody is that they must not meet either.
fn deal_one_each(
    key: &Arc<str>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    all: &mut [PodConstraints],
) {
    let mut domains: BTreeMap<Arc<str>, Domain> = BTreeMap::new();
    for (member, tied) in gang.iter().zip(all.iter()).take(1) {
        let mut constraints: Constraints = member.constraints.clone();
        tied.clone().constrain(&mut constraints);
        for node in around
            .nodes
            .iter()
            .filter(|node| crate::constraints::cluster_view::suits(&constraints, node))
        {
            if let Some(name) = domain(node, key) {
                domains.entry(name.into()).or_default().nodes += u32::from(node.is_ready());
            }
        }
    }
    let everybody: Vec<usize> = (0..gang.len()).collect();
    match deal(&domains, gang.len(), 1) {
        Some(dealt) => rule::give(key, &everybody, dealt, all),
        None => all.iter_mut().for_each(|tied| {
            tied.wait(format!(
                "{} members must not meet by {key}, and {} of it are open to them",
                gang.len(),
                domains.len()
            ));
        }),
    }
}

impl Host {
    /// What the ties of these pods of a gang come to. Once a gang has seats nothing of it changes: it keeps what it was
    /// placed by, and others see to it that they keep away.
    pub(crate) fn tie(
        &self,
        name: &Arc<str>,
        group: &GangRecord,
        pods: &[(&Key, &Arc<Pod>, &Constraints)],
    ) -> Vec<PodConstraints> {
        let members: Vec<Member<'_>> =
            pods.iter().map(|(_, pod, constraints)| Member { pod, constraints }).collect();
        if self.is_settled(name, group) {
            return self.as_placed(name, group, pods, &members);
        }
        let with_anti_affinity = !members.iter().any(|member| is_tied(member.pod));
        let mut tied = match with_anti_affinity && self.cache.with_anti_affinity().next().is_none()
        {
            true => fixed(&members, &ClusterView::default()),
            false => {
                let around = self.around(name, with_anti_affinity);
                resolve(name, &members, &around, &Shop { host: self, gang: name })
            }
        };
        self.hear_wishes(name, &members, &mut tied);
        tied
    }

    /// Adds what the wishes of a gang's members come to now. Members are mostly alike, and those that wish the same are
    /// looked at once.
    fn hear_wishes(&self, name: &Arc<str>, members: &[Member<'_>], tied: &mut [PodConstraints]) {
        if !members.iter().any(|member| preferred::has_wishes(member.pod)) {
            return;
        }
        let (spaces, levels) = (self.spaces(), self.world.topology().levels());
        let mut known: Vec<(Vec<PreferredTerms>, &Constraints)> = Vec::new();
        let mut which: Vec<usize> = Vec::with_capacity(members.len());
        for member in members {
            let one = (preferred::wishes(member, &spaces), member.constraints);
            let place = known.iter().position(|known| *known == one);
            which.push(place.unwrap_or_else(|| {
                known.push(one);
                known.len() - 1
            }));
        }
        let scopes: Vec<&PodSelector> =
            known.iter().flat_map(|(wished, _)| wished).map(|one| &one.scope).collect();
        let around = self.around_those(name, &scopes, spaces);
        let heard: Vec<PodConstraints> = known
            .iter()
            .enumerate()
            .map(|(at, (wished, constraints))| {
                let first = which.iter().position(|of| *of == at).expect("somebody wishes it");
                let member = Member { pod: members[first].pod, constraints };
                let mut heard = PodConstraints::default();
                preferred::spread(wished, levels, &mut heard);
                preferred::hear(wished, &member, members, &around, levels, &mut heard);
                heard
            })
            .collect();
        for (tied, at) in tied.iter_mut().zip(which) {
            tied.take_wishes(&heard[at]);
        }
    }

    /// Whether a gang has wishes that may come to something else by now.
    pub(crate) fn wishes(&self, group: &GangRecord) -> bool {
        let mut pods = group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| preferred::has_wishes(pod))
    }

    /// Whether what a gang is now differs in nothing but wishes from what it was.
    pub(crate) fn only_wishes_differ(was: &GangSpec, is: &GangSpec) -> bool {
        preferred::is_same_but_for_wishes(was, is)
    }

    /// Whether a gang has been placed.
    pub(crate) fn is_settled(&self, name: &str, group: &GangRecord) -> bool {
        match self.world.gang_named(name).and_then(|id| self.world.gang(id)) {
            Some(gang) => !matches!(gang.phase, Phase::Waiting | Phase::Assembling(_)),
            None => !self.pods_by_state(group).bound.is_empty() || self.has_placement(name),
        }
    }

    /// What members were placed by. One that came later is like one that asked for the same; of a gang that was found as
    /// it is, only what never changes is known.
    fn as_placed(
        &self,
        name: &Arc<str>,
        group: &GangRecord,
        pods: &[(&Key, &Arc<Pod>, &Constraints)],
        members: &[Member<'_>],
    ) -> Vec<PodConstraints> {
        let spaces = ClusterView { spaces: self.around("", true).spaces, ..ClusterView::default() };
        let mut fixed = fixed(members, &spaces);
        let is_found = pods.iter().any(|(key, _, _)| !group.pod_constraints.contains_key(*key));
        if is_found && members.iter().any(|member| !claims::claims(member.pod).is_empty()) {
            let shop = Shop { host: self, gang: name };
            static_volumes::found(members, &shop, &mut fixed);
            let pods: Vec<&Pod> = members.iter().map(|member| member.pod).collect();
            attach_limits::attach(name, &pods, &[], &shop, &mut fixed);
        }
        let levels = self.world.topology().levels();
        for (member, tied) in members.iter().zip(&mut fixed) {
            preferred::spread(&preferred::wishes(member, &spaces.spaces), levels, tied);
        }
        // Who takes the place of one that is gone is tied as that one was.
        let is_here = |key: &Key| pods.iter().any(|(here, _, _)| *here == key);
        let mut left: Vec<&PodConstraints> = group
            .pod_constraints
            .iter()
            .filter(|(key, _)| !is_here(key))
            .map(|(_, tied)| tied)
            .collect();
        let one =
            |((key, _, constraints), fixed): (&(&Key, &Arc<Pod>, &Constraints), PodConstraints)| {
                let alike = || {
                    let alike = pods.iter().filter(|(_, _, theirs)| theirs == constraints);
                    alike.filter_map(|(key, _, _)| group.pod_constraints.get(*key)).next()
                };
                let same = alike().filter(|tied| tied.dealt.is_none());
                let known =
                    group.pod_constraints.get(*key).or(same).or_else(|| left.pop()).or_else(alike);
                let mut tied = known.cloned().unwrap_or(fixed);
                tied.waits = None;
                tied
            };
        pods.iter().zip(fixed).map(one).collect()
    }

    /// Whether what a gang is tied to must be looked at again before it is admitted.
    pub(crate) fn minds(&self, group: &GangRecord) -> bool {
        let pods = || group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        self.cache.with_anti_affinity().next().is_some()
            || group.pod_constraints.values().any(|tied| !tied.is_fixed())
            || pods().any(|pod| is_tied(pod))
    }

    /// Asks for a gang's tokens by name, and notes whether it must be looked at when others move.
    pub(crate) fn name_tokens(&mut self, name: &Arc<str>, gathered: &mut BuiltGang) {
        let meanings =
            gathered.pod_constraints.values().flat_map(|tied| tied.takes.keys().cloned());
        let known = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let asked = known.into_iter().flat_map(|gang| &gang.spec.roles);
        let asked = asked.flat_map(|role| role.request.amounts.clone()).collect();
        self.constraints.tokens.want(name, meanings.collect::<Vec<_>>(), &asked);
        for (key, role) in &gathered.pod_roles {
            let Some(tied) = gathered.pod_constraints.get(key) else { continue };
            let amounts = &mut gathered.spec.roles[usize::from(*role)].request.amounts;
            for (meaning, amount) in &tied.takes {
                let token = self.constraints.tokens.of(meaning).expect("just wanted");
                let taken = amounts.entry(token).or_default();
                *taken = (*amount).max(*taken);
            }
        }
        if gathered.pod_constraints.values().any(PodConstraints::uses_volumes) {
            self.constraints.volumes.insert(name.clone());
        } else {
            self.constraints.volumes.remove(name);
        }
        let pods = gathered.pod_roles.keys().filter_map(|key| self.cache.pods.get(key));
        let minds = pods.into_iter().any(|pod| is_tied(pod))
            || gathered.pod_constraints.values().any(|tied| !tied.is_fixed());
        if minds {
            self.constraints.minding.insert(name.clone());
        } else {
            self.constraints.minding.remove(name);
        }
    }

    /// What a pod of somebody else's takes of the tokens there are.
    pub(crate) fn foreign_tokens(&self, pod: &Pod) -> Vec<(Arc<str>, u64)> {
        let takes = host_ports::takes(&pod.spec).into_iter();
        takes
            .filter_map(|(meaning, amount)| Some((self.constraints.tokens.of(&meaning)?, amount)))
            .collect()
    }

    /// Puts what members say of all of them together into the gang.
    ///
    /// # Errors
    /// When there are no words for it.
    pub(crate) fn gather_close(
        &self,
        spec: &mut GangSpec,
        tied: &BTreeMap<Key, PodConstraints>,
    ) -> Result<(), String> {
        let levels = self.world.topology().levels();
        for key in tied.values().filter_map(|tied| tied.near.as_ref()) {
            let Some(level) = levels.find(key) else {
                return Err(format!(
                    "members must be near each other by {key}, which is no level of the topology"
                ));
            };
            let narrower = match &spec.closeness {
                Some(Closeness::Required(said)) => {
                    levels.find(said).is_some_and(|said| said >= level)
                }
                Some(Closeness::Preferred(_)) | None => false,
            };
            if !narrower {
                spec.closeness = Some(Closeness::Required(levels.name(level).into()));
            }
        }
        // What the gang itself says counts for more than what its pods wish.
        let wished = tied.values().find_map(|tied| tied.close.as_ref());
        if let (None, Some(level)) = (&spec.closeness, wished.and_then(|key| levels.find(key))) {
            spec.closeness = Some(Closeness::Preferred(levels.name(level).into()));
        }
        match tied.values().find_map(|tied| tied.whole.as_ref()) {
            Some(key) if !spec.is_rigid() => {
                Err(format!("topology spread over {key} of a gang that may grow is not understood"))
            }
            _ => Ok(()),
        }
    }
}
