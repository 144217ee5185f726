//! Records Events, for `kubectl describe`: each change of a gang's phase, and problems with objects.
//!
//! Events are for people, so their rate is limited: equal Events are counted on the first, and when many gangs start at once
//! only some have Events. Each namespace has its own limit, so that none uses up that of another. The status of a gang is
//! always complete.

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

/// The pods of a gang that get its Events, at most: users look at the first.
const PODS_MAX: usize = 3;
/// Events of one namespace in a burst, and the interval of further ones.
const BURST: u32 = 25;
const EVERY: Duration = Duration::from_millis(500);
/// The timeout of a request that writes an Event.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The limits of all namespaces together: those of ten namespaces.
const BURST_OF_ALL: u32 = 10 * BURST;
const EVERY_OF_ALL: Duration = Duration::from_millis(50);
/// Number of namespaces at which those with a full bucket are forgotten.
const SWEEP_AT: usize = 1_024;

/// Records Events at a limited rate.
pub(crate) struct EventRecorder {
    recorder: Recorder,
    all: TokenBucket,
    by_namespace: BTreeMap<String, TokenBucket>,
}

/// The Events that may still be written.
#[derive(Debug)]
struct TokenBucket {
    left: u32,
    filled: Instant,
}

impl TokenBucket {
    /// Adds the tokens of the time since the last refill.
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
        let all = TokenBucket { left: BURST_OF_ALL, filled: Instant::now() };
        Self { recorder: Recorder::new(client, reporter), all, by_namespace: BTreeMap::new() }
    }

    /// Takes a token for one more Event of a namespace. Returns whether there was one.
    fn take_token(&mut self, namespace: &str, now: Instant) -> bool {
        self.all.fill(now, BURST_OF_ALL, EVERY_OF_ALL);
        if self.all.left == 0 {
            return false;
        }
        if self.by_namespace.len() >= SWEEP_AT && !self.by_namespace.contains_key(namespace) {
            let is_full =
                |bucket: &TokenBucket| now.saturating_duration_since(bucket.filled) > EVERY * BURST;
            self.by_namespace.retain(|_, bucket| !is_full(bucket));
        }
        let new = || TokenBucket { left: BURST, filled: now };
        let bucket = self.by_namespace.entry(namespace.to_owned()).or_insert_with(new);
        bucket.fill(now, BURST, EVERY);
        if bucket.left == 0 {
            return false;
        }
        (bucket.left, self.all.left) = (bucket.left - 1, self.all.left - 1);
        true
    }
}

impl Host {
    /// Records the new phase of a gang.
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

    /// Records that a gang runs. Its pods get the Event `Scheduled`, as every scheduler records it.
    fn record_start(&mut self, name: &Arc<str>, message: &str) {
        if let Some(about) = self.gang_reference(name) {
            self.record_event_about(about, EventType::Normal, ("Running", "Schedule"), message);
        }
        for (about, node) in self.first_pods(name, |pod| pod.node().is_some()) {
            let note = format!("assigned to {node} together with all of gang {name}");
            self.record_event_about(about, EventType::Normal, ("Scheduled", "Binding"), &note);
        }
    }

    /// Records an Event of a gang: on its Gang object, or on its source while it has none, and on the first of its pods.
    /// Events that differ only in their note are counted as one, and the first note stays: an Event whose note must be
    /// seen each time needs another action.
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

    /// Records an Event of an object, if the rate limit allows it.
    pub(crate) fn record_event_about(
        &mut self,
        about: ObjectReference,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        let namespace = about.namespace.as_deref().unwrap_or_default();
        if self.writer.is_leader() && self.events.take_token(namespace, Instant::now()) {
            self.publish(about, type_, (reason, action), note);
        }
    }

    /// Writes an Event without a rate limit, for callers that have their own.
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
        let (recorder, writer) = (self.events.recorder.clone(), self.writer.clone());
        tokio::spawn(async move {
            writer.when_bindings_are_done().await;
            // A lost Event is not retried: the status has the same information.
            match tokio::time::timeout(REQUEST_TIMEOUT, recorder.publish(&event, &about)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "an event was not written"),
                Err(_) => tracing::debug!("an event was not written: no answer"),
            }
        });
    }

    /// The object besides its pods that gets the Events of a gang.
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
        let owner = self.owner_reference(&self.gangs.get(name)?.source)?;
        Some(ObjectReference {
            api_version: Some(owner.api_version),
            kind: Some(owner.kind),
            name: Some(owner.name),
            namespace: Some(namespace.to_owned()),
            uid: Some(owner.uid),
            ..ObjectReference::default()
        })
    }

    /// The first of a gang's pods that match, and their nodes.
    fn first_pods(
        &self,
        name: &str,
        matches: impl Fn(&Pod) -> bool,
    ) -> Vec<(ObjectReference, String)> {
        let pods = self.gangs.get(name).into_iter().flat_map(|record| &record.pods);
        let pods = pods.filter_map(|key| self.cache.pods.get(key)).filter(|pod| matches(pod));
        let first = pods.take(PODS_MAX).map(|pod| {
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
        first.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::status::events::*;

    #[tokio::test]
    async fn events_are_limited_per_namespace_and_in_total() {
        let unreachable = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(unreachable).expect("a client");
        let mut recorder = EventRecorder::new(client, None);
        let start = recorder.all.filled;
        let events = |recorder: &mut EventRecorder, at: Instant| {
            (0..100).filter(|_| recorder.take_token("loud", at)).count()
        };
        assert_eq!(events(&mut recorder, start), 25);
        assert_eq!(events(&mut recorder, start + EVERY / 2), 0);
        assert_eq!(events(&mut recorder, start + EVERY), 1);
        assert_eq!(events(&mut recorder, start + EVERY * 5), 4);
        // The burst is the same after any time without Events.
        let later = start + EVERY * 100_000;
        assert_eq!(events(&mut recorder, later), 25);
        assert!(recorder.take_token("other", later), "another namespace is limited");
        // All namespaces together have a limit, too.
        let all = (0..100_000).filter(|at| recorder.take_token(&at.to_string(), later));
        assert_eq!(all.count(), 250 - 26);
        assert!(recorder.take_token("loud", start + EVERY * 100_100));
    }
}
