//! What the planner says of each gang, where its owner looks: on the Gang, and on pods that wait.
//!
//! Written when it changes, and not more often than a person reads: a verdict that counts seconds would be written
//! every cycle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use muster_api::crd::{GangPhase, Members};
use muster_api::dialects::{self, State, StatusPatch};
use muster_api::words;
use muster_core::gang::{Phase, members_of};
use muster_core::id::GangId;
use muster_core::time::Span;
use muster_core::verdict::{Blocker, Verdict};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::Host;
use super::orders::{order_name, parts};
use crate::hands::Said;
use crate::intake::Origin;
use crate::shelf::Key;

/// How long the same phase may be told in old words.
const PAUSE: Duration = Duration::from_secs(5);
/// How long somebody must have waited to be told why: most wait for less than it takes to read.
const FIRST: Span = Span::secs(2);
/// Words of one gang, at most.
const WORDS_MAX: usize = 1_000;

/// What was last written of each gang.
#[derive(Debug, Default)]
pub(super) struct Written {
    gangs: FxHashMap<Arc<str>, Last>,
    pods: FxHashMap<Key, (&'static str, String)>,
}

/// What was last written of one gang, and when.
#[derive(Debug)]
struct Last {
    told: Told,
    at: Instant,
    /// It is on its way. Two at once could arrive in the wrong order, so the next waits.
    flying: bool,
}

/// What a gang's owner is told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    phase: GangPhase,
    reason: &'static str,
    message: String,
    members: Members,
    order: Option<String>,
    position: Option<u32>,
}

impl Host {
    /// Writes down what has changed in what the planner says.
    pub(super) fn write_verdicts(&mut self) {
        let verdicts = std::mem::take(&mut self.verdicts);
        for (id, verdict) in &verdicts {
            let Some(gang) = self.world.gang(*id) else { continue };
            let name = gang.spec.name.clone();
            if matches!(gang.phase, Phase::Admitted { .. }) {
                continue; // its placement is being written down, and says so
            }
            let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Provisioning { .. });
            if waits && self.now().since(gang.waits_since) < FIRST {
                self.unwritten = true;
                continue;
            }
            let told = self.told_of(*id, verdict);
            let known = self.written.gangs.get(&name);
            if known.is_some_and(|known| known.told == told) {
                continue;
            }
            let is_new = known.is_none_or(|known| known.told.phase != told.phase);
            if known.is_some_and(|known| known.flying || (!is_new && known.at.elapsed() < PAUSE)) {
                self.unwritten = true;
                continue;
            }
            if is_new {
                self.announce(&name, told.phase, &told.message);
            }
            self.write_pods(&name, verdict, &told);
            let flying = self.write_gang(&name, verdict, &told);
            self.written.gangs.insert(name, Last { told, at: Instant::now(), flying });
        }
        self.verdicts = verdicts;
    }

    fn told_of(&self, id: GangId, verdict: &Verdict) -> Told {
        let gang = self.world.gang(id).expect("it has a verdict");
        let needs: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
        let has = members_of(&gang.seats);
        let (phase, reason, ready, total) = match verdict {
            Verdict::Admitted => (GangPhase::Admitted, "Admitted", 0, needs),
            Verdict::Running => (GangPhase::Running, "Running", has, has),
            Verdict::Stopping => (GangPhase::Stopping, "Stopping", 0, needs),
            Verdict::Provisioning { ready, total, .. } => {
                (GangPhase::Provisioning, "Provisioning", *ready, *total)
            }
            Verdict::Waiting { blockers, .. } => (GangPhase::Waiting, reason(blockers), 0, needs),
            Verdict::Impossible { .. } => (GangPhase::Impossible, "Impossible", 0, needs),
        };
        let position = match verdict {
            Verdict::Waiting { position, .. } => Some(*position),
            _ => None,
        };
        let mut message = words::verdict(&self.world, id, verdict);
        message.truncate(
            (0..=WORDS_MAX.min(message.len()))
                .rev()
                .find(|at| message.is_char_boundary(*at))
                .unwrap_or(0),
        );
        let members = Members {
            ready: i32::try_from(ready).unwrap_or(i32::MAX),
            total: i32::try_from(total).unwrap_or(i32::MAX),
        };
        let order = match verdict {
            Verdict::Provisioning { order, .. } => Some(order_name(*order)),
            _ => None,
        };
        Told { phase, reason, message, members, order, position }
    }

    /// Tells a gang's object, and that of another dialect in its own words. Whether there is anything to tell.
    fn write_gang(&self, name: &Arc<str>, verdict: &Verdict, told: &Told) -> bool {
        let Some(group) = self.groups.get(name) else { return false };
        if matches!(group.origin, Origin::Pod { .. }) {
            return false;
        }
        let own = self.gang_objects(name).map(|objects| (objects, status(told)));
        let theirs = self.group_patch(name, verdict, told);
        let (hands, name, written) = (self.hands.clone(), name.clone(), self.told.clone());
        tokio::spawn(async move {
            if let Some((objects, object, patch)) = theirs {
                let said = match patch.subresource {
                    true => hands.patch_status(&objects, &object, &patch.patch).await.err(),
                    false => hands.patch(&objects, &object, &patch.patch).await.err(),
                };
                complain(&name, said);
            }
            if let Some((objects, status)) = own {
                complain(&name, hands.patch_status(&objects, parts(&name).1, &status).await.err());
            }
            let _ = written.send(super::Told::Written(name));
        });
        true
    }

    /// What the object of another dialect is told, and where it is.
    fn group_patch(
        &self,
        name: &Arc<str>,
        verdict: &Verdict,
        told: &Told,
    ) -> Option<(Api<DynamicObject>, String, StatusPatch)> {
        let Origin::Group(of) = &self.groups.get(name)?.origin else { return None };
        let (interest, mut object) = self.group_object(name)?;
        let kind = self.sources.resource(interest)?;
        object["apiVersion"] = json!(kind.api_version);
        let state = self.state_of(name, verdict, told);
        let patch = dialects::status(of.dialect, &object, &state, self.now())?;
        let objects = Api::namespaced_with(self.hands.client.clone(), &of.namespace, kind);
        Some((objects, of.object().to_owned(), patch))
    }

    /// What was on its way has arrived.
    pub(super) fn has_written(&mut self, name: &str) {
        if let Some(last) = self.written.gangs.get_mut(name) {
            last.flying = false;
        }
    }

    /// Where a gang stands, in words that every dialect has.
    fn state_of(&self, name: &Arc<str>, verdict: &Verdict, told: &Told) -> State {
        match verdict {
            Verdict::Waiting { blockers, .. } => State::Waiting {
                why: told.message.clone(),
                node_would_help: helped_by_nodes(&self.world, blockers),
            },
            Verdict::Stopping => {
                State::Waiting { why: told.message.clone(), node_would_help: false }
            }
            Verdict::Provisioning { ready, total, .. } => {
                State::Provisioning { ready: *ready, total: *total }
            }
            Verdict::Admitted => State::Admitted,
            Verdict::Running => self.counts(name),
            Verdict::Impossible { .. } => State::Impossible { why: told.message.clone() },
        }
    }

    /// How many of a gang's pods run, are done and failed.
    fn counts(&self, name: &str) -> State {
        let pods = self.groups.get(name).map(|group| &group.pods).into_iter().flatten();
        let (mut running, mut succeeded, mut failed) = (0, 0, 0);
        for pod in pods.filter_map(|key| self.mirror.pods.get(key)) {
            match &*pod.status.phase {
                "Succeeded" => succeeded += 1,
                "Failed" => failed += 1,
                _ if pod.node().is_some() => running += 1,
                _ => {}
            }
        }
        State::Running { running, succeeded, failed }
    }

    /// Pods of a gang that waits are told why. To every autoscaler `Unschedulable` means that one more node would
    /// help this pod: that is never true for who waits for room under a limit, for its turn, or for nodes that Muster
    /// gets itself.
    fn write_pods(&mut self, name: &Arc<str>, verdict: &Verdict, told: &Told) {
        let reason = match verdict {
            Verdict::Waiting { blockers, .. } if helped_by_nodes(&self.world, blockers) => {
                "Unschedulable"
            }
            Verdict::Waiting { .. } | Verdict::Impossible { .. } => "WaitingForTurn",
            Verdict::Provisioning { .. } => "WaitingForNodes",
            Verdict::Admitted | Verdict::Running | Verdict::Stopping => return,
        };
        let Some(group) = self.groups.get(name) else { return };
        for key in self.standing(group).free {
            let same = |(was, message): &(&str, String)| *was == reason && *message == told.message;
            if self.written.pods.get(&key).is_some_and(same) {
                continue;
            }
            self.written.pods.insert(key.clone(), (reason, told.message.clone()));
            let patch = json!({"status": {"conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": told.message,
                "lastTransitionTime": jiff::Timestamp::now().round(jiff::Unit::Second).map(|at| at.to_string()).unwrap_or_default(),
            }]}});
            let hands = self.hands.clone();
            tokio::spawn(async move {
                let (namespace, pod) = parts(&key);
                let pods: Api<AnyPod> = Api::namespaced(hands.client.clone(), namespace);
                let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
                // One that was bound or is gone meanwhile needs no reason any more.
                let _ = hands.ask(|| pods.patch_status(pod, &params, &patch)).await;
            });
        }
    }

    /// A gang or a pod is no more.
    pub(super) fn unwrite(&mut self, name: &str) {
        self.written.gangs.remove(name);
    }

    pub(super) fn unwrite_pod(&mut self, key: &str) {
        self.written.pods.remove(key);
    }
}

fn complain(gang: &str, said: Option<Said>) {
    if let Some(said) = said.filter(|said| !matches!(said, Said::Gone | Said::NotLeader)) {
        tracing::warn!(gang, %said, "its status was not written");
    }
}

fn status(told: &Told) -> Value {
    json!({"status": {
        "phase": told.phase,
        "reason": told.reason,
        "message": told.message,
        "members": told.members,
        "progress": told.members.to_string(),
        "order": told.order,
        "position": told.position,
    }})
}

/// Why a gang waits, in one word.
fn reason(blockers: &[Blocker]) -> &'static str {
    match blockers.first() {
        None => "Waiting",
        Some(Blocker::Behind(_) | Blocker::NotConsidered | Blocker::SearchSpent) => "Behind",
        Some(Blocker::QueueLimit { .. }) => "QueueLimit",
        Some(Blocker::UserLimit { .. }) => "UserLimit",
        Some(Blocker::PoolsFull { .. }) => "PoolsFull",
        Some(Blocker::ProvisioningOff) => "NoRoom",
        Some(Blocker::CheaperToWait { .. }) => "CheaperToWait",
        Some(_) => "NoRoom",
    }
}

/// Whether another autoscaler could help: Muster has no pools of its own, and it is room that is missing.
fn helped_by_nodes(world: &muster_core::World, blockers: &[Blocker]) -> bool {
    let no_limit = |blocker: &Blocker| {
        !matches!(
            blocker,
            Blocker::QueueLimit { .. }
                | Blocker::UserLimit { .. }
                | Blocker::Behind(_)
                | Blocker::NotConsidered
        )
    };
    world.pools().is_empty() && blockers.iter().all(no_limit)
}
