//! What a group asks for, in words all dialects share.

use std::sync::Arc;

use muster_core::time::Span;
use serde::Serialize;

use crate::foreign::json::Json;
use crate::pod::request::GpuNames;
use crate::pod::totals::{Totals, listed};

/// How near to each other members are to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum Level {
    /// In one domain of this node label, or of the level that is called so.
    Key(Arc<str>),
    /// Within this tier of the network, counted from 1 at the leaves. Only who knows the tree can say which
    /// level that is.
    Tier(u32),
}

impl Level {
    pub(crate) fn key(text: &str) -> Self {
        Self::Key(text.into())
    }
}

/// What a group asks for. What is `None` was not said.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Terms {
    /// The group does not start with fewer members.
    pub min: Option<u32>,
    /// Nor with fewer of these roles.
    pub min_by_role: Vec<(Arc<str>, u32)>,
    /// Nor with less than this for all its members.
    pub min_resources: Option<Totals>,
    /// How many members it has in all, where that is said apart.
    pub total: Option<u32>,
    /// Groups it starts together with, or not at all, as `namespace/name`; itself may be among them.
    pub joined: Vec<Arc<str>>,
    /// The queue it waits in.
    pub queue: Option<Arc<str>>,
    /// Its priority by name; whoever knows the classes turns it into a number.
    pub priority_class: Option<Arc<str>>,
    /// Its priority.
    pub priority: Option<i32>,
    /// How long members may wait for each other. It was meant for schedulers that hold capacity meanwhile, and is
    /// often a minute, in which no node boots: it is no deadline for orders.
    pub timeout: Option<Span>,
    /// Where all members must be.
    pub required: Option<Level>,
    /// Where all members should be.
    pub preferred: Option<Level>,
    /// Whether it may be stopped for others' sake.
    pub preemptible: Option<bool>,
    /// Whether nobody is stopped for its priority.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gentle: bool,
    /// Whether it is disrupted as a whole; otherwise member by member.
    pub whole: Option<bool>,
    /// Whether it is held back by its owner.
    pub suspended: bool,
    /// What it asks for that Muster cannot do, and without which it would not be what was meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Arc<str>>,
    /// What it asks for that Muster does not do, and can be done without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<Arc<str>>,
}

impl Terms {
    /// These terms, and those of `other` where these say nothing.
    pub fn over(self, other: Self) -> Self {
        let roles = if self.min_by_role.is_empty() { other.min_by_role } else { self.min_by_role };
        Self {
            min: self.min.or(other.min),
            min_by_role: roles,
            min_resources: self.min_resources.or(other.min_resources),
            total: self.total.or(other.total),
            joined: if self.joined.is_empty() { other.joined } else { self.joined },
            queue: self.queue.or(other.queue),
            priority_class: self.priority_class.or(other.priority_class),
            priority: self.priority.or(other.priority),
            timeout: self.timeout.or(other.timeout),
            required: self.required.or(other.required),
            preferred: self.preferred.or(other.preferred),
            preemptible: self.preemptible.or(other.preemptible),
            gentle: self.gentle || other.gentle,
            whole: self.whole.or(other.whole),
            suspended: self.suspended || other.suspended,
            unknown: if self.unknown.is_empty() { other.unknown } else { self.unknown },
            unheard: if self.unheard.is_empty() { other.unheard } else { self.unheard },
        }
    }
}

/// The fields nearly all PodGroups share: `minMember`, `queue` and `priorityClassName`.
pub(crate) fn pod_group(spec: &Json<'_>) -> Terms {
    Terms {
        min: spec.count("minMember"),
        queue: spec.text("queue").map(Into::into),
        priority_class: spec.text("priorityClassName").map(Into::into),
        ..Terms::default()
    }
}

/// A number of seconds.
pub(crate) fn seconds(spec: &Json<'_>, name: &str) -> Option<Span> {
    spec.whole::<u32>(name).map(|seconds| Span::secs(seconds.into()))
}

/// `minResources`. Volcano writes what a quota would count, so that every amount may be there three times:
/// `cpu`, `requests.cpu` and `limits.cpu`; the first two mean the same and the last is no request.
pub(crate) fn min_resources(spec: &Json<'_>, gpus: &GpuNames) -> Option<Totals> {
    resources(spec, "minResources", gpus)
}

/// A mapping of resources; `None` when nothing is in it.
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
