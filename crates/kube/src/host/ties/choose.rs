//! Volumes that are made where their pod goes: claims are told the node, and no pod of the gang is bound before all of
//! them have their volume. A gang whose volumes do not come in time gives its seats back and starts over.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_core::Event;
use muster_core::plan::{Action, StopReason};
use muster_core::time::Time;
use serde_json::{Value, json};

use super::super::Host;
use super::super::orders::parts;
use super::around::namespace;
use super::resolve::Shop;
use super::volumes::{Claim, SELECTED_NODE, Store, annotation, claims, stands};
use crate::hands::Said;
use crate::intake::Interest;
use crate::shelf::Key;

/// A gang that waits for its volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choosing {
    /// Since when.
    since: Time,
    /// Where its pods will be bound.
    pods: BTreeMap<Key, Arc<str>>,
    /// The claims that have no volume yet, and the nodes they were told.
    open: BTreeMap<String, Arc<str>>,
}

impl Choosing {
    /// What a person is told meanwhile.
    pub(in super::super) fn in_words(&self) -> String {
        let names: Vec<&str> = self.open.keys().map(|key| parts(key).1).collect();
        format!("waits for its volumes: {}", names.join(", "))
    }
}

impl Host {
    /// The node that a pod's volumes were told to be made for, if any were.
    pub(in super::super) fn told_to(&self, gang: &str, key: &str) -> Option<Arc<str>> {
        let chosen = self.groups.get(gang).and_then(|group| group.choosing.as_ref());
        if let Some(node) = chosen.and_then(|chosen| chosen.pods.get(key)) {
            return Some(node.clone());
        }
        let pod = self.mirror.pods.get(key)?;
        let shop = Shop { host: self, gang };
        let told = |name: &String| {
            let claim = shop.claim(namespace(pod), name)?;
            annotation(claim, SELECTED_NODE).map(Arc::from)
        };
        claims(pod).iter().find_map(told)
    }

    /// Whether every volume of these pods is there. If not, those that wait for their pod are told where it goes.
    pub(in super::super) fn volumes_are_there(
        &mut self,
        gang: &Arc<str>,
        told: &[(Key, Arc<str>)],
    ) -> bool {
        let shop = Shop { host: self, gang };
        let mut open: BTreeMap<String, Arc<str>> = BTreeMap::new();
        let mut untold: Vec<(String, Arc<str>)> = Vec::new();
        for (key, node) in told {
            let Some(pod) = self.mirror.pods.get(key) else { continue };
            for name in claims(pod) {
                let at = format!("{}/{name}", namespace(pod));
                let claim = shop.claim(namespace(pod), &name);
                match claim.map(|claim| (stands(claim, &shop), annotation(claim, SELECTED_NODE))) {
                    Some((Claim::Has(_), _)) => continue,
                    Some((Claim::WaitsForPod(_), selected)) if selected != Some(&**node) => {
                        untold.push((at.clone(), node.clone()));
                    }
                    _ => {}
                }
                open.insert(at, node.clone());
            }
        }
        let now = self.now();
        let group = self.groups.get_mut(gang).expect("followed");
        if open.is_empty() {
            group.choosing = None;
            return true;
        }
        let since = group.choosing.as_ref().map_or(now, |chosen| chosen.since);
        let before = group.choosing.take().unwrap_or(Choosing {
            since,
            pods: BTreeMap::new(),
            open: BTreeMap::new(),
        });
        untold.retain(|(claim, node)| before.open.get(claim) != Some(node));
        group.choosing = Some(Choosing { since, pods: told.iter().cloned().collect(), open });
        for (claim, node) in untold {
            self.annotate(claim, json!(node));
        }
        false
    }

    /// Gangs whose volumes did not come in time start over. What was said to their claims is taken back, so that they may
    /// be made elsewhere.
    pub(in super::super) fn tire_of_volumes(&mut self) {
        let now = self.now();
        let patience = self.config.volume_patience;
        let late = |name: &&Arc<str>| {
            let group = self.groups.get(name);
            let chosen = group.and_then(|group| group.choosing.as_ref());
            chosen.is_some_and(|chosen| now.since(chosen.since) >= patience)
        };
        let late: Vec<Arc<str>> = self.groups.names().filter(late).cloned().collect();
        for name in late {
            let group = self.groups.get_mut(&name).expect("just seen");
            let chosen = group.choosing.take().expect("just seen");
            tracing::info!(gang = &*name, "{}, and starts over", chosen.in_words());
            for claim in chosen.open.into_keys() {
                self.annotate(claim, Value::Null);
            }
            let group = self.groups.get(&name).expect("just seen");
            let nobody = self.standing(group).bound.is_empty();
            if let Some(id) = self.world.gang_named(&name).filter(|_| nobody) {
                // Those that are bound already keep their seats, and the one that came later tries again.
                let reason = StopReason::Moved;
                self.happened(&Event::Decided(Action::Stop { gang: id, reason }));
            }
            self.dirty.gangs.insert(name);
        }
    }

    /// Gangs that wait for volumes look again: some may be there.
    pub(in super::super) fn look_for_volumes(&mut self) {
        let waits =
            |name: &&Arc<str>| self.groups.get(name).is_some_and(|group| group.choosing.is_some());
        let names: Vec<Arc<str>> = self.groups.names().filter(waits).cloned().collect();
        self.dirty.gangs.extend(names);
    }

    fn annotate(&self, claim: String, node: Value) {
        let Some(kind) = self.sources.resource(Interest::VolumeClaim) else { return };
        let hands = self.hands.clone();
        let (namespace, _) = parts(&claim);
        let claims: Api<DynamicObject> =
            Api::namespaced_with(hands.client.clone(), namespace, kind);
        tokio::spawn(async move {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            match hands.patch(&claims, parts(&claim).1, &patch).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => tracing::warn!(claim, %said, "not told where its pod goes"),
            }
        });
    }
}
