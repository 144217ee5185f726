//! Gangs are gathered: from what pods say of themselves, what their group says, and what made them.

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

use crate::cache::kinds::{BuiltGang, GangSource, JOINED, KindRole};
use crate::cache::store::Key;
use crate::cache::watched_objects::read;
use crate::constraints::pod_constraints::{PodConstraints, nowhere};
use crate::gang::merged_groups::group_of;
use crate::gang::pod_templates::create::INDEX;
use crate::gang::registry::GangRecord;
use crate::gang::tenancy::priority::Priority;
use crate::host::Host;
use crate::objects::pod::Pod;

pub(crate) type Marks = BTreeMap<String, String>;

/// A pod that is part of a gang, taken apart once.
pub(crate) struct Part {
    pub(crate) key: Key,
    pub(crate) pod: Arc<Pod>,
    request: Request,
    constraints: Constraints,
    role: Option<String>,
    index: Option<u32>,
    done: bool,
}

/// What groups say that is not of their members.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) priority: Priority,
    /// Whether nobody is to be stopped for it.
    pub(crate) gentle: bool,
    /// What they ask for that Muster does not do, and can be done without.
    pub(crate) unheard: Vec<Arc<str>>,
    /// The group that each role is of, where the gang is of several.
    pub(crate) groups: Vec<GroupRef>,
}

impl Said {
    /// Whether a pod may play a role, by its place in the list.
    fn is_for(&self, role: usize, pod: &Pod) -> bool {
        self.groups.get(role).is_none_or(|of| group_of(pod).is_some_and(|named| named == *of))
    }
}

impl Host {
    /// A gang of pods, or why they are none. Those that are leaving are not counted: who made them makes others, and may
    /// have done so already. Where too few are left without them they are, since nobody may sit where they still are.
    pub(crate) fn gather(&self, group: &GangRecord) -> Result<BuiltGang, String> {
        if let GangSource::Request { .. } = group.origin {
            return self.build_request(&group.origin).map_err(|why| why.to_string());
        }
        let (here, leaving) = self.here_and_leaving(group);
        match self.build_from(group, &here, &leaving) {
            Err(why) if !leaving.is_empty() => {
                let all: Vec<Key> = here.into_iter().chain(leaving).collect();
                self.build_from(group, &all, &[]).map_err(|_| why)
            }
            gathered => gathered,
        }
    }

    /// The pods of a gang that are there to stay, and those that are on a node and leaving it.
    fn here_and_leaving(&self, group: &GangRecord) -> (Vec<Key>, Vec<Key>) {
        let (mut here, mut leaving) = (Vec::new(), Vec::new());
        for key in &group.pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            match (pod.is_leaving() && !pod.is_over(), pod.node()) {
                (false, _) => here.push(key.clone()),
                (true, Some(_)) => leaving.push(key.clone()),
                (true, None) => {}
            }
        }
        (here, leaving)
    }

    fn build_from(
        &self,
        group: &GangRecord,
        here: &[Key],
        leaving: &[Key],
    ) -> Result<BuiltGang, String> {
        self.has_its_features(group)?;
        self.is_listed(group)?;
        self.has_own_name(group)?;
        self.owner_is_seen(group)?;
        self.stages_are_seen(group)?;
        let templates = self.templates_of(group);
        if let Some(why) = templates.and_then(|gang| self.too_many_templates(&gang)) {
            return Err(why);
        }
        if self.is_being_made(group) {
            return Err("its members are being made".to_owned());
        }
        let (mut parts, imagined) = self.parts(group, here)?;
        let (tied, mut waits) = self.tie_parts(group, &mut parts);
        let is_somewhere = |part: &Part| !part.done && part.pod.node().is_some();
        let runs = !leaving.is_empty() || parts.iter().any(is_somewhere);
        let (mut assembled, said) = match &group.origin {
            GangSource::Joined(groups) => self.unite(group, groups, &mut parts, runs)?,
            _ => self.assemble(group, &parts)?,
        };
        let members = assembled.spec.roles.iter().map(|role| u64::from(role.max.max(role.min)));
        if let Some(why) = self.config.too_many(members.sum()).filter(|_| !runs) {
            return Err(why);
        }
        // Who runs already stays what it was while somebody is made again.
        if assembled.absent > 0 && !runs && !self.may_be_absent(group) {
            let (exist, absent) = (parts.len(), assembled.absent);
            return Err(format!("{exist} of {} members exist", exist as u32 + absent));
        }
        if !self.may_be_absent(group) {
            no_more_than_exist(&mut assembled);
        }
        assembled.spec.disruption.grace = longest_grace(&parts);
        self.with_manifest(group, &parts, &mut assembled)?;
        if let Err(why) = self.gather_close(&mut assembled.spec, &tied) {
            assembled.spec.roles.iter_mut().for_each(|role| nowhere(&mut role.constraints));
            waits.get_or_insert(why);
        }
        assembled.spec.priority = said.priority.value;
        assembled.spec.priority_is_declared = said.priority.is_declared;
        assembled.spec.user = self.user_of(&group.origin, parts.first().map(|part| &*part.pod));
        assembled.spec.disruption.gentle |= said.gentle;
        let (mut roles, mut ranks) = (BTreeMap::new(), BTreeMap::new());
        for (role, members) in assembled.roles.iter().enumerate() {
            let first = members.first().and_then(|at| tied.get(&parts[*at].key));
            first.into_iter().for_each(|tied| tied.wish(&mut assembled.spec.roles[role]));
            for (rank, at) in members.iter().enumerate() {
                roles.insert(parts[*at].key.clone(), role as u16);
                ranks.insert(parts[*at].key.clone(), rank as u32);
            }
        }
        for part in self.parts(group, leaving)?.0 {
            let mut roles_now = assembled.spec.roles.iter().enumerate();
            let role = roles_now
                .position(|(at, role)| role.request == part.request && said.is_for(at, &part.pod));
            roles.extend(role.map(|role| (part.key, role as u16)));
        }
        let Assembled { spec, absent, wanted, .. } = assembled;
        let mut unheard = said.unheard;
        unheard.extend(self.unheard_user(group, &spec.user));
        Ok(BuiltGang { spec, roles, ranks, tied, waits, imagined, absent, wanted, unheard })
    }

    /// Whether a Gang is called as no gang of several groups can be: each has its record under its name.
    fn has_own_name(&self, group: &GangRecord) -> Result<(), String> {
        match &group.origin {
            GangSource::Gang { name, .. } if name.ends_with(JOINED) => Err(format!(
                "{}: names that end in {JOINED} are those of gangs of several groups",
                group.origin
            )),
            _ => Ok(()),
        }
    }

    /// One gang of the parts of one group.
    fn assemble(&self, group: &GangRecord, parts: &[Part]) -> Result<(Assembled, Said), String> {
        let pods: Vec<&Key> = group.pods.iter().collect();
        let terms = self.terms(&group.origin, group, &pods)?;
        if let Some(why) = unheard(&terms) {
            return Err(why);
        }
        let templates = self.templates(group)?;
        let members: Vec<Member<'_>> = parts.iter().map(Part::as_member).collect();
        let name = group.origin.gang_name();
        let gpus = &self.config.gpus;
        let assembled = assemble(&name, &terms, &members, templates.as_deref(), gpus);
        let gentle = self.never_preempts(&pods, &terms);
        let priority = self.priority(group, &pods, &terms);
        let mut unheard = terms.unheard.clone();
        unheard.extend(self.unheard_priority(&terms, priority));
        let said = Said { priority, gentle, unheard, groups: Vec::new() };
        Ok((assembled.map_err(|why| why.to_string())?, said))
    }

    /// Adds what the ties of pods come to, and says why they cannot go anywhere now, if that is so.
    fn tie_parts(
        &self,
        group: &GangRecord,
        parts: &mut [Part],
    ) -> (BTreeMap<Key, PodConstraints>, Option<String>) {
        let live = parts.iter().filter(|part| !part.done);
        let pods = live.map(|part| (&part.key, &part.pod, &part.constraints));
        let pods: Vec<_> = pods.collect();
        let tied = self.tie(&group.origin.gang_name(), group, &pods);
        let keys: Vec<Key> = pods.iter().map(|(key, _, _)| (*key).clone()).collect();
        let mut tied: BTreeMap<Key, PodConstraints> = keys.into_iter().zip(tied).collect();
        for part in parts {
            if let Some(tied) = tied.get_mut(&part.key) {
                tied.constrain(&mut part.constraints);
            }
        }
        let waits = tied.values().find_map(PodConstraints::waits).map(str::to_owned);
        (tied, waits)
    }

    /// These pods of a gang, and whether others are yet to come.
    fn parts(&self, group: &GangRecord, pods: &[Key]) -> Result<(Vec<Part>, bool), String> {
        let mut parts = Vec::with_capacity(pods.len());
        let settled = self.is_settled(&group.origin.gang_name(), group);
        let mut given_up = BTreeSet::new();
        for key in pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            if let Some(over) = self.part_given_up(pod)
                && given_up.insert(over)
            {
                // Several may have failed at it, and none comes back.
                parts.push(Part { done: true, ..self.part(group, key, pod)? });
                continue;
            }
            if pod.status.phase == "Failed" {
                continue; // it does not come back; who made it makes another
            }
            if self.is_made_after(group, key, pod) {
                continue; // its work is not done
            }
            if pod.is_held() {
                continue; // it is not there for anybody until it is let go
            }
            if pod.node().is_none() && !self.is_served(key, pod) && !settled {
                return Err(format!("pod {key} was let run, and is its own scheduler's to place"));
            }
            parts.push(self.part(group, key, pod)?);
        }
        let to_come = self.imagined(group, settled, parts.len())?;
        let imagined = !to_come.is_empty();
        for (key, pod) in to_come {
            parts.push(self.part(group, &key, &pod)?);
        }
        Ok((parts, imagined))
    }

    fn part(&self, group: &GangRecord, key: &Key, pod: &Arc<Pod>) -> Result<Part, String> {
        let pod = &self.as_made(key, pod);
        let (labels, annotations) = marks(pod);
        let wrong = |why: Vec<String>| format!("pod {key}: {}", why.join("; "));
        let by_owner = match &group.origin {
            GangSource::Owner { kind, .. } => workloads::role_of_pod(*kind, labels),
            _ => self.workload_of(group).and_then(|(kind, _)| workloads::role_of_pod(kind, labels)),
        };
        let role = dialects::role_of(labels, annotations).or(by_owner).map(str::to_owned);
        let index = match &group.origin {
            GangSource::Owner { kind, .. } => workloads::index_of_pod(*kind, labels),
            GangSource::Gang { .. } => labels.get(INDEX).and_then(|index| index.parse().ok()),
            _ => None,
        };
        Ok(Part {
            key: key.clone(),
            pod: pod.clone(),
            request: pod.spec.request(annotations, &self.config.gpus).map_err(wrong)?,
            constraints: pod.spec.constraints().map_err(wrong)?,
            role,
            index,
            done: pod.has_succeeded(),
        })
    }

    /// What a group says of itself, on its object and on its pods. It may be one of several that are a gang.
    pub(crate) fn terms(
        &self,
        origin: &GangSource,
        group: &GangRecord,
        pods: &[&Key],
    ) -> Result<Terms, String> {
        let wrong = |why: Vec<String>| format!("{origin}: {}", why.join("; "));
        let mut is_said = true;
        let (dialect, by_object) = match origin {
            // What groups say that start together, each says for itself.
            GangSource::Joined(_) | GangSource::Pod { .. } | GangSource::Request { .. } => {
                return Ok(Terms::default());
            }
            GangSource::Owner { .. } => (Dialect::Muster, self.terms_of_job(group).map_err(wrong)?),
            GangSource::Gang { .. } => {
                let object = self.object_of(origin).map(|(_, object)| &object.data);
                is_said = object.is_some();
                let terms =
                    object.map(|data| dialects::terms(Dialect::Muster, data, &self.config.gpus));
                (Dialect::Muster, terms.transpose().map_err(wrong)?.unwrap_or_default())
            }
            GangSource::Group(of) => match self.object_of(origin) {
                Some((_, object)) => {
                    let terms = dialects::terms_of(of, &whole(object), &self.config.gpus);
                    (of.dialect, terms.map_err(wrong)?)
                }
                None if needs_object(of.dialect) => {
                    return Err(format!("{origin} does not exist"));
                }
                None => {
                    is_said = false;
                    (of.dialect, Terms::default())
                }
            },
        };
        let mut terms = by_object;
        for key in pods.iter().take(1) {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            let (labels, annotations) = marks(pod);
            let said = dialects::pod_terms(dialect, labels, annotations).map_err(wrong)?;
            terms = match dialect {
                Dialect::Koordinator => said.over(terms),
                _ => terms.over(said),
            };
        }
        // Who runs already is a gang, whoever has removed what said so.
        let runs = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        if !is_said && !is_sized(&terms) && !group.pods.iter().any(runs) {
            return Err(format!(
                "{origin} does not exist, and its pods do not say how many they are"
            ));
        }
        Ok(terms)
    }

    /// The templates of a gang's workload.
    pub(crate) fn templates(
        &self,
        group: &GangRecord,
    ) -> Result<Option<Vec<WorkloadRole>>, String> {
        let Some((kind, object)) = self.workload_of(group) else { return Ok(None) };
        let Some(served) = self.sources.resource(KindRole::Workload(kind)) else {
            return Ok(None);
        };
        let mut object = whole(object);
        object["apiVersion"] = json!(served.api_version);
        object["kind"] = json!(served.kind);
        let roles = workloads::roles(&object);
        roles.map(Some).map_err(|why| format!("{}: {}", group.origin, why.join("; ")))
    }

    /// What only a Gang can say: how long it lasts, until when it should be done, what may be done to it.
    fn with_manifest(
        &self,
        group: &GangRecord,
        parts: &[Part],
        assembled: &mut Assembled,
    ) -> Result<(), String> {
        let GangSource::Gang { .. } = group.origin else { return Ok(()) };
        let Some((_, object)) = self.object_of(&group.origin) else { return Ok(()) };
        let Some(manifest) = read("Gang", object)?.gangs.pop() else { return Ok(()) };
        let said = manifest.spec;
        let Assembled { spec, wanted, .. } = assembled;
        spec.closeness = said.closeness;
        spec.provisioning = said.provisioning;
        spec.expected_duration = said.expected_duration;
        spec.deadline = said.deadline;
        spec.cost_of_waiting = said.cost_of_waiting;
        let grace = Some(said.disruption.grace).filter(|grace| *grace > Span::ZERO);
        let grace = grace.unwrap_or(spec.disruption.grace);
        let gentle = said.disruption.gentle || spec.disruption.gentle;
        spec.disruption = Disruption { grace, gentle, ..said.disruption };
        spec.scaling = said.scaling;
        let is_made_here = self.templates_of(group).is_some();
        for (role, wanted) in spec.roles.iter_mut().zip(wanted) {
            let most = said.roles.iter().find(|one| one.name == role.name).map(|one| one.max);
            let done = parts.iter().filter(|part| part.done && part.plays(&role.name));
            let left = most.unwrap_or(0).saturating_sub(done.count() as u32);
            *wanted = most;
            if is_made_here {
                // Muster makes them, so that they are there when they have seats.
                role.max = role.max.max(left);
            }
        }
        Ok(())
    }

    /// Tells what a gang asks for and is taken in without.
    pub(crate) fn say_unheard(&mut self, name: &Arc<str>, unheard: &[Arc<str>]) {
        for (at, words) in unheard.iter().enumerate() {
            tracing::info!(gang = &**name, words = &**words, "not heard");
            let action = format!("TakeIn{at}");
            self.record_event(name, EventType::Warning, ("NotHeard", &action), words);
        }
    }

    /// Whether nobody is to be stopped for a gang's priority: its group says so, or the class that its group names, or one of
    /// its pods, on which the API server writes what their own class says.
    pub(crate) fn never_preempts(&self, pods: &[&Key], terms: &Terms) -> bool {
        let policy = self.class_of(terms).and_then(|class| class.data.get("preemptionPolicy"));
        let mut pods = pods.iter().filter_map(|key| self.cache.pods.get(key));
        terms.gentle
            || policy.and_then(Value::as_str) == Some(NEVER)
            || pods.any(|pod| pod.spec.is_gentle())
    }

    /// The priority class that terms name, if it is there.
    pub(crate) fn class_of(&self, terms: &Terms) -> Option<&DynamicObject> {
        let shelf = self.cache.others.get(&self.sources.of(KindRole::PriorityClass)?)?;
        shelf.get(terms.priority_class.as_deref()?).map(|class| &**class)
    }
}

/// How long a pod that does not say has to end.
const GRACE: u32 = 30;

/// How long a gang's pods have to end, unless it says otherwise: as long as the one that needs longest.
fn longest_grace(parts: &[Part]) -> Span {
    let said = |part: &Part| part.pod.spec.termination_grace_period_seconds;
    let seconds = parts.iter().map(|part| said(part).unwrap_or(GRACE.into())).max();
    Span::secs(u64::try_from(seconds.unwrap_or(0)).unwrap_or(0))
}

/// What a group asks for that Muster cannot do. Whoever asks for it waits, and is told: without it the gang would start, and
/// not as it was meant to.
pub(crate) fn unheard(terms: &Terms) -> Option<String> {
    if let Some(Level::Tier(tier)) = terms.required {
        return Some(format!(
            "it must stay within tier {tier}, and no level of the Topology is known by that number: \
             name the level (`highestTierName`), or ask for it softly"
        ));
    }
    terms.unknown.first().map(ToString::to_string)
}

/// A workload may say that it could have more pods than it has; whether it ever does is up to who makes them. Seats are
/// for pods that exist, and there are more of them when there are more of those.
fn no_more_than_exist(assembled: &mut Assembled) {
    for (role, members) in assembled.spec.roles.iter_mut().zip(&assembled.roles) {
        let exist = u32::try_from(members.len()).unwrap_or(u32::MAX);
        role.max = role.max.min(exist.max(role.min));
    }
}

impl Part {
    fn plays(&self, role: &str) -> bool {
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

/// Whether terms say how many members there are. Pods may be seen before their group is, and the first of them is not all
/// of it.
fn is_sized(terms: &Terms) -> bool {
    terms.min.is_some()
        || terms.total.is_some()
        || terms.min_resources.is_some()
        || !terms.min_by_role.is_empty()
}

/// Whether a group of a dialect is nothing without its object. The others can be said by marks on pods alone.
fn needs_object(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Muster | Dialect::Koordinator | Dialect::KubeBatch)
}

/// An object with its metadata, as its dialect's reader wants it.
pub(crate) fn whole(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    value["metadata"] = serde_json::to_value(&object.metadata).unwrap_or_default();
    value
}

/// The labels and annotations of a pod.
pub(crate) fn marks(pod: &Pod) -> (&Marks, &Marks) {
    static NONE: Marks = Marks::new();
    let or_none = |marks: &'static Marks| marks;
    let labels = pod.metadata.labels.as_ref().unwrap_or_else(|| or_none(&NONE));
    (labels, pod.metadata.annotations.as_ref().unwrap_or(&NONE))
}
