//! Seats become bindings: every pod of a gang is told its node, once that is written down.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use muster_core::id::GangId;
use muster_core::time::Span;

use super::gangs::Standing;
use super::orders::parts;
use super::{Host, Told};
use crate::hands::{Hands, Said};
use crate::shelf::Key;

impl Host {
    /// Binds pods to seats that nobody has taken. Before a gang runs, nothing is bound unless there are pods for the
    /// minimum of every role: who waits for members that do not exist holds seats, and starts nobody.
    pub(super) fn fill_seats(&mut self, name: &Arc<str>, id: GangId, standing: &Standing) {
        let group = self.groups.get(name).expect("followed");
        let gang = self.world.gang(id).expect("followed");
        if !group.recorded || standing.free.is_empty() {
            return;
        }
        let mut open: BTreeMap<u16, Vec<Arc<str>>> = BTreeMap::new();
        // Who is being resized fills the seats it will have.
        let seats = gang.resize.as_ref().map_or(&gang.seats, |resize| &resize.to);
        for seat in seats {
            let Some(node) = self.world.node_name(seat.node) else { continue };
            let seats = open.entry(seat.role).or_default();
            seats.extend((0..seat.members).map(|_| node.clone()));
        }
        let mut there: BTreeMap<u16, u32> = BTreeMap::new();
        for (key, node) in &standing.bound {
            let Some(role) = group.roles.get(key) else { continue };
            *there.entry(*role).or_default() += 1;
            if let Some(seats) = open.get_mut(role)
                && let Some(at) = seats.iter().position(|seat| seat == node)
            {
                seats.remove(at);
            }
        }
        for key in &standing.free {
            *group.roles.get(key).map(|role| there.entry(*role).or_default()).unwrap_or(&mut 0) +=
                1;
        }
        let enough = gang
            .spec
            .roles
            .iter()
            .enumerate()
            .all(|(at, role)| there.get(&(at as u16)).copied().unwrap_or(0) >= role.min);
        if !enough && standing.bound.is_empty() {
            return;
        }
        let mut told = Vec::new();
        for key in &standing.free {
            let Some(role) = group.roles.get(key) else { continue };
            let Some(seats) = open.get_mut(role).filter(|seats| !seats.is_empty()) else {
                continue;
            };
            told.push((key.clone(), seats.remove(0)));
        }
        for (key, node) in told {
            self.bind(name, &key, &node);
        }
    }

    fn bind(&mut self, gang: &Arc<str>, key: &Key, node: &Arc<str>) {
        let Some(pod) = self.mirror.pods.get(key) else { return };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.groups.get_mut(gang).expect("followed").assigned.insert(key.clone(), node.clone());
        let (hands, told) = (self.hands.clone(), self.told.clone());
        let (gang, key, node) = (gang.clone(), key.clone(), node.clone());
        tokio::spawn(async move {
            if let Err(said) = bind(&hands, &key, &uid, &node).await {
                tracing::info!(pod = &*key, node = &*node, %said, "not bound");
                let _ = told.send(Told::NotBound { gang, pod: key });
            }
        });
    }

    /// Sends pods away, each with its time to end in order.
    pub(super) fn send_away(&mut self, name: &Arc<str>, pods: &[(Key, Arc<str>)], grace: Span) {
        for (key, _) in pods {
            let Some(pod) = self.mirror.pods.get(key).cloned() else { continue };
            let group = self.groups.get_mut(name).expect("followed");
            if !group.leaving.insert(key.clone()) || pod.is_leaving() {
                continue;
            }
            let (hands, key) = (self.hands.clone(), key.clone());
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let grace = u32::try_from(grace.0 / 1_000).unwrap_or(u32::MAX);
            tokio::spawn(async move {
                match delete(&hands, &key, &uid, grace).await {
                    Ok(()) | Err(Said::Gone | Said::NotLeader) => {}
                    Err(said) => tracing::warn!(pod = &*key, %said, "not sent away"),
                }
            });
        }
    }
}

/// Binds a pod to a node, and only this pod: one of the same name that came later is another.
async fn bind(hands: &Hands, key: &str, uid: &str, node: &str) -> Result<(), Said> {
    let (namespace, name) = parts(key);
    let body = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let body = serde_json::to_vec(&body).expect("plain JSON");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let bound = hands
        .ask(|| async {
            let request =
                http::Request::post(&path).body(body.clone()).map_err(kube::Error::HttpError)?;
            hands.client.request::<serde_json::Value>(request).await
        })
        .await;
    match bound {
        Ok(_) => Ok(()),
        Err(Said::Conflict(why)) => {
            // Asked twice because the first answer was lost: look where it is.
            let pods: Api<AnyPod> = Api::namespaced(hands.client.clone(), namespace);
            let pod = hands.ask(|| pods.get(name)).await?;
            let same = pod.metadata.uid.as_deref() == Some(uid);
            let there = pod.spec.and_then(|spec| spec.node_name);
            if same && there.as_deref() == Some(node) { Ok(()) } else { Err(Said::Conflict(why)) }
        }
        Err(said) => Err(said),
    }
}

async fn delete(hands: &Hands, key: &str, uid: &str, grace: u32) -> Result<(), Said> {
    let (namespace, name) = parts(key);
    let pods: Api<AnyPod> = Api::namespaced(hands.client.clone(), namespace);
    let condition = serde_json::json!({"status": {"conditions": [{
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "Muster stops the whole gang",
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    }]}});
    let (params, patch) = (PatchParams::default(), Patch::Strategic(condition));
    hands.ask(|| pods.patch_status(name, &params, &patch)).await?;
    let options = DeleteParams {
        grace_period_seconds: Some(grace),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    hands.delete(&pods, name, &options).await
}
