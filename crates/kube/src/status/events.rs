//! Events, for those who look with `kubectl describe`: what became of a gang, each time it becomes something else.
//!
//! They are told to people, so there are never more than people can read: the same again is counted on the first, and a
//! crowd of gangs that start at once is told of in part. Each namespace has its own share, so that none is silenced by
//! what happens in another. The status of a gang is always complete.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use muster_api::crd::GangPhase;

use crate::cache::store::split_key;
use crate::host::Host;
use crate::objects::pod::Pod;

/// Pods of a gang that are told what it is told, at most: who looks at one looks at the first.
const PODS: usize = 3;
/// Events of one namespace in a burst, and how often there is one more.
const BURST: u32 = 25;
const EVERY: Duration = Duration::from_millis(500);
/// How long the answer to an event is waited for.
const MOST: Duration = Duration::from_secs(30);
/// The same for all namespaces together: what ten of them may have.
const BURST_OF_ALL: u32 = 10 * BURST;
const EVERY_OF_ALL: Duration = Duration::from_millis(50);
/// Namespaces at which those that may have a burst again are forgotten.
const SWEEP_AT: usize = 1_024;

/// Writes events, as many as can be read.
pub(crate) struct EventRecorder {
    recorder: Recorder,
    all: Share,
    of: BTreeMap<String, Share>,
}

/// Events that may still be told.
#[derive(Debug)]
struct Share {
    left: u32,
    filled: Instant,
}

impl Share {
    /// Adds what has come in meanwhile.
    fn fill(&mut self, now: Instant, burst: u32, every: Duration) {
        let more = now.saturating_duration_since(self.filled).as_millis() / every.as_millis();
        if more > 0 {
            self.left = burst.min(self.left.saturating_add(u32::try_from(more).unwrap_or(burst)));
            self.filled = now;
        }
    }
}

impl EventRecorder {
    pub(crate) fn new(client: Client, identity: Option<String>) -> Self {
        let reporter =
            Reporter { controller: "muster.sh/controller".to_owned(), instance: identity };
        let all = Share { left: BURST_OF_ALL, filled: Instant::now() };
        Self { recorder: Recorder::new(client, reporter), all, of: BTreeMap::new() }
    }

    /// Whether one more may be told of this namespace.
    fn may_speak(&mut self, namespace: &str, now: Instant) -> bool {
        self.all.fill(now, BURST_OF_ALL, EVERY_OF_ALL);
        if self.all.left == 0 {
            return false;
        }
        if self.of.len() >= SWEEP_AT && !self.of.contains_key(namespace) {
            let is_full =
                |share: &Share| now.saturating_duration_since(share.filled) > EVERY * BURST;
            self.of.retain(|_, share| !is_full(share));
        }
        let new = || Share { left: BURST, filled: now };
        let share = self.of.entry(namespace.to_owned()).or_insert_with(new);
        share.fill(now, BURST, EVERY);
        if share.left == 0 {
            return false;
        }
        (share.left, self.all.left) = (share.left - 1, self.all.left - 1);
        true
    }
}

impl Host {
    /// Tells of what a gang has become.
    pub(crate) fn record_phase(&mut self, name: &Arc<str>, phase: GangPhase, message: &str) {
        let (type_, reason) = match phase {
            GangPhase::Waiting => (EventType::Normal, "Waiting"),
            GangPhase::Provisioning => (EventType::Normal, "Provisioning"),
            GangPhase::Admitted => (EventType::Normal, "Admitted"),
            GangPhase::Running => (EventType::Normal, "Running"),
            GangPhase::Stopping => (EventType::Warning, "Stopping"),
            GangPhase::Infeasible => (EventType::Warning, "Infeasible"),
            GangPhase::Succeeded => (EventType::Normal, "Succeeded"),
            GangPhase::Failed => (EventType::Warning, "Failed"),
        };
        if phase == GangPhase::Running {
            return self.record_start(name, message);
        }
        self.record_event(name, type_, (reason, "Schedule"), message);
    }

    /// A gang runs: its pods say where, in the words of every scheduler.
    fn record_start(&mut self, name: &Arc<str>, message: &str) {
        if let Some(about) = self.gang_reference(name) {
            self.record_event_about(about, EventType::Normal, ("Running", "Schedule"), message);
        }
        let told = self.first_pods(name, |pod| pod.node().is_some());
        for (about, node) in told {
            let note = format!("assigned to {node} together with all of gang {name}");
            self.record_event_about(about, EventType::Normal, ("Scheduled", "Binding"), &note);
        }
    }

    /// Tells of something that has happened to a gang: on its object, or on what it is made of while it has none, and on the
    /// first of its pods, where its owner may look first. Events that differ in their words alone are counted as one, and
    /// the first words stay: those that say something else each time need another action.
    pub(crate) fn record_event(
        &mut self,
        name: &Arc<str>,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        if let Some(about) = self.gang_reference(name) {
            self.record_event_about(about, type_, (reason, action), note);
        }
        for (about, _) in self.first_pods(name, |_| true) {
            self.record_event_about(about, type_, (reason, action), note);
        }
    }

    /// Tells of something that has happened to an object.
    pub(crate) fn record_event_about(
        &mut self,
        about: ObjectReference,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        let namespace = about.namespace.as_deref().unwrap_or_default();
        if self.writer.is_leader() && self.events.may_speak(namespace, Instant::now()) {
            self.publish(about, type_, (reason, action), note);
        }
    }

    /// Tells of something beside all that is told to gangs, for callers that bound it themselves.
    pub(crate) fn publish(
        &self,
        about: ObjectReference,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        let (recorder, hands) = (self.events.recorder.clone(), self.writer.clone());
        tokio::spawn(async move {
            hands.when_bindings_are_done().await;
            // Who misses an event still has the status.
            match tokio::time::timeout(MOST, recorder.publish(&event, &about)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "an event was not written"),
                Err(_) => tracing::debug!("an event was not written: no answer"),
            }
        });
    }

    /// What an event of a gang is about besides its pods.
    fn gang_reference(&self, name: &Arc<str>) -> Option<ObjectReference> {
        let (namespace, object) = split_key(name);
        if let Some(gang) = self.gang_object(name) {
            return Some(ObjectReference {
                api_version: Some("muster.sh/v1alpha1".to_owned()),
                kind: Some("Gang".to_owned()),
                name: Some(object.to_owned()),
                namespace: Some(namespace.to_owned()),
                uid: gang.metadata.uid.clone(),
                ..ObjectReference::default()
            });
        }
        let template_gang_of = self.owner_reference(&self.gangs.get(name)?.source)?;
        Some(ObjectReference {
            api_version: Some(template_gang_of.api_version),
            kind: Some(template_gang_of.kind),
            name: Some(template_gang_of.name),
            namespace: Some(namespace.to_owned()),
            uid: Some(template_gang_of.uid),
            ..ObjectReference::default()
        })
    }

    /// The first of a gang's pods that are so, and their nodes.
    fn first_pods(
        &self,
        name: &str,
        is_so: impl Fn(&Pod) -> bool,
    ) -> Vec<(ObjectReference, String)> {
        let pods = self.gangs.get(name).into_iter().flat_map(|group| &group.pods);
        let pods = pods.filter_map(|key| self.cache.pods.get(key)).filter(|pod| is_so(pod));
        let told = pods.take(PODS).map(|pod| {
            let about = ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectReference::default()
            };
            (about, pod.node().unwrap_or_default().to_owned())
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::status::events::*;

    #[tokio::test]
    async fn a_crowd_is_told_of_in_part() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let mut crier = EventRecorder::new(Client::try_from(nowhere).expect("a client"), None);
        let start = crier.all.filled;
        let said = |crier: &mut EventRecorder, at: Instant| {
            (0..100).filter(|_| crier.may_speak("loud", at)).count()
        };
        assert_eq!(said(&mut crier, start), 25);
        assert_eq!(said(&mut crier, start + EVERY / 2), 0);
        assert_eq!(said(&mut crier, start + EVERY), 1);
        assert_eq!(said(&mut crier, start + EVERY * 5), 4);
        // However long nobody spoke.
        assert_eq!(said(&mut crier, start + EVERY * 100_000), 25);
        assert!(crier.may_speak("other", start + EVERY * 100_000), "another namespace is silenced");
        // All together cannot say more than can be written either.
        let all =
            (0..100_000).filter(|at| crier.may_speak(&at.to_string(), start + EVERY * 100_000));
        assert_eq!(all.count(), 250 - 26);
        assert!(crier.may_speak("loud", start + EVERY * 100_100));
    }
}
