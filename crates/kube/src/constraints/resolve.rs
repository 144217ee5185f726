//! Resolves the constraints of a gang's members against the cluster as it is now.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::Constraints;
use muster_core::gang::{Closeness, GangSpec, Phase};

use crate::cache::store::Key;
use crate::constraints::cluster_view::{ClusterView, Member, domain, node_matches};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::preferred::PreferredTerm;
use crate::constraints::selector::PodSelector;
use crate::constraints::topology_spread::distribute::{Domain, distribute};
use crate::constraints::topology_spread::rule;
use crate::constraints::volumes::lister::{CachedVolumes, VolumeLister};
use crate::constraints::volumes::{attach_limits, claims, static_volumes};
use crate::constraints::{host_ports, pod_affinity, pod_anti_affinity, preferred};
use crate::gang::identity::BuiltGang;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

/// Whether a pod has required rules whose resolution may change when other pods, nodes or volumes change.
fn depends_on_cluster(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    required.is_some_and(|terms| !terms.required.is_empty())
        || !pod_anti_affinity::required_terms(pod).is_empty()
        || rule::required_rules(pod).next().is_some()
        || !claims::claims(pod).is_empty()
        || !pod.spec.resource_claims.is_empty()
}

/// The constraints of a gang's members that do not depend on where other pods are: host ports and anti-affinity by
/// hostname.
fn fixed_constraints(gang: &[Member<'_>], cluster: &ClusterView<'_>) -> Vec<PodConstraints> {
    let mut all = vec![PodConstraints::default(); gang.len()];
    for (member, resolved) in gang.iter().zip(&mut all) {
        for (kind, amount) in host_ports::tokens(&member.pod.spec) {
            resolved.take_token(kind, amount);
        }
        pod_anti_affinity::take_tokens(member, gang, &cluster.namespace_labels, resolved);
    }
    all
}

/// The constraints of a gang's members as they resolve now.
fn resolve(
    name: &Arc<str>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    lister: &impl VolumeLister,
) -> Vec<PodConstraints> {
    let mut all = fixed_constraints(gang, cluster);
    let mut one_per_domain = std::collections::BTreeSet::new();
    for (at, member) in gang.iter().enumerate() {
        let resolved = &mut all[at];
        if !member.pod.spec.resource_claims.is_empty() {
            resolved.wait_because("devices by ResourceClaims are not supported".to_owned());
        }
        let others = gang.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&Pod> = others.map(|(_, other)| other.pod).collect();
        claims::require_volumes(member.pod, &others, lister, resolved);
        pod_affinity::require_affinity(member, gang, cluster, resolved);
        one_per_domain
            .extend(pod_anti_affinity::require_anti_affinity(member, gang, cluster, resolved));
    }
    static_volumes::require_static_volumes(gang, cluster, lister, &mut all);
    let pods: Vec<&Pod> = gang.iter().map(|member| member.pod).collect();
    let others: Vec<&Pod> = cluster.pods.iter().map(|other| other.pod).collect();
    attach_limits::add_attachments(name, &pods, &others, lister, &mut all);
    rule::require_topology_spread(name, gang, cluster, &mut all);
    for key in one_per_domain {
        distribute_one_per_domain(&key, gang, cluster, &mut all);
    }
    all
}

/// Assigns members with anti-affinity among themselves a domain each, of those without other pods that the terms
/// exclude.
fn distribute_one_per_domain(
    key: &Arc<str>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    all: &mut [PodConstraints],
) {
    let mut domains: BTreeMap<Arc<str>, Domain> = BTreeMap::new();
    for (member, resolved) in gang.iter().zip(all.iter()).take(1) {
        let mut constraints: Constraints = member.constraints.clone();
        resolved.clone().apply_to(&mut constraints);
        for node in cluster.nodes.iter().filter(|node| node_matches(&constraints, node)) {
            if let Some(name) = domain(node, key) {
                domains.entry(name.into()).or_default().nodes += u32::from(node.is_ready());
            }
        }
    }
    let all_members: Vec<usize> = (0..gang.len()).collect();
    match distribute(&domains, gang.len(), 1) {
        Some(assigned) => rule::assign_domains(key, &all_members, assigned, all),
        None => all.iter_mut().for_each(|resolved| {
            resolved.wait_because(format!(
                "anti-affinity by {key} needs a domain for each of {} members, and {} are eligible",
                gang.len(),
                domains.len()
            ));
        }),
    }
}

impl Host {
    /// Resolves the constraints of these pods of a gang. Once a gang is placed nothing of it changes: it keeps the
    /// constraints it was placed by, and the constraints of other gangs take account of it.
    pub(crate) fn resolve_constraints(
        &self,
        name: &Arc<str>,
        record: &GangRecord,
        pods: &[(&Key, &Arc<Pod>, &Constraints)],
    ) -> Vec<PodConstraints> {
        let members: Vec<Member<'_>> =
            pods.iter().map(|(_, pod, constraints)| Member { pod, constraints }).collect();
        if self.is_placed(name, record) {
            return self.constraints_when_placed(name, record, pods, &members);
        }
        let only_anti_affinity = !members.iter().any(|member| depends_on_cluster(member.pod));
        let mut resolved =
            match only_anti_affinity && self.cache.with_anti_affinity().next().is_none() {
                true => fixed_constraints(&members, &ClusterView::default()),
                false => {
                    let cluster = self.cluster_view(name, only_anti_affinity);
                    resolve(name, &members, &cluster, &CachedVolumes { host: self, gang: name })
                }
            };
        self.resolve_preferences(name, &members, &mut resolved);
        resolved
    }

    /// Adds the preferences of a gang's members as they resolve now. Members are mostly alike, and those with the same
    /// preferred terms are resolved once.
    fn resolve_preferences(
        &self,
        name: &Arc<str>,
        members: &[Member<'_>],
        resolved: &mut [PodConstraints],
    ) {
        if !members.iter().any(|member| preferred::has_preferred_terms(member.pod)) {
            return;
        }
        let (namespace_labels, levels) = (self.namespace_labels(), self.world.topology().levels());
        let mut known: Vec<(Vec<PreferredTerm>, &Constraints)> = Vec::new();
        let mut which: Vec<usize> = Vec::with_capacity(members.len());
        for member in members {
            let one = (preferred::preferred_terms(member, &namespace_labels), member.constraints);
            let place = known.iter().position(|known| *known == one);
            which.push(place.unwrap_or_else(|| {
                known.push(one);
                known.len() - 1
            }));
        }
        let selectors: Vec<&PodSelector> =
            known.iter().flat_map(|(terms, _)| terms).map(|one| &one.selector).collect();
        let cluster = self.cluster_view_of(name, &selectors, namespace_labels);
        let preferences: Vec<PodConstraints> = known
            .iter()
            .enumerate()
            .map(|(at, (terms, constraints))| {
                let first =
                    which.iter().position(|of| *of == at).expect("a member has these terms");
                let member = Member { pod: members[first].pod, constraints };
                let mut preferences = PodConstraints::default();
                preferred::add_spread(terms, levels, &mut preferences);
                preferred::add_preferences(
                    terms,
                    &member,
                    members,
                    &cluster,
                    levels,
                    &mut preferences,
                );
                preferences
            })
            .collect();
        for (resolved, at) in resolved.iter_mut().zip(which) {
            resolved.set_preferences(&preferences[at]);
        }
    }

    /// Whether a gang has preferred terms, which may resolve differently by now.
    pub(crate) fn has_preferences(&self, record: &GangRecord) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| preferred::has_preferred_terms(pod))
    }

    /// Whether two versions of a gang differ only in preferences.
    pub(crate) fn only_preferences_differ(was: &GangSpec, is: &GangSpec) -> bool {
        preferred::differ_only_in_preferences(was, is)
    }

    /// Whether a gang has been placed: it has seats, or a placement that is written.
    pub(crate) fn is_placed(&self, name: &str, record: &GangRecord) -> bool {
        match self.world.gang_named(name).and_then(|id| self.world.gang(id)) {
            Some(gang) => !matches!(gang.phase, Phase::Waiting | Phase::Assembling(_)),
            None => !self.pods_by_state(record).bound.is_empty() || self.has_placement(name),
        }
    }

    /// The constraints that members were placed by. A later member gets those of a member with the same node
    /// constraints; of a gang that was found already placed after a restart, only the fixed constraints are known.
    fn constraints_when_placed(
        &self,
        name: &Arc<str>,
        record: &GangRecord,
        pods: &[(&Key, &Arc<Pod>, &Constraints)],
        members: &[Member<'_>],
    ) -> Vec<PodConstraints> {
        let cluster = ClusterView {
            namespace_labels: self.cluster_view("", true).namespace_labels,
            ..ClusterView::default()
        };
        let mut fixed = fixed_constraints(members, &cluster);
        let is_found = pods.iter().any(|(key, _, _)| !record.pod_constraints.contains_key(*key));
        if is_found && members.iter().any(|member| !claims::claims(member.pod).is_empty()) {
            let lister = CachedVolumes { host: self, gang: name };
            static_volumes::restore_static_volumes(members, &lister, &mut fixed);
            let pods: Vec<&Pod> = members.iter().map(|member| member.pod).collect();
            attach_limits::add_attachments(name, &pods, &[], &lister, &mut fixed);
        }
        let levels = self.world.topology().levels();
        for (member, resolved) in members.iter().zip(&mut fixed) {
            preferred::add_spread(
                &preferred::preferred_terms(member, &cluster.namespace_labels),
                levels,
                resolved,
            );
        }
        // A pod that replaces a missing one gets the constraints of that one.
        let is_here = |key: &Key| pods.iter().any(|(here, _, _)| *here == key);
        let mut left: Vec<&PodConstraints> = record
            .pod_constraints
            .iter()
            .filter(|(key, _)| !is_here(key))
            .map(|(_, resolved)| resolved)
            .collect();
        let one =
            |((key, _, constraints), fixed): (&(&Key, &Arc<Pod>, &Constraints), PodConstraints)| {
                let alike = || {
                    let alike = pods.iter().filter(|(_, _, theirs)| theirs == constraints);
                    alike.filter_map(|(key, _, _)| record.pod_constraints.get(*key)).next()
                };
                let same = alike().filter(|resolved| resolved.distributed_over.is_none());
                let known =
                    record.pod_constraints.get(*key).or(same).or_else(|| left.pop()).or_else(alike);
                let mut resolved = known.cloned().unwrap_or(fixed);
                resolved.wait_reason = None;
                resolved
            };
        pods.iter().zip(fixed).map(one).collect()
    }

    /// Whether a gang's constraints must be resolved again before it is admitted.
    pub(crate) fn constraints_may_change(&self, record: &GangRecord) -> bool {
        let pods = || record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        self.cache.with_anti_affinity().next().is_some()
            || record.pod_constraints.values().any(|resolved| !resolved.is_fixed())
            || pods().any(|pod| depends_on_cluster(pod))
    }

    /// Adds a gang's tokens to its requests by name, and records whether it is to be resolved again when other pods
    /// change.
    pub(crate) fn register_tokens(&mut self, name: &Arc<str>, built: &mut BuiltGang) {
        let kinds =
            built.pod_constraints.values().flat_map(|resolved| resolved.tokens.keys().cloned());
        let known = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let asked = known.into_iter().flat_map(|gang| &gang.spec.roles);
        let asked = asked.flat_map(|role| role.request.amounts.clone()).collect();
        self.constraints.tokens.set_used(name, kinds.collect::<Vec<_>>(), &asked);
        for (key, role) in &built.pod_roles {
            let Some(resolved) = built.pod_constraints.get(key) else { continue };
            let amounts = &mut built.spec.roles[usize::from(*role)].request.amounts;
            for (kind, amount) in &resolved.tokens {
                let token = self.constraints.tokens.name_of(kind).expect("just wanted");
                let taken = amounts.entry(token).or_default();
                *taken = (*amount).max(*taken);
            }
        }
        if built.pod_constraints.values().any(PodConstraints::uses_volumes) {
            self.constraints.gangs_with_volumes.insert(name.clone());
        } else {
            self.constraints.gangs_with_volumes.remove(name);
        }
        let pods = built.pod_roles.keys().filter_map(|key| self.cache.pods.get(key));
        let constraints_may_change = pods.into_iter().any(|pod| depends_on_cluster(pod))
            || built.pod_constraints.values().any(|resolved| !resolved.is_fixed());
        if constraints_may_change {
            self.constraints.watching.insert(name.clone());
        } else {
            self.constraints.watching.remove(name);
        }
    }

    /// What a pod that is not a gang member takes of the tokens in use.
    pub(crate) fn foreign_tokens(&self, pod: &Pod) -> Vec<(Arc<str>, u64)> {
        let takes = host_ports::tokens(&pod.spec).into_iter();
        takes
            .filter_map(|(kind, amount)| Some((self.constraints.tokens.name_of(&kind)?, amount)))
            .collect()
    }

    /// Turns members' pod affinity to each other into the gang's closeness.
    ///
    /// # Errors
    /// When the planner does not support it, with the reason to wait.
    pub(crate) fn apply_closeness(
        &self,
        spec: &mut GangSpec,
        resolved: &BTreeMap<Key, PodConstraints>,
    ) -> Result<(), String> {
        let levels = self.world.topology().levels();
        for key in resolved.values().filter_map(|resolved| resolved.required_closeness.as_ref()) {
            let Some(level) = levels.find(key) else {
                return Err(format!(
                    "required pod affinity among members by {key}, which is no level of the topology"
                ));
            };
            let narrower = match &spec.closeness {
                Some(Closeness::Required(required)) => {
                    levels.find(required).is_some_and(|required| required >= level)
                }
                Some(Closeness::Preferred(_)) | None => false,
            };
            if !narrower {
                spec.closeness = Some(Closeness::Required(levels.name(level).into()));
            }
        }
        // The gang's own closeness takes precedence over what its pods prefer.
        let terms = resolved.values().find_map(|resolved| resolved.preferred_closeness.as_ref());
        if let (None, Some(level)) = (&spec.closeness, terms.and_then(|key| levels.find(key))) {
            spec.closeness = Some(Closeness::Preferred(levels.name(level).into()));
        }
        match resolved.values().find_map(|resolved| resolved.needs_all_members.as_ref()) {
            Some(key) if !spec.is_rigid() => {
                Err(format!("topology spread over {key} of an elastic gang is not supported"))
            }
            _ => Ok(()),
        }
    }
}
