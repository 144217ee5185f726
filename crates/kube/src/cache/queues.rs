//! Queues: Muster's own, and those of other systems where it has none of that name.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use muster_api::dialects::{self, QueueTerms};
use muster_api::pod::Totals;
use muster_core::Event;
use muster_core::queue::{Queue, QueueSpec, Quota};

use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::cache::watched_objects::read_manifest;
use crate::host::Host;

/// The parent of all of Volcano's queues. Muster's queues have no common parent.
const VOLCANO_ROOT: &str = "root";
/// The queue that exists whether or not it is declared.
pub(crate) const DEFAULT: &str = "default";

impl Host {
    /// Handles a change of a queue.
    pub(crate) fn observe_queue(&mut self, name: &str) {
        let known =
            matches!(self.queue_named(name), Ok(Some(queue)) if self.world_has_queue(&queue));
        if known && !self.is_rejected(KindRole::Queue, name) {
            return; // only its status has changed
        }
        self.set_queues();
        self.retry_blocked();
    }

    /// Applies every changed queue to the World, and removes those that are not declared any more. A queue may be declared before
    /// its parent, so this is repeated until no further queue is accepted.
    pub(crate) fn set_queues(&mut self) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let foreign = (0..dialects::QUEUES.len()).map(KindRole::ForeignQueue);
        for kind_role in foreign.chain([KindRole::Queue]) {
            names.extend(
                self.all_objects(kind_role).into_iter().map(|ObjectChange { key, .. }| key),
            );
        }
        names.sort();
        names.dedup();
        self.remove_undeclared_queues(&names);
        let mut left: Vec<QueueSpec> = Vec::new();
        let mut refused: BTreeMap<Arc<str>, String> = BTreeMap::new();
        for name in &names {
            match self.queue_named(name) {
                Ok(queue) => left.extend(queue.filter(|queue| !self.world_has_queue(queue))),
                Err(why) => drop(refused.insert(name.clone(), why)),
            }
        }
        loop {
            let before = left.len();
            left.retain(|queue| {
                let applied = self.world.apply(self.now(), &Event::QueueSet(queue.clone()));
                match &applied {
                    Ok(()) => drop(refused.remove(&queue.name)),
                    Err(why) => drop(refused.insert(queue.name.clone(), why.to_string())),
                }
                applied.is_err()
            });
            self.world_changed |= left.len() < before;
            if left.is_empty() || left.len() == before {
                break;
            }
        }
        for name in &names {
            let why = refused.remove(name);
            match self.object_named(KindRole::Queue, name).is_some() {
                true => self.report_acceptance(KindRole::Queue, name, why),
                false => {
                    let Some(why) = why else { continue };
                    tracing::warn!(queue = &**name, why, "another system's queue is refused");
                }
            }
        }
    }

    /// Closes queues that are not declared any more; gangs that run in one go on.
    fn remove_undeclared_queues(&mut self, declared: &[Arc<str>]) {
        self.rejected_objects.retain(|(kind_role, name), _| {
            *kind_role != KindRole::Queue || declared.contains(name)
        });
        let known = self.world.queues().iter().filter(|(_, queue)| !queue.gone);
        let known: Vec<QueueSpec> = known.map(|(_, queue)| queue.spec.clone()).collect();
        for queue in known {
            let open = QueueSpec::open(&queue.name);
            if !declared.contains(&queue.name) && (*queue.name != *DEFAULT || queue != open) {
                self.apply_event(&Event::QueueGone(queue.name));
            }
        }
    }

    /// Reopens the queue of a gang that has seats, if the queue is not declared or invalid: the gang goes on, and its usage counts.
    /// Returns whether the queue was reopened.
    pub(crate) fn reopen_queue(&mut self, name: &Arc<str>) -> bool {
        let is_open = |queue: &Queue| queue.spec.name == *name && !queue.gone;
        let is_open = self.world.queues().iter().any(|(_, queue)| is_open(queue));
        let opened = Event::QueueSet(self.with_namespaces(QueueSpec::open(name)));
        !is_open && self.apply_event(&opened)
    }

    /// Whether the World has a queue with this spec: a change may be only that of its status.
    fn world_has_queue(&self, queue: &QueueSpec) -> bool {
        self.world.queues().iter().any(|(_, known)| known.spec == *queue && !known.gone)
    }

    /// The spec of a queue, if one of that name is declared.
    fn queue_named(&self, name: &str) -> Result<Option<QueueSpec>, String> {
        let object = |kind_role: KindRole| self.object_named(kind_role, name);
        if let Some(own) = object(KindRole::Queue) {
            let mut queues = read_manifest("Queue", own)?.queues.into_iter();
            let queue = queues.find(|queue| *queue.name == *own.name_any());
            return Ok(queue.map(|queue| self.with_namespaces(queue)));
        }
        let foreign = (0..dialects::QUEUES.len()).map(KindRole::ForeignQueue).find_map(object);
        let Some(foreign) = foreign else { return Ok(None) };
        let terms = dialects::queue(&foreign.data, &self.config.gpus);
        let queue = foreign_queue(name, &terms.map_err(|why| why.join("; "))?);
        Ok(queue.map(|queue| self.with_foreign_namespaces(queue, foreign)))
    }
}

/// Another system's queue as one of Muster's: what it deserves, or else its guarantee, is guaranteed. `reclaimable: false` has no
/// counterpart: what was lent is reclaimed.
fn foreign_queue(name: &str, terms: &QueueTerms) -> Option<QueueSpec> {
    let quota = |totals: Option<&Totals>| totals.map(as_quota).unwrap_or_default();
    (name != VOLCANO_ROOT).then(|| QueueSpec {
        parent: terms.parent.clone().filter(|parent| **parent != *VOLCANO_ROOT),
        weight: terms.weight.unwrap_or(1).max(1),
        guaranteed: quota(terms.deserved.as_ref().or(terms.guaranteed.as_ref())),
        limit: quota(terms.limit.as_ref()),
        closed: terms.closed,
        ..QueueSpec::open(name)
    })
}

fn as_quota(totals: &Totals) -> Quota {
    let gpus = totals.gpus.values().copied().reduce(u64::saturating_add);
    Quota { amounts: totals.amounts.clone(), gpu_milli: gpus }
}

#[cfg(test)]
mod tests {
    use muster_api::pod::GpuNames;
    use serde_json::json;

    use crate::cache::queues::*;

    #[test]
    fn deserved_is_guaranteed_and_capability_is_the_limit() {
        let queue = json!({"spec": {
            "weight": 3, "parent": "team", "capability": {"nvidia.com/gpu": 8, "cpu": "4"},
            "deserved": {"nvidia.com/gpu": 4}, "guarantee": {"resource": {"nvidia.com/gpu": 2}},
        }});
        let terms = dialects::queue(&queue, &GpuNames::default()).expect("it is good");
        let spec = foreign_queue("small", &terms).expect("a queue");
        assert_eq!((spec.weight, spec.parent.as_deref()), (3, Some("team")));
        assert_eq!((spec.guaranteed.gpu_milli, spec.limit.gpu_milli), (Some(4_000), Some(8_000)));
        assert_eq!(spec.limit.amounts.get("cpu"), Some(&4_000));
        assert_eq!(foreign_queue(VOLCANO_ROOT, &terms), None);
    }
}
