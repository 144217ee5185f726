//! Records every change that the watch reports, and runs the checks of all promises.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::gang_membership::GANG;
use super::pod_fields::{has_gate, is_evicted, node_of};
use super::promises::DeletedGangs;
use super::promises::NeedlessEvictions;
use super::promises::NodeCapacity;
use super::promises::NodeReadiness;
use super::promises::PartialGangs;
use super::promises::PoolLimits;
use super::promises::QueueLimits;
use super::promises::UnfilledGangs;
use super::promises::UnusedClaims;
use super::snapshot::Snapshot;
use super::suspected::Moment;
use super::watch::Kind;

#[derive(Default)]
pub(crate) struct Audit {
    snapshot: Snapshot,
    pub(crate) partial_gangs: PartialGangs,
    node_readiness: NodeReadiness,
    node_capacity: NodeCapacity,
    pub(crate) unused_claims: UnusedClaims,
    pool_limits: PoolLimits,
    queue_limits: QueueLimits,
    deleted_gangs: DeletedGangs,
    unfilled_gangs: UnfilledGangs,
    needless_evictions: NeedlessEvictions,
    broken: Vec<String>,
    /// When a pod was first seen on a node.
    pub(crate) first_bound: Option<Instant>,
    /// UIDs of evicted pods, by gang.
    pub(crate) evicted: BTreeMap<String, BTreeSet<String>>,
}

impl Audit {
    /// An object exists in this state, or is gone.
    pub(crate) fn see(&mut self, kind: Kind, object: DynamicObject, is_there: bool, now: Moment) {
        let key = key_of(&object);
        match kind {
            Kind::Pod => {
                let Ok(pod) = object.try_parse() else { return };
                self.pod(&key, pod, is_there, now);
            }
            Kind::Node => {
                let Ok(node) = object.try_parse() else { return };
                let is = Some(&node).filter(|_| is_there);
                self.node_readiness.node(&key, self.snapshot.nodes.get(&key), is, now);
                put(&mut self.snapshot.nodes, key, node, is_there);
            }
            Kind::NodeClaim => {
                let is_new = is_there && !self.snapshot.claims.contains_key(&key);
                self.unused_claims.claim(&object, is_there, now);
                put(&mut self.snapshot.claims, key.clone(), object, is_there);
                if is_new {
                    self.pool_limits.claim_added(&self.snapshot, &key, now);
                }
            }
            Kind::Pool => {
                if is_there {
                    self.pool_limits.see(&object);
                }
                put(&mut self.snapshot.pools, key, object, is_there);
            }
            Kind::Queue => {
                if is_there {
                    self.queue_limits.see(&object);
                }
                put(&mut self.snapshot.queues, key, object, is_there);
            }
            Kind::Gang => {
                if !is_there {
                    self.deleted_gangs.deleted(&object, now);
                }
                put(&mut self.snapshot.gangs, key, object, is_there);
            }
            Kind::Order => put(&mut self.snapshot.orders, key, object, is_there),
            Kind::Job => put(&mut self.snapshot.jobs, key, object, is_there),
        }
        self.check(now);
    }

    fn pod(&mut self, key: &str, pod: Pod, is_there: bool, now: Moment) {
        let was_bound = self.snapshot.pods.get(key).is_some_and(|pod| node_of(pod).is_some());
        if !is_there {
            self.snapshot.pods.remove(key);
            self.snapshot.gated.remove(key);
            return;
        }
        if has_gate(&pod) {
            self.snapshot.gated.insert(key.to_owned());
        }
        if is_evicted(&pod) {
            self.needless_evictions.evicted(&self.snapshot, key, &pod, now);
            let gang = pod.labels().get(GANG).cloned().unwrap_or_default();
            self.evicted.entry(gang).or_default().extend(pod.uid());
        }
        let node = node_of(&pod).filter(|_| !was_bound).map(str::to_owned);
        self.snapshot.pods.insert(key.to_owned(), pod);
        if let Some(node) = node {
            self.bound(key, &node, now);
        }
    }

    /// A pod has just been bound.
    fn bound(&mut self, pod: &str, node: &str, now: Moment) {
        self.first_bound.get_or_insert(now.tick);
        self.node_readiness.bound(pod, node, now);
        self.node_capacity.bound(&self.snapshot, pod, node, now);
        self.queue_limits.bound(&self.snapshot, pod, now);
        let again = self.deleted_gangs.bound(&self.snapshot, pod, now);
        self.broken.extend(again);
    }

    /// Checks every promise against the current snapshot.
    pub(crate) fn check(&mut self, now: Moment) {
        let snapshot = &self.snapshot;
        let findings = [
            self.partial_gangs.check(snapshot, now),
            self.node_readiness.check(snapshot, now),
            self.node_capacity.check(snapshot, now),
            self.unused_claims.check(snapshot, now),
            self.pool_limits.check(now),
            self.queue_limits.check(now),
            self.unfilled_gangs.check(snapshot, now),
            self.needless_evictions.check(snapshot, now),
        ];
        self.broken.extend(findings.into_iter().flatten());
    }

    /// Whether no suspicion is open that a later event could clear up.
    pub(crate) fn is_settled(&self) -> bool {
        self.node_readiness.is_settled()
            && self.node_capacity.is_settled()
            && self.pool_limits.is_settled()
            && self.queue_limits.is_settled()
            && self.needless_evictions.is_settled()
    }

    /// Every broken promise.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.broken.clone()
    }
}

/// `namespace/name`, or the name where there is no namespace.
pub(crate) fn key_of(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

fn put<T>(all: &mut BTreeMap<String, T>, key: String, one: T, is_there: bool) {
    match is_there {
        true => drop(all.insert(key, one)),
        false => drop(all.remove(&key)),
    }
}
