//! Says which objects are left out, and why: once in the log, in an Event on the object, and in the status of a Gang.
//!
//! An object that cannot be read, or is one too many for its namespace, changes nothing for anybody else. Its owner finds
//! the field and the reason where they look first. What one namespace is told is bounded, so that no tenant can use up the
//! Events of all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
use muster_api::crd::{GangPhase, gang_conditions};
use serde_json::json;

use crate::api::retry::ApiError;
use crate::api::watch::decode::{Omission, OmissionReason};
use crate::api::watch::watches::ObjectKind;
use crate::cache::kinds::KindRole;
use crate::host::Host;

/// Objects that are remembered, so that each is told of once.
const REMEMBERED: usize = 10_000;
/// What one namespace is told in one period, at most: Events, and statuses of Gangs.
const EVENTS: u32 = 10;
const STATUSES: u32 = 200;
const PERIOD: Duration = Duration::from_secs(600);
/// The longest note that the API server takes.
const NOTE: usize = 1_000;

/// Objects that are left out, and what was told of them.
#[derive(Debug, Default)]
pub(crate) struct OmittedObjects {
    known: BTreeMap<(ObjectKind, Arc<str>), String>,
    told: BTreeMap<String, NamespaceReports>,
}

/// What a namespace was told.
#[derive(Debug)]
struct NamespaceReports {
    since: Instant,
    events: u32,
    statuses: u32,
}

impl OmittedObjects {
    /// Whether it is news that an object is left out for this reason.
    fn is_news(&mut self, which: ObjectKind, key: &str, why: &str) -> bool {
        let at = (which, Arc::from(key));
        let is_known = self.known.get(&at).is_some_and(|known| known == why);
        if is_known || (self.known.len() >= REMEMBERED && !self.known.contains_key(&at)) {
            return false;
        }
        self.known.insert(at, why.to_owned());
        true
    }

    /// Whether a namespace may be told one more of these.
    fn may_tell(
        &mut self,
        namespace: &str,
        now: Instant,
        (most, count): (u32, fn(&mut NamespaceReports) -> &mut u32),
    ) -> bool {
        self.told.retain(|_, told| now.saturating_duration_since(told.since) < PERIOD);
        let told = self.told.entry(namespace.to_owned());
        let count = count(told.or_insert(NamespaceReports { since: now, events: 0, statuses: 0 }));
        *count += 1;
        *count <= most
    }

    /// An object was taken in after all, or is gone.
    pub(crate) fn forget(&mut self, which: ObjectKind, key: &Arc<str>) {
        if !self.known.is_empty() {
            self.known.remove(&(which, key.clone()));
        }
    }
}

impl Host {
    /// An object is not taken in as it is.
    pub(crate) fn record_omission(&mut self, which: ObjectKind, left: &Omission) {
        let key = left.key();
        if !self.omitted_objects.is_news(which, &key, &left.why) {
            return;
        }
        let (api_version, kind) = self.kind_of(which);
        let was = if self.cache.has(which, &key) { "it counts as it was" } else { "left out" };
        tracing::warn!(kind, object = key, why = left.why, "{was}");
        let reason = match left.reason {
            OmissionReason::Invalid => "InvalidSpec",
            OmissionReason::NamespaceFull => "NamespaceLimitReached",
        };
        let now = Instant::now();
        let mut note: String = left.why.chars().take(NOTE).collect();
        if let Some(stored) = left.stored {
            note = format!("{note} (the object has {stored} bytes)");
        }
        // A crowd of gangs that has used up what is told to people must not keep this from its owner: it is told once.
        if self.writer.is_leader()
            && self.omitted_objects.may_tell(
                &left.namespace,
                now,
                (EVENTS, |told| &mut told.events),
            )
        {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let about = ObjectReference {
                api_version: Some(api_version),
                kind: Some(kind),
                name: text(&left.name),
                namespace: text(&left.namespace),
                uid: text(&left.uid),
                ..ObjectReference::default()
            };
            self.publish(about, EventType::Warning, (reason, "Read"), &note);
        }
        let is_gang = self.sources.of(KindRole::Gang).map(ObjectKind::Other) == Some(which);
        if is_gang
            && !self.cache.has(which, &key)
            && self.omitted_objects.may_tell(
                &left.namespace,
                now,
                (STATUSES, |told| &mut told.statuses),
            )
        {
            self.report_omitted(&key.into(), reason, &note);
        }
    }

    fn kind_of(&self, which: ObjectKind) -> (String, String) {
        match which {
            ObjectKind::Pod => ("v1".to_owned(), "Pod".to_owned()),
            ObjectKind::Node => ("v1".to_owned(), "Node".to_owned()),
            ObjectKind::Claim => ("karpenter.sh/v1".to_owned(), "NodeClaim".to_owned()),
            ObjectKind::Other(source) => {
                let kind = self.sources.resource(self.sources.role_of(source));
                kind.map(|kind| (kind.api_version.clone(), kind.kind.clone())).unwrap_or_default()
            }
        }
    }

    /// A Gang is told why it is not taken in.
    fn report_omitted(&mut self, name: &Arc<str>, reason: &str, why: &str) {
        let Some(gangs) = self.gang_api(name) else { return };
        let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
        let phase = GangPhase::Infeasible;
        let conditions = gang_conditions(phase, reason, why, before, self.now());
        let patch = json!({"status": {
            "phase": phase, "reason": reason, "message": why, "conditions": conditions,
        }});
        let (hands, gang) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            hands.when_bindings_are_done().await;
            let said = hands
                .patch_status(&gangs, crate::cache::store::split_key(&gang).1, &patch)
                .await
                .err();
            if let Some(said) =
                said.filter(|said| !matches!(said, ApiError::NotFound | ApiError::NotLeader))
            {
                tracing::warn!(gang = &*gang, %said, "was not told why it is left out");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::status::omitted_objects::*;

    #[test]
    fn an_object_is_told_of_once_and_again_when_the_reason_changes() {
        let mut omitted = OmittedObjects::default();
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too large"));
        assert!(!omitted.is_news(ObjectKind::Pod, "a/b", "too large"));
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too deep"));
        omitted.forget(ObjectKind::Pod, &"a/b".into());
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too deep"));
    }

    #[test]
    fn one_namespace_does_not_use_up_the_words_of_others() {
        let (mut omitted, now) = (OmittedObjects::default(), Instant::now());
        let mut events = |space: &str, at: Instant| {
            let told = |_: &u32| omitted.may_tell(space, at, (EVENTS, |told| &mut told.events));
            (0..100).filter(told).count()
        };
        assert_eq!(events("a", now), 10);
        assert_eq!(events("a", now + PERIOD / 2), 0);
        assert_eq!(events("b", now), 10);
        assert_eq!(events("a", now + PERIOD), 10);
    }
}
