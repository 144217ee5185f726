//! Events, for those who look with `kubectl describe`: what became of a gang, each time it becomes something else.
//!
//! They are told to people, so there are never more than people can read: the same again is counted on the first, and a
//! crowd of gangs that start at once is told of in part. The status of a gang is always complete.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use muster_api::crd::GangPhase;

use super::Host;
use super::orders::parts;
use crate::intake::{Interest, Origin};

/// Events in a burst, and how often there is one more.
const BURST: u32 = 25;
const EVERY: Duration = Duration::from_millis(500);

/// Writes events, as many as can be read.
#[derive(Clone)]
pub(super) struct Crier {
    recorder: Recorder,
    left: u32,
    filled: Instant,
}

impl Crier {
    pub(super) fn new(client: Client, identity: Option<String>) -> Self {
        let reporter =
            Reporter { controller: "muster.sh/controller".to_owned(), instance: identity };
        Self { recorder: Recorder::new(client, reporter), left: BURST, filled: Instant::now() }
    }

    /// Whether one more may be told.
    fn may_speak(&mut self) -> bool {
        let more = self.filled.elapsed().as_millis() / EVERY.as_millis();
        if more > 0 {
            self.left = BURST.min(self.left + u32::try_from(more).unwrap_or(BURST));
            self.filled = Instant::now();
        }
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
        true
    }
}

impl Host {
    /// Tells of what a gang has become.
    pub(super) fn announce(&mut self, name: &Arc<str>, phase: GangPhase, message: &str) {
        let (type_, reason) = match phase {
            GangPhase::Waiting => (EventType::Normal, "Waiting"),
            GangPhase::Provisioning => (EventType::Normal, "Provisioning"),
            GangPhase::Admitted => (EventType::Normal, "Admitted"),
            GangPhase::Running => (EventType::Normal, "Running"),
            GangPhase::Stopping => (EventType::Warning, "Stopping"),
            GangPhase::Impossible => (EventType::Warning, "Impossible"),
            GangPhase::Succeeded => (EventType::Normal, "Succeeded"),
            GangPhase::Failed => (EventType::Warning, "Failed"),
        };
        self.cry(name, type_, (reason, "Schedule"), message);
    }

    /// Tells of something that has happened to a gang. Events that differ in their words alone are counted as one, and
    /// the first words stay: those that say something else each time need another action.
    pub(super) fn cry(
        &mut self,
        name: &Arc<str>,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        let Some(about) = self.reference(name) else { return };
        if !self.hands.may_act() || !self.crier.may_speak() {
            return;
        }
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        let (recorder, hands) = (self.crier.recorder.clone(), self.hands.clone());
        tokio::spawn(async move {
            hands.when_quiet().await;
            // Who misses an event still has the status.
            if let Err(error) = recorder.publish(&event, &about).await {
                tracing::debug!(%error, "an event was not written");
            }
        });
    }

    /// What an event is about: the gang's object, or its only pod.
    fn reference(&self, name: &Arc<str>) -> Option<ObjectReference> {
        let (namespace, object) = parts(name);
        if let Some(Origin::Pod { namespace, name }) =
            self.groups.get(name).map(|group| &group.origin)
        {
            let pod = self.mirror.pods.get(&format!("{namespace}/{name}"))?;
            return Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectReference::default()
            });
        }
        let shelf = self.mirror.others.get(&self.sources.of(Interest::Gang)?)?;
        let uid = shelf.get(name)?.metadata.uid.clone();
        Some(ObjectReference {
            api_version: Some("muster.sh/v1alpha1".to_owned()),
            kind: Some("Gang".to_owned()),
            name: Some(object.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid,
            ..ObjectReference::default()
        })
    }
}
