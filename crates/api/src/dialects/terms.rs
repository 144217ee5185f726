//! The terms of a group, which all dialects are translated into.

use std::sync::Arc;

use serde::Serialize;

use crate::foreign::json::Json;
use crate::pod::request::GpuNames;
use crate::pod::totals::{Totals, listed};

/// A topology constraint of the members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum Level {
    /// One domain of this node label, or of the topology level with this name.
    Key(Arc<str>),
    /// One domain of this tier of the network, counted from 1 at the leaves. Only the host knows which topology level
    /// that is.
    Tier(u32),
}

impl Level {
    pub(crate) fn key(text: &str) -> Self {
        Self::Key(text.into())
    }
}

/// What a group requests. `None` where its objects give nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Terms {
    /// The minimum number of members to start with.
    pub min: Option<u32>,
    /// The minimum number of members by role.
    pub min_by_role: Vec<(Arc<str>, u32)>,
    /// The minimum resources of all members together.
    pub min_resources: Option<Totals>,
    /// The total number of members, where it is given separately.
    pub total: Option<u32>,
    /// Groups that start together with this one, or not at all, as `namespace/name`; may include the group itself.
    pub merged_with: Vec<Arc<str>>,
    /// The queue of the group.
    pub queue: Option<Arc<str>>,
    /// The priority class; the host resolves it to a number.
    pub priority_class: Option<Arc<str>>,
    /// The priority.
    pub priority: Option<i32>,
    /// The level that all members must be placed in.
    pub required: Option<Level>,
    /// The level that all members should be placed in.
    pub preferred: Option<Level>,
    /// Whether the gang may be preempted.
    pub preemptible: Option<bool>,
    /// Whether no gang is preempted for its priority.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_preempts: bool,
    /// Requirements that Muster does not support and without which the gang would not be what was meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Arc<str>>,
    /// Settings that Muster does not support, and that can be ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Arc<str>>,
}

impl Terms {
    /// These terms, completed by those of `other`.
    pub fn over(self, other: Self) -> Self {
        let roles = if self.min_by_role.is_empty() { other.min_by_role } else { self.min_by_role };
        Self {
            min: self.min.or(other.min),
            min_by_role: roles,
            min_resources: self.min_resources.or(other.min_resources),
            total: self.total.or(other.total),
            merged_with: if self.merged_with.is_empty() {
                other.merged_with
            } else {
                self.merged_with
            },
            queue: self.queue.or(other.queue),
            priority_class: self.priority_class.or(other.priority_class),
            priority: self.priority.or(other.priority),
            required: self.required.or(other.required),
            preferred: self.preferred.or(other.preferred),
            preemptible: self.preemptible.or(other.preemptible),
            never_preempts: self.never_preempts || other.never_preempts,
            unsupported: if self.unsupported.is_empty() {
                other.unsupported
            } else {
                self.unsupported
            },
            ignored: if self.ignored.is_empty() { other.ignored } else { self.ignored },
        }
    }
}

/// The fields that nearly all PodGroups have: `minMember`, `queue` and `priorityClassName`.
pub(crate) fn pod_group(spec: &Json<'_>) -> Terms {
    Terms {
        min: spec.count("minMember"),
        queue: spec.text("queue").map(Into::into),
        priority_class: spec.text("priorityClassName").map(Into::into),
        ..Terms::default()
    }
}

/// Checks `scheduleTimeoutSeconds`, which is not used. It is the time that members may wait for each other, meant for
/// schedulers that hold capacity meanwhile, and is often a minute, in which no node boots: it is no deadline for
/// orders.
pub(crate) fn check_schedule_timeout(spec: &Json<'_>) {
    spec.whole::<u32>("scheduleTimeoutSeconds");
}

/// `minResources`. Volcano writes what a quota would count, and may give every amount three times: `cpu`,
/// `requests.cpu` and `limits.cpu`; the first two are equal and the last is not a request.
pub(crate) fn min_resources(spec: &Json<'_>, gpus: &GpuNames) -> Option<Totals> {
    resources(spec, "minResources", gpus)
}

/// A mapping of resources; `None` if it is empty.
pub(crate) fn resources(at: &Json<'_>, name: &str, gpus: &GpuNames) -> Option<Totals> {
    let pairs = at.pairs(name);
    let has = |name: &str| pairs.iter().any(|(other, _)| *other == name);
    let mut entries = Vec::with_capacity(pairs.len());
    for (name, value) in &pairs {
        let plain = name.strip_prefix("requests.");
        let again = plain.is_some_and(has);
        if name.starts_with("limits.") || name.starts_with("count/") || again {
            continue;
        }
        let written = match value.value() {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            _ => {
                value.error("must be a quantity such as 8, 500m or 80Gi");
                continue;
            }
        };
        entries.push((value.path().to_owned(), plain.unwrap_or(name), written));
    }
    let listed = listed(
        entries.iter().map(|(path, name, written)| (path.clone(), *name, written.as_str())),
        gpus,
        at.findings(),
    );
    (!listed.is_zero()).then_some(listed)
}
