//! What a gang is worth in line: its priority and its user, as far as tenants cannot make them up.
//!
//! A tenant writes Gangs, groups, templates and annotations as it likes. Two things it cannot write: the priority that
//! the API server's admission puts on pods, which PriorityClasses and quotas govern, and the annotation `muster.sh/user`
//! where an admission policy stamps it. So a gang has the lowest priority of its pods, and what its group says can lower
//! that and never raise it. Where no admission has seen a pod that its submitter made, as with Gangs whose pods Muster
//! makes, suspended Jobs and ProvisioningRequests, the priority is marked as declared: the planner honours it up to the
//! queue's `maxPriority`.

use std::sync::Arc;

use kube::ResourceExt;
use muster_api::dialects::Terms;

use crate::cache::store::Key;
use crate::gang::build::{StringMap, labels_and_annotations};
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

/// The user that created an object, stamped by an admission policy.
pub(crate) const USER: &str = "muster.sh/user";
/// Pods that a controller of the cluster made are not that controller's: who made its owner is asked.
const CONTROLLERS: &str = "system:serviceaccount:kube-system:";

/// A gang's priority, and whether it is the submitter's word alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Priority {
    pub(crate) value: i32,
    pub(crate) is_declared: bool,
}

impl Host {
    /// A gang's priority: the lowest that admission wrote on its pods, or a lower one that its group says.
    pub(crate) fn priority(&self, record: &GangRecord, pods: &[&Key], terms: &Terms) -> Priority {
        let said = self.priority_of(terms);
        let pods = pods.iter().filter_map(|key| self.cache.pods.get(key));
        let written = pods.map(|pod| pod.spec.priority.unwrap_or(0)).min();
        match written.filter(|_| self.template_gang(record).is_none()) {
            Some(written) => Priority {
                value: said.map_or(written, |said| said.min(written)),
                is_declared: false,
            },
            None => Priority { value: said.or(written).unwrap_or(0), is_declared: true },
        }
    }

    /// Words for a group that says a higher priority than its pods have, which does not count.
    pub(crate) fn ignored_priority(&self, terms: &Terms, priority: Priority) -> Option<Arc<str>> {
        let said = self.priority_of(terms).filter(|said| *said > priority.value)?;
        let class = terms.priority_class.as_deref().filter(|_| terms.priority.is_none());
        let named = class.map_or_else(String::new, |class| format!(" (priorityClassName {class})"));
        Some(
            format!(
                "priority {said}{named} does not count: its pods have {}, and a record can lower the priority of its \
                 pods, not raise it",
                priority.value
            )
            .into(),
        )
    }

    /// The priority that terms set, by number or by name.
    pub(crate) fn priority_of(&self, terms: &Terms) -> Option<i32> {
        let by_name = || i32::try_from(self.class_of(terms)?.data.get("value")?.as_i64()?).ok();
        terms.priority.or_else(by_name)
    }

    /// The user that a gang counts for in a queue's `userLimit`: who created its object, or its pods, as admission saw
    /// it. Without a stamp that can be trusted it is the namespace itself, so that what is written in one namespace never
    /// counts against the user of another.
    pub(crate) fn user_of(&self, origin: &GangSource, pod: Option<&Pod>) -> Arc<str> {
        let gang = origin.gang_name();
        let namespace = gang.split_once('/').map_or("default", |(namespace, _)| namespace);
        let object = self.source_object(origin).map(|(_, object)| &**object);
        let object = object.or_else(|| self.request(origin)).map(ResourceExt::annotations);
        let of_pod = pod.and_then(|pod| stamped(labels_and_annotations(pod).1));
        let of_pod = of_pod.filter(|user| !user.starts_with(CONTROLLERS));
        let user = object.and_then(stamped).or(of_pod).filter(|_| self.config.trust_users);
        user.map_or_else(|| format!("namespace/{namespace}").into(), Into::into)
    }

    /// Words for a Gang that names another user than the one it counts for.
    pub(crate) fn ignored_user(&self, record: &GangRecord, user: &str) -> Option<Arc<str>> {
        let GangSource::Gang { .. } = record.source else { return None };
        let (_, object) = self.source_object(&record.source)?;
        let said = object.data.get("spec")?.get("user")?.as_str()?;
        (said != user).then(|| {
            format!("spec.user does not count: the gang counts for user {user} in its queue").into()
        })
    }
}

fn stamped(annotations: &StringMap) -> Option<&str> {
    annotations.get(USER).map(String::as_str).filter(|user| !user.is_empty())
}
