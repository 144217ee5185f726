//! Builds the spec of a gang from its pods, its group object and its owner's templates.
//!
//! Nothing is written present, and nothing is remembered: the same objects and the same record give the same gang. The reason
//! why pods are not a gang yet is the `Err` of each function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::runtime::events::EventType;
use muster_api::assemble::{Assembled, Member, assemble};
use muster_api::dialects::{self, Dialect, GroupRef, Level, Terms};
use muster_api::pod::NEVER;
use muster_api::workloads::{self, WorkloadRole};
use muster_core::constraint::Constraints;
use muster_core::gang::{Disruption, Request};
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::cache::store::Key;
use crate::cache::watched_objects::read_manifest;
use crate::constraints::pod_constraints::{PodConstraints, match_no_node};
use crate::gang::identity::{BuiltGang, GangSource, MERGED_SUFFIX};
use crate::gang::merged_groups::group_of;
use crate::gang::pod_templates::create::INDEX;
use crate::gang::record::GangRecord;
use crate::gang::tenancy::priority::Priority;
use crate::host::Host;
use crate::objects::pod::Pod;

/// Labels or annotations.
pub(crate) type StringMap = BTreeMap<String, String>;

/// A pod of a gang, with its request and constraints parsed once.
pub(crate) struct MemberPod {
    pub(crate) key: Key,
    pub(crate) pod: Arc<Pod>,
    request: Request,
    constraints: Constraints,
    role: Option<String>,
    index: Option<u32>,
    done: bool,
}

/// The terms of a gang that concern it as a whole, and not single members.
#[derive(Debug, Default)]
pub(crate) struct GroupTerms {
    pub(crate) priority: Priority,
    /// Whether it preempts no other gang.
    pub(crate) never_preempts: bool,
    /// What its groups ask for that Muster does not support, and that they can do without.
    pub(crate) unsupported: Vec<Arc<str>>,
    /// The group of each role, where the gang is merged from several groups.
    pub(crate) role_groups: Vec<GroupRef>,
}

impl GroupTerms {
    /// Whether a pod may have a role, by index in the spec.
    fn allows(&self, role: usize, pod: &Pod) -> bool {
        self.role_groups.get(role).is_none_or(|of| group_of(pod).is_some_and(|named| named == *of))
    }
}

impl Host {
    /// The gang of a record, or why its pods are none. Terminating pods do not count: their owner creates others, and may
    /// have done so already. Where too few are left without them they count, since their seats are still taken.
    pub(crate) fn build_gang(&self, record: &GangRecord) -> Result<BuiltGang, String> {
        if let GangSource::Request { .. } = record.source {
            return self.build_request(&record.source).map_err(|why| why.to_string());
        }
        let (present, terminating) = self.present_and_terminating(record);
        match self.build_from_pods(record, &present, &terminating) {
            Err(why) if !terminating.is_empty() => {
                let all: Vec<Key> = present.into_iter().chain(terminating).collect();
                self.build_from_pods(record, &all, &[]).map_err(|_| why)
            }
            built => built,
        }
    }

    /// The pods of a gang that stay, and those that are on a node and terminating.
    fn present_and_terminating(&self, record: &GangRecord) -> (Vec<Key>, Vec<Key>) {
        let (mut present, mut terminating) = (Vec::new(), Vec::new());
        for key in &record.pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            match (pod.is_terminating() && !pod.is_finished(), pod.node()) {
                (false, _) => present.push(key.clone()),
                (true, Some(_)) => terminating.push(key.clone()),
                (true, None) => {}
            }
        }
        (present, terminating)
    }

    /// Builds the gang from the pods that stay (`present`); those that terminate (`terminating`) only keep their roles.
    fn build_from_pods(
        &self,
        record: &GangRecord,
        present: &[Key],
        terminating: &[Key],
    ) -> Result<BuiltGang, String> {
        self.check_features(record)?;
        self.check_kinds_listed(record)?;
        self.check_name_allowed(record)?;
        self.check_owner_observed(record)?;
        self.check_stages_observed(record)?;
        let templates = self.template_gang(record);
        if let Some(why) = templates.and_then(|gang| self.templates_exceed_limit(&gang)) {
            return Err(why);
        }
        if self.is_creating_members(record) {
            return Err("its members are being created".to_owned());
        }
        let (mut members, planned_from_template) = self.member_pods(record, present)?;
        let (pod_constraints, mut wait_reason) =
            self.resolve_member_constraints(record, &mut members);
        let is_on_node = |member: &MemberPod| !member.done && member.pod.node().is_some();
        let runs = !terminating.is_empty() || members.iter().any(is_on_node);
        let (mut assembled, terms) = match &record.source {
            GangSource::Merged(groups) => self.merge_groups(record, groups, &mut members, runs)?,
            _ => self.assemble_group(record, &members)?,
        };
        let sizes = assembled.spec.roles.iter().map(|role| u64::from(role.max.max(role.min)));
        if let Some(why) = self.config.over_member_limit(sizes.sum()).filter(|_| !runs) {
            return Err(why);
        }
        // A gang that runs keeps its spec while a member is recreated.
        if assembled.absent > 0 && !runs && !self.may_have_missing_members(record) {
            let (exist, absent) = (members.len(), assembled.absent);
            return Err(format!("{exist} of {} members exist", exist as u32 + absent));
        }
        if !self.may_have_missing_members(record) {
            limit_to_existing(&mut assembled);
        }
        assembled.spec.disruption.grace = longest_grace(&members);
        self.apply_gang_manifest(record, &members, &mut assembled)?;
        if let Err(why) = self.apply_closeness(&mut assembled.spec, &pod_constraints) {
            assembled.spec.roles.iter_mut().for_each(|role| match_no_node(&mut role.constraints));
            wait_reason.get_or_insert(why);
        }
        assembled.spec.priority = terms.priority.value;
        assembled.spec.priority_is_declared = terms.priority.is_declared;
        assembled.spec.user =
            self.user_of(&record.source, members.first().map(|member| &*member.pod));
        assembled.spec.disruption.never_preempts |= terms.never_preempts;
        let (mut pod_roles, mut pod_ranks) = (BTreeMap::new(), BTreeMap::new());
        for (role, places) in assembled.roles.iter().enumerate() {
            let first = places.first().and_then(|at| pod_constraints.get(&members[*at].key));
            first.into_iter().for_each(|constraints| {
                constraints.apply_preferences_to(&mut assembled.spec.roles[role]);
            });
            for (rank, at) in places.iter().enumerate() {
                pod_roles.insert(members[*at].key.clone(), role as u16);
                pod_ranks.insert(members[*at].key.clone(), rank as u32);
            }
        }
        for member in self.member_pods(record, terminating)?.0 {
            let mut roles = assembled.spec.roles.iter().enumerate();
            let role = roles.position(|(at, role)| {
                role.request == member.request && terms.allows(at, &member.pod)
            });
            pod_roles.extend(role.map(|role| (member.key, role as u16)));
        }
        let Assembled { spec, absent: missing_members, wanted: wanted_members, .. } = assembled;
        let mut unsupported = terms.unsupported;
        unsupported.extend(self.ignored_user(record, &spec.user));
        Ok(BuiltGang {
            spec,
            pod_roles,
            pod_ranks,
            pod_constraints,
            wait_reason,
            planned_from_template,
            missing_members,
            wanted_members,
            unsupported,
        })
    }

    /// Refuses a Gang that has the name of a merged gang: each gang has its record under its name.
    fn check_name_allowed(&self, record: &GangRecord) -> Result<(), String> {
        match &record.source {
            GangSource::Gang { name, .. } if name.ends_with(MERGED_SUFFIX) => Err(format!(
                "{}: names that end in {MERGED_SUFFIX} are those of gangs of several groups",
                record.source
            )),
            _ => Ok(()),
        }
    }

    /// Assembles the gang of one group.
    fn assemble_group(
        &self,
        record: &GangRecord,
        pods_of_group: &[MemberPod],
    ) -> Result<(Assembled, GroupTerms), String> {
        let pods: Vec<&Key> = record.pods.iter().collect();
        let terms = self.terms(&record.source, record, &pods)?;
        if let Some(why) = unsupported_requirement(&terms) {
            return Err(why);
        }
        let templates = self.templates(record)?;
        let members: Vec<Member<'_>> = pods_of_group.iter().map(MemberPod::as_member).collect();
        let name = record.source.gang_name();
        let gpus = &self.config.gpus;
        let assembled = assemble(&name, &terms, &members, templates.as_deref(), gpus);
        let never_preempts = self.never_preempts(&pods, &terms);
        let priority = self.priority(record, &pods, &terms);
        let mut unsupported = terms.ignored.clone();
        unsupported.extend(self.ignored_priority(&terms, priority));
        let terms = GroupTerms { priority, never_preempts, unsupported, role_groups: Vec::new() };
        Ok((assembled.map_err(|why| why.to_string())?, terms))
    }

    /// Resolves the constraints of pods and adds them; also the reason why the pods fit nowhere now, if there is one.
    fn resolve_member_constraints(
        &self,
        record: &GangRecord,
        members: &mut [MemberPod],
    ) -> (BTreeMap<Key, PodConstraints>, Option<String>) {
        let live = members.iter().filter(|member| !member.done);
        let pods = live.map(|member| (&member.key, &member.pod, &member.constraints));
        let pods: Vec<_> = pods.collect();
        let resolved = self.resolve_constraints(&record.source.gang_name(), record, &pods);
        let keys: Vec<Key> = pods.iter().map(|(key, _, _)| (*key).clone()).collect();
        let mut resolved: BTreeMap<Key, PodConstraints> = keys.into_iter().zip(resolved).collect();
        for member in members {
            if let Some(resolved) = resolved.get_mut(&member.key) {
                resolved.apply_to(&mut member.constraints);
            }
        }
        let wait_reason =
            resolved.values().find_map(PodConstraints::wait_reason).map(str::to_owned);
        (resolved, wait_reason)
    }

    /// The members that these pods of a gang are, and whether some were added from a template.
    fn member_pods(
        &self,
        record: &GangRecord,
        pods: &[Key],
    ) -> Result<(Vec<MemberPod>, bool), String> {
        let mut members = Vec::with_capacity(pods.len());
        let settled = self.is_placed(&record.source.gang_name(), record);
        let mut failed_indexes = BTreeSet::new();
        for key in pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            if let Some(index) = self.failed_index_of(pod)
                && failed_indexes.insert(index)
            {
                // Several pods may have failed at the index, and none is recreated.
                members.push(MemberPod { done: true, ..self.member_pod(record, key, pod)? });
                continue;
            }
            if pod.status.phase == "Failed" {
                continue; // its owner creates another
            }
            if self.is_to_be_replaced(record, key, pod) {
                continue; // another is created: its work is not done
            }
            if pod.has_foreign_gate() {
                continue; // another scheduling gate holds it
            }
            if pod.node().is_none() && !self.is_served(key, pod) && !settled {
                return Err(format!("pod {key} is not gated, and its own scheduler places it"));
            }
            members.push(self.member_pod(record, key, pod)?);
        }
        let to_come = self.pods_to_come(record, settled, members.len())?;
        let from_template = !to_come.is_empty();
        for (key, pod) in to_come {
            members.push(self.member_pod(record, &key, &pod)?);
        }
        Ok((members, from_template))
    }

    fn member_pod(
        &self,
        record: &GangRecord,
        key: &Key,
        pod: &Arc<Pod>,
    ) -> Result<MemberPod, String> {
        let pod = &self.without_added_selector(key, pod);
        let (labels, annotations) = labels_and_annotations(pod);
        let wrong = |why: Vec<String>| format!("pod {key}: {}", why.join("; "));
        let by_owner = match &record.source {
            GangSource::Owner { kind, .. } => workloads::role_of_pod(*kind, labels),
            _ => {
                self.workload_of(record).and_then(|(kind, _)| workloads::role_of_pod(kind, labels))
            }
        };
        let role = dialects::role_of(labels, annotations).or(by_owner).map(str::to_owned);
        let index = match &record.source {
            GangSource::Owner { kind, .. } => workloads::index_of_pod(*kind, labels),
            GangSource::Gang { .. } => labels.get(INDEX).and_then(|index| index.parse().ok()),
            _ => None,
        };
        Ok(MemberPod {
            key: key.clone(),
            pod: pod.clone(),
            request: pod.spec.request(annotations, &self.config.gpus).map_err(wrong)?,
            constraints: pod.spec.constraints().map_err(wrong)?,
            role,
            index,
            done: pod.has_succeeded(),
        })
    }

    /// The terms of a group, from its object and its pods. The group may be one of several that form a gang.
    pub(crate) fn terms(
        &self,
        source: &GangSource,
        record: &GangRecord,
        pods: &[&Key],
    ) -> Result<Terms, String> {
        let wrong = |why: Vec<String>| format!("{source}: {}", why.join("; "));
        let mut is_declared = true;
        let (dialect, by_object) = match source {
            // Each of several merged groups has its own terms.
            GangSource::Merged(_) | GangSource::Pod { .. } | GangSource::Request { .. } => {
                return Ok(Terms::default());
            }
            GangSource::Owner { .. } => {
                (Dialect::Muster, self.terms_of_job(record).map_err(wrong)?)
            }
            GangSource::Gang { .. } => {
                let object = self.source_object(source).map(|(_, object)| &object.data);
                is_declared = object.is_some();
                let terms =
                    object.map(|data| dialects::terms(Dialect::Muster, data, &self.config.gpus));
                (Dialect::Muster, terms.transpose().map_err(wrong)?.unwrap_or_default())
            }
            GangSource::Group(of) => match self.source_object(source) {
                Some((_, object)) => {
                    let terms = dialects::terms_of(of, &with_metadata(object), &self.config.gpus);
                    (of.dialect, terms.map_err(wrong)?)
                }
                None if needs_object(of.dialect) => {
                    return Err(format!("{source} does not exist"));
                }
                None => {
                    is_declared = false;
                    (of.dialect, Terms::default())
                }
            },
        };
        let mut terms = by_object;
        for key in pods.iter().take(1) {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            let (labels, annotations) = labels_and_annotations(pod);
            let of_pod = dialects::pod_terms(dialect, labels, annotations).map_err(wrong)?;
            terms = match dialect {
                Dialect::Koordinator => of_pod.over(terms),
                _ => terms.over(of_pod),
            };
        }
        // A gang that runs stays one, also when the object that declared it was deleted.
        let runs = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        if !is_declared && !is_sized(&terms) && !record.pods.iter().any(runs) {
            return Err(format!(
                "{source} does not exist, and its pods do not say how many they are"
            ));
        }
        Ok(terms)
    }

    /// The templates of a gang's workload.
    pub(crate) fn templates(
        &self,
        record: &GangRecord,
    ) -> Result<Option<Vec<WorkloadRole>>, String> {
        let Some((kind, object)) = self.workload_of(record) else { return Ok(None) };
        let Some(served) = self.sources.resource(KindRole::Workload(kind)) else {
            return Ok(None);
        };
        let mut object = with_metadata(object);
        object["apiVersion"] = json!(served.api_version);
        object["kind"] = json!(served.kind);
        let roles = workloads::roles(&object);
        roles.map(Some).map_err(|why| format!("{}: {}", record.source, why.join("; ")))
    }

    /// Applies the fields that only a Gang has: expected duration, deadline, disruption, scaling.
    fn apply_gang_manifest(
        &self,
        record: &GangRecord,
        members: &[MemberPod],
        assembled: &mut Assembled,
    ) -> Result<(), String> {
        let GangSource::Gang { .. } = record.source else { return Ok(()) };
        let Some((_, object)) = self.source_object(&record.source) else { return Ok(()) };
        let Some(manifest) = read_manifest("Gang", object)?.gangs.pop() else { return Ok(()) };
        let declared = manifest.spec;
        let Assembled { spec, wanted, .. } = assembled;
        spec.closeness = declared.closeness;
        spec.provisioning = declared.provisioning;
        spec.expected_duration = declared.expected_duration;
        spec.deadline = declared.deadline;
        spec.cost_of_waiting = declared.cost_of_waiting;
        let grace = Some(declared.disruption.grace).filter(|grace| *grace > Span::ZERO);
        let grace = grace.unwrap_or(spec.disruption.grace);
        let never_preempts = declared.disruption.never_preempts || spec.disruption.never_preempts;
        spec.disruption = Disruption { grace, never_preempts, ..declared.disruption };
        spec.scaling = declared.scaling;
        let creates_pods = self.template_gang(record).is_some();
        for (role, wanted) in spec.roles.iter_mut().zip(wanted) {
            let most = declared.roles.iter().find(|one| one.name == role.name).map(|one| one.max);
            let done = members.iter().filter(|member| member.done && member.has_role(&role.name));
            let left = most.unwrap_or(0).saturating_sub(done.count() as u32);
            *wanted = most;
            if creates_pods {
                // Muster creates them, so they exist when they have seats.
                role.max = role.max.max(left);
            }
        }
        Ok(())
    }

    /// Records an Event for each thing that a gang asks for and Muster does not support.
    pub(crate) fn record_unsupported(&mut self, name: &Arc<str>, unsupported: &[Arc<str>]) {
        for (at, words) in unsupported.iter().enumerate() {
            tracing::info!(gang = &**name, words = &**words, "not supported, planned without it");
            let action = format!("TakeIn{at}");
            self.record_event(name, EventType::Warning, ("UnsupportedField", &action), words);
        }
    }

    /// Whether a gang preempts no other: by its group, by the PriorityClass that its group names, or by one of its pods, on
    /// which the API server writes the `preemptionPolicy` of the pod's own class.
    pub(crate) fn never_preempts(&self, pods: &[&Key], terms: &Terms) -> bool {
        let policy = self.class_of(terms).and_then(|class| class.data.get("preemptionPolicy"));
        let mut pods = pods.iter().filter_map(|key| self.cache.pods.get(key));
        terms.never_preempts
            || policy.and_then(Value::as_str) == Some(NEVER)
            || pods.any(|pod| pod.spec.never_preempts())
    }

    /// The PriorityClass that terms name, if it exists.
    pub(crate) fn class_of(&self, terms: &Terms) -> Option<&DynamicObject> {
        let classes = self.cache.others.get(&self.sources.of(KindRole::PriorityClass)?)?;
        classes.get(terms.priority_class.as_deref()?).map(|class| &**class)
    }
}

/// Seconds: Kubernetes' default for `terminationGracePeriodSeconds`.
const GRACE: u32 = 30;

/// The grace period of a gang that declares none: the longest of its pods.
fn longest_grace(members: &[MemberPod]) -> Span {
    let grace = |member: &MemberPod| member.pod.spec.termination_grace_period_seconds;
    let seconds = members.iter().map(|member| grace(member).unwrap_or(GRACE.into())).max();
    Span::secs(u64::try_from(seconds.unwrap_or(0)).unwrap_or(0))
}

/// What a group requires and Muster does not support. The gang waits with this reason: without it the gang would start,
/// and not as it was meant to.
pub(crate) fn unsupported_requirement(terms: &Terms) -> Option<String> {
    if let Some(Level::Tier(tier)) = terms.required {
        return Some(format!(
            "it must stay within tier {tier}, and no level of the Topology is known by that number: \
             name the level (`highestTierName`), or ask for it softly"
        ));
    }
    terms.unsupported.first().map(ToString::to_string)
}

/// Limits each role to the members that exist. A workload may declare more pods than it has, and may never create them;
/// seats are for pods that exist, and the gang grows when there are more.
fn limit_to_existing(assembled: &mut Assembled) {
    for (role, members) in assembled.spec.roles.iter_mut().zip(&assembled.roles) {
        let exist = u32::try_from(members.len()).unwrap_or(u32::MAX);
        role.max = role.max.min(exist.max(role.min));
    }
}

impl MemberPod {
    fn has_role(&self, role: &str) -> bool {
        self.role.as_deref() == Some(role)
    }

    pub(crate) fn as_member(&self) -> Member<'_> {
        Member {
            name: &self.key,
            role: self.role.as_deref(),
            index: self.index,
            request: &self.request,
            constraints: &self.constraints,
            done: self.done,
        }
    }
}

/// Whether terms declare how many members there are. Pods may be observed before their group, and the first pod is not the
/// whole gang.
fn is_sized(terms: &Terms) -> bool {
    terms.min.is_some()
        || terms.total.is_some()
        || terms.min_resources.is_some()
        || !terms.min_by_role.is_empty()
}

/// Whether a group of a dialect needs its object. Groups of the others can be declared by labels and annotations alone.
fn needs_object(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Muster | Dialect::Koordinator | Dialect::KubeBatch)
}

/// An object with its metadata, as its dialect's reader expects it.
pub(crate) fn with_metadata(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    value["metadata"] = serde_json::to_value(&object.metadata).unwrap_or_default();
    value
}

/// The labels and annotations of a pod.
pub(crate) fn labels_and_annotations(pod: &Pod) -> (&StringMap, &StringMap) {
    static NONE: StringMap = StringMap::new();
    let or_none = |map: &'static StringMap| map;
    let labels = pod.metadata.labels.as_ref().unwrap_or_else(|| or_none(&NONE));
    (labels, pod.metadata.annotations.as_ref().unwrap_or(&NONE))
}
