//! Queues: Muster's own, and those of other systems where it has none of that name.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use muster_api::dialects::{self, QueueTerms};
use muster_api::pod::Totals;
use muster_core::Event;
use muster_core::queue::{Queue, QueueSpec, Quota};

use crate::cache::kinds::KindRole;
use crate::cache::store::Moved;
use crate::cache::watched_objects::read;
use crate::host::Host;

/// Above all of Volcano's queues stands this one; here nobody does.
const ROOT: &str = "root";
/// This one is there whether or not anybody declares it.
pub(crate) const DEFAULT: &str = "default";

impl Host {
    /// Takes in a change of a queue.
    pub(crate) fn observe_queue(&mut self, name: &str) {
        let known = matches!(self.queue_named(name), Ok(Some(queue)) if self.knows_queue(&queue));
        if known && !self.is_refused(KindRole::Queue, name) {
            return; // how it stands was written on it
        }
        self.set_queues();
        self.retry_blocked();
    }

    /// Tells the World of every queue that it does not know as it is, and of those that nobody declares any more. A queue
    /// may be written before the one above it, so they are gone through until nothing new comes of it.
    pub(crate) fn set_queues(&mut self) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let foreign = (0..dialects::QUEUES.len()).map(KindRole::ForeignQueue);
        for interest in foreign.chain([KindRole::Queue]) {
            names.extend(self.all_of(interest).into_iter().map(|Moved { key, .. }| key));
        }
        names.sort();
        names.dedup();
        self.forget_queues(&names);
        let mut left: Vec<QueueSpec> = Vec::new();
        let mut refused: BTreeMap<Arc<str>, String> = BTreeMap::new();
        for name in &names {
            match self.queue_named(name) {
                Ok(queue) => left.extend(queue.filter(|queue| !self.knows_queue(queue))),
                Err(why) => drop(refused.insert(name.clone(), why)),
            }
        }
        loop {
            let before = left.len();
            left.retain(|queue| {
                let told = self.world.apply(self.now(), &Event::QueueSet(queue.clone()));
                match &told {
                    Ok(()) => drop(refused.remove(&queue.name)),
                    Err(why) => drop(refused.insert(queue.name.clone(), why.to_string())),
                }
                told.is_err()
            });
            self.world_changed |= left.len() < before;
            if left.is_empty() || left.len() == before {
                break;
            }
        }
        for name in &names {
            let why = refused.remove(name);
            match self.object_named(KindRole::Queue, name).is_some() {
                true => self.judge(KindRole::Queue, name, why),
                false => {
                    let Some(why) = why else { continue };
                    tracing::warn!(queue = &**name, why, "another system's queue has no place");
                }
            }
        }
    }

    /// Queues that nobody declares any more take nobody; whoever runs in one goes on.
    fn forget_queues(&mut self, declared: &[Arc<str>]) {
        self.rejected_objects
            .retain(|(interest, name), _| *interest != KindRole::Queue || declared.contains(name));
        let known = self.world.queues().iter().filter(|(_, queue)| !queue.gone);
        let known: Vec<QueueSpec> = known.map(|(_, queue)| queue.spec.clone()).collect();
        for queue in known {
            let open = QueueSpec::open(&queue.name);
            if !declared.contains(&queue.name) && (*queue.name != *DEFAULT || queue != open) {
                self.apply_event(&Event::QueueGone(queue.name));
            }
        }
    }

    /// A gang that was put somewhere goes on there, whatever became of its queue: it is taken in again, and counts. Whether the
    /// queue was opened for it, which nobody declares or can read.
    pub(crate) fn reopen_queue(&mut self, name: &Arc<str>) -> bool {
        let is_open = |queue: &Queue| queue.spec.name == *name && !queue.gone;
        let is_open = self.world.queues().iter().any(|(_, queue)| is_open(queue));
        let opened = Event::QueueSet(self.with_namespaces(QueueSpec::open(name)));
        !is_open && self.apply_event(&opened)
    }

    /// Whether the World knows a queue as it is: how it stands is written on it, and seen again.
    fn knows_queue(&self, queue: &QueueSpec) -> bool {
        self.world.queues().iter().any(|(_, known)| known.spec == *queue && !known.gone)
    }

    /// What a queue is, if there is one of that name.
    fn queue_named(&self, name: &str) -> Result<Option<QueueSpec>, String> {
        let object = |interest: KindRole| self.object_named(interest, name);
        if let Some(own) = object(KindRole::Queue) {
            let mut queues = read("Queue", own)?.queues.into_iter();
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

/// Another system's queue in Muster's words: what it deserves, or is kept for it, it can count on. That nothing is taken
/// back from it (`reclaimable: false`) has no counterpart: what was lent goes back.
fn foreign_queue(name: &str, terms: &QueueTerms) -> Option<QueueSpec> {
    let quota = |totals: Option<&Totals>| totals.map(as_quota).unwrap_or_default();
    (name != ROOT).then(|| QueueSpec {
        parent: terms.parent.clone().filter(|parent| **parent != *ROOT),
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
    fn what_a_queue_deserves_it_counts_on_and_its_capability_is_its_limit() {
        let queue = json!({"spec": {
            "weight": 3, "parent": "team", "capability": {"nvidia.com/gpu": 8, "cpu": "4"},
            "deserved": {"nvidia.com/gpu": 4}, "guarantee": {"resource": {"nvidia.com/gpu": 2}},
        }});
        let terms = dialects::queue(&queue, &GpuNames::default()).expect("it is good");
        let spec = foreign_queue("small", &terms).expect("a queue");
        assert_eq!((spec.weight, spec.parent.as_deref()), (3, Some("team")));
        assert_eq!((spec.guaranteed.gpu_milli, spec.limit.gpu_milli), (Some(4_000), Some(8_000)));
        assert_eq!(spec.limit.amounts.get("cpu"), Some(&4_000));
        assert_eq!(foreign_queue(ROOT, &terms), None);
    }
}
