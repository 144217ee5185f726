//! What was seen, and what every promise makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::doubts::Moment;
use super::evicted::Evicted;
use super::gangs::GANG;
use super::owed::Owed;
use super::partial::Partial;
use super::pods::{has_gate, is_sent_away, node_of};
use super::pools::Pools;
use super::queues::Queues;
use super::ready::Ready;
use super::room::Room;
use super::seen::Seen;
use super::short::Short;
use super::twice::Twice;
use super::watch::Kind;

#[derive(Default)]
pub(super) struct Books {
    seen: Seen,
    pub(super) partial: Partial,
    ready: Ready,
    room: Room,
    pub(super) owed: Owed,
    pools: Pools,
    queues: Queues,
    twice: Twice,
    short: Short,
    evicted: Evicted,
    broken: Vec<String>,
    /// When somebody was first seen on a node.
    pub(super) first_bound: Option<Instant>,
    /// Pods of each gang that were told to make way.
    pub(super) sent_away: BTreeMap<String, BTreeSet<String>>,
}

impl Books {
    /// An object is there, or is no more.
    pub(super) fn see(&mut self, kind: Kind, object: DynamicObject, is_there: bool, now: Moment) {
        let key = key_of(&object);
        match kind {
            Kind::Pod => {
                let Ok(pod) = object.try_parse() else { return };
                self.pod(&key, pod, is_there, now);
            }
            Kind::Node => {
                let Ok(node) = object.try_parse() else { return };
                let is = Some(&node).filter(|_| is_there);
                self.ready.node(&key, self.seen.nodes.get(&key), is, now);
                put(&mut self.seen.nodes, key, node, is_there);
            }
            Kind::NodeClaim => {
                let is_new = is_there && !self.seen.claims.contains_key(&key);
                self.owed.claim(&object, is_there, now);
                put(&mut self.seen.claims, key.clone(), object, is_there);
                if is_new {
                    self.pools.asked(&self.seen, &key, now);
                }
            }
            Kind::Pool => {
                if is_there {
                    self.pools.see(&object);
                }
                put(&mut self.seen.pools, key, object, is_there);
            }
            Kind::Queue => {
                if is_there {
                    self.queues.see(&object);
                }
                put(&mut self.seen.queues, key, object, is_there);
            }
            Kind::Gang => {
                if !is_there {
                    self.twice.deleted(&object, now);
                }
                put(&mut self.seen.gangs, key, object, is_there);
            }
            Kind::Order => put(&mut self.seen.orders, key, object, is_there),
            Kind::Job => put(&mut self.seen.jobs, key, object, is_there),
        }
        self.look(now);
    }

    fn pod(&mut self, key: &str, pod: Pod, is_there: bool, now: Moment) {
        let was_bound = self.seen.pods.get(key).is_some_and(|pod| node_of(pod).is_some());
        if !is_there {
            self.seen.pods.remove(key);
            self.seen.gated.remove(key);
            return;
        }
        if has_gate(&pod) {
            self.seen.gated.insert(key.to_owned());
        }
        if is_sent_away(&pod) {
            self.evicted.sent_away(&self.seen, key, &pod, now);
            let gang = pod.labels().get(GANG).cloned().unwrap_or_default();
            self.sent_away.entry(gang).or_default().extend(pod.uid());
        }
        let node = node_of(&pod).filter(|_| !was_bound).map(str::to_owned);
        self.seen.pods.insert(key.to_owned(), pod);
        if let Some(node) = node {
            self.bound(key, &node, now);
        }
    }

    /// Somebody has just been put on a node.
    fn bound(&mut self, pod: &str, node: &str, now: Moment) {
        self.first_bound.get_or_insert(now.tick);
        self.ready.bound(pod, node, now);
        self.room.bound(&self.seen, pod, node, now);
        self.queues.bound(&self.seen, pod, now);
        let again = self.twice.bound(&self.seen, pod, now);
        self.broken.extend(again);
    }

    /// Holds every promise against what is there now.
    pub(super) fn look(&mut self, now: Moment) {
        let seen = &self.seen;
        let findings = [
            self.partial.look(seen, now),
            self.ready.look(seen, now),
            self.room.look(seen, now),
            self.owed.look(seen, now),
            self.pools.look(now),
            self.queues.look(now),
            self.short.look(seen, now),
            self.evicted.look(seen, now),
        ];
        self.broken.extend(findings.into_iter().flatten());
    }

    /// Whether nothing is in doubt that later news could clear up.
    pub(super) fn is_settled(&self) -> bool {
        self.ready.is_settled()
            && self.room.is_settled()
            && self.pools.is_settled()
            && self.queues.is_settled()
            && self.evicted.is_settled()
    }

    /// Everything that was not as promised.
    pub(super) fn findings(&self) -> Vec<String> {
        self.broken.clone()
    }
}

/// `namespace/name`, or the name where there is no namespace.
pub(super) fn key_of(object: &impl ResourceExt) -> String {
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
