//! Resolves which namespaces may use a queue, where tenants do not trust each other.
//!
//! A Queue without `namespaces` is for the namespace of its own name, and the queue `default` is for all. Selectors are
//! resolved to names here, against the existing namespaces, so that the planner decides by names alone.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_core::constraint::Requirement;
use muster_core::queue::{Allowed, Namespaces, QueueSpec};
use muster_core::time::Span;

use crate::cache::kinds::KindRole;
use crate::cache::queues::DEFAULT;
use crate::host::Host;

/// The annotation with the namespaces of another system's queue, which has no field for them: names separated by commas, or
/// `*` for all.
const NAMESPACES: &str = "muster.sh/namespaces";

/// What gangs may declare where their queue sets no limit. Checkpoints of large models take minutes to write; an
/// administrator must allow what protects a gang, or lets an order hold nodes, for longer than a day.
pub(crate) fn default_allowance() -> Allowed {
    Allowed {
        max_grace: Some(Span::hours(1)),
        max_min_runtime: Some(Span::hours(24)),
        max_provisioning_timeout: Some(Span::hours(24)),
        ..Allowed::default()
    }
}

impl Host {
    /// A queue with the names of all namespaces that may use it.
    pub(crate) fn with_namespaces(&self, mut queue: QueueSpec) -> QueueSpec {
        queue.allowed.namespaces = match queue.allowed.namespaces.take() {
            None if *queue.name == *DEFAULT => None,
            None => Some(only(queue.name.clone())),
            Some(declared) => Some(self.resolved(declared)),
        };
        queue
    }

    /// The same for a queue of another system.
    pub(crate) fn with_foreign_namespaces(
        &self,
        mut queue: QueueSpec,
        object: &DynamicObject,
    ) -> QueueSpec {
        let listed = object.annotations().get(NAMESPACES).map(|listed| listed.trim());
        if listed == Some("*") {
            return queue;
        }
        let names = listed.unwrap_or_default().split(',').map(str::trim);
        let names: Vec<Arc<str>> = names.filter(|name| !name.is_empty()).map(Into::into).collect();
        queue.allowed.namespaces = listed.map(|_| Namespaces { names, selector: None });
        self.with_namespaces(queue)
    }

    /// Names instead of a selector, sorted so that the same namespaces are the same queue.
    fn resolved(&self, declared: Namespaces) -> Namespaces {
        let Some(selector) = &declared.selector else { return declared };
        let spaces = self.namespace_labels();
        let matches = |requirement: &Requirement, space: &str| {
            let labels = spaces.get(space);
            requirement.holds(labels.and_then(|labels| labels.get(&*requirement.key)).map(|v| &**v))
        };
        let selected = spaces.keys().filter(|space| selector.iter().all(|one| matches(one, space)));
        let mut names: Vec<Arc<str>> = selected.map(|space| Arc::from(*space)).collect();
        names.extend(declared.names);
        names.sort();
        names.dedup();
        Namespaces { names, selector: declared.selector.clone() }
    }

    /// Resolves queues with namespace selectors again when a namespace was created, deleted or labelled.
    pub(crate) fn namespaces_changed(&mut self) {
        let selects =
            |object: &DynamicObject| !object.data["spec"]["namespaces"]["selector"].is_null();
        let queues = self.all_objects(KindRole::Queue);
        if queues.iter().any(|moved| moved.is.as_ref().is_some_and(|object| selects(object))) {
            self.set_queues();
            self.retry_blocked();
        }
    }

    /// Why a gang with pods of these namespaces may not use a queue, if one of them may not.
    pub(crate) fn queue_excludes<'a>(
        &self,
        queue: &str,
        namespaces: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let mut queues = self.world.queues().iter();
        let (_, listed) = queues.find(|(_, known)| *known.spec.name == *queue)?;
        let out = namespaces.into_iter().find(|space| !listed.spec.allowed.admits(space))?;
        Some(format!(
            "queue {queue} is not for pods of namespace {out} (`namespaces` of the queue)"
        ))
    }
}

fn only(name: Arc<str>) -> Namespaces {
    Namespaces { names: vec![name], selector: None }
}
