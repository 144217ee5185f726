//! Writes the statuses of Pools, Queues, Topologies and Orders.
//!
//! A status is counted after a decision, and written when it has changed, at a bounded rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use muster_api::crd::{OrderPhase, OrderStatus, PoolStatus};
use muster_core::gang::Phase;
use muster_core::id::{PoolIdx, QueueIdx};
use muster_core::order::Order;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::order_object::order_name;

/// How long a written status may be out of date.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The last written status of each pool, queue and order.
#[derive(Debug, Default)]
pub(crate) struct SupplyStatus {
    pub(crate) targets: BTreeMap<PoolIdx, muster_core::plan::Target>,
    written: FxHashMap<(KindRole, String), (Option<String>, Value)>,
    at: Option<Instant>,
}

impl SupplyStatus {
    /// Has the statuses written in this cycle, without waiting for the interval.
    pub(crate) fn write_soon(&mut self) {
        self.at = None;
    }

    /// The number of objects of a kind whose written status is known.
    #[cfg(test)]
    pub(crate) fn remembers(&self, kind_role: KindRole) -> usize {
        self.written.keys().filter(|(of, _)| *of == kind_role).count()
    }

    /// When the statuses were last compared.
    #[cfg(test)]
    pub(crate) fn at_last(&self) -> Option<Instant> {
        self.at
    }

    /// Forgets the written status of an order that has ended.
    pub(crate) fn forget_order(&mut self, name: &str) {
        self.written.remove(&(KindRole::Order, name.to_owned()));
    }
}

impl Host {
    /// Writes the statuses of pools, queues, topologies and orders that have changed.
    pub(crate) fn write_supply_status(&mut self) {
        if self.supply_status.at.is_some_and(|at| at.elapsed() < WRITE_INTERVAL) {
            self.has_deferred_writes = true;
            return;
        }
        self.supply_status.at = Some(Instant::now());
        // Statuses of deleted objects are forgotten.
        let (sources, others) = (&self.sources, &self.cache.others);
        self.supply_status.written.retain(|(kind_role, name), _| {
            let store = sources.of(*kind_role).and_then(|source| others.get(&source));
            store.is_some_and(|store| store.get(name).is_some())
        });
        self.check_topologies();
        let queues = self.queue_statuses();
        for kind_role in [KindRole::Pool, KindRole::Queue, KindRole::Topology] {
            for moved in self.all_objects(kind_role) {
                let status = match kind_role {
                    KindRole::Pool => {
                        self.world.pool_named(&moved.key).map(|at| self.pool_status(at))
                    }
                    _ => queues.get(&*moved.key).filter(|_| kind_role == KindRole::Queue).cloned(),
                };
                let mut status = status.unwrap_or_else(|| json!({}));
                let Some(object) = &moved.is else { continue };
                status["observedGeneration"] = json!(object.metadata.generation);
                status["conditions"] = json!([self.accepted_condition(kind_role, object)]);
                self.write_one(kind_role, moved.key.to_string(), status);
            }
        }
        let orders: Vec<(String, Value)> =
            self.world.orders().values().map(|order| self.order_status(order)).collect();
        orders.into_iter().for_each(|(name, status)| self.write_one(KindRole::Order, name, status));
    }

    /// The status of an order. An order that has ended has no object; the status of its gang has the result.
    fn order_status(&self, order: &Order) -> (String, Value) {
        let claims = order.spec.claims.iter().filter_map(|(id, _)| self.world.claims().get(id));
        let ready = claims.filter(|claim| claim.is_ready()).count();
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let total = order.spec.claims.len();
        let status = OrderStatus {
            phase: Some(OrderPhase::Assembling),
            ready: Some(count(ready)),
            total: Some(count(total)),
            progress: Some(format!("{ready}/{total}")),
            leaving: Some(count(order.after.len())),
        };
        (order_name(order.spec.id), serde_json::to_value(status).unwrap_or_default())
    }

    pub(crate) fn pool_status(&self, at: PoolIdx) -> Value {
        let target = self.supply_status.targets.get(&at).copied();
        let status = PoolStatus::of(&self.world, at, target);
        let none_avoided = status.offerings.is_empty();
        let mut status = serde_json::to_value(status).unwrap_or_default();
        if none_avoided {
            // A merge patch leaves fields alone that it does not name.
            status["offerings"] = Value::Null;
        }
        status
    }

    /// The status of every queue, which counts the queues below it.
    fn queue_statuses(&self) -> BTreeMap<String, Value> {
        let mut counts: BTreeMap<QueueIdx, (u32, u32)> = BTreeMap::new();
        for (_, gang) in self.world.gangs() {
            let mut above = Some(gang.queue);
            while let Some(queue) = above {
                let (waiting, running) = counts.entry(queue).or_default();
                match gang.phase {
                    Phase::Waiting | Phase::Assembling(_) => *waiting += 1,
                    Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                        *running += 1;
                    }
                }
                above = self.world.queue(queue).parent;
            }
        }
        let queues = self.world.queues().iter().map(|(at, queue)| {
            let (waiting, running) = counts.get(&at).copied().unwrap_or_default();
            let gpus = queue.usage.gpu_milli;
            let gpus =
                if gpus % 1_000 == 0 { json!(gpus / 1_000) } else { json!(format!("{gpus}m")) };
            let status = json!({"waiting": waiting, "running": running, "heldGpus": gpus});
            (queue.spec.name.to_string(), status)
        });
        queues.collect()
    }

    fn write_one(&mut self, kind_role: KindRole, name: String, mut status: Value) {
        let Some(object) = self.object_named(kind_role, &name).cloned() else { return };
        let key = (kind_role, name);
        // A recreated object of the same name has no status yet.
        let identified = (object.metadata.uid.clone(), status.clone());
        if self.supply_status.written.get(&key) == Some(&identified) {
            return;
        }
        if let Some(condition) = status["conditions"].get_mut(0) {
            *condition = self.with_transition_time(condition.take(), &object);
        }
        let Some(objects): Option<Api<DynamicObject>> = self.api(kind_role) else { return };
        let write_key: Arc<str> = format!("{kind_role:?} {}", key.1).into();
        if self.ordered_writes.is_busy(&write_key) {
            self.has_deferred_writes = true;
            return;
        }
        let (writer, name) = (self.writer.clone(), key.1.clone());
        self.supply_status.written.insert(key, identified);
        self.ordered_writes.write(&write_key, async move {
            match writer.patch_status(&objects, &name, &json!({"status": status})).await {
                Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => tracing::debug!(name, %error, "its status was not written"),
            }
        });
    }
}
