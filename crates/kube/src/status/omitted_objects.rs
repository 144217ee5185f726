//! Reports objects that are left out, and why: in the log, in an Event on the object, and in the status of a Gang.
//!
//! An object that cannot be decoded, or exceeds the memory of its namespace, has no effect on others. Its users find the
//! field and the reason on the object. The reports of each namespace are limited, so that no tenant uses up the Events of
//! all.

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
use crate::cache::store::split_key;
use crate::host::Host;

/// The most objects that are remembered, so that each is reported once.
const REMEMBERED_MAX: usize = 10_000;
/// The most Events, and statuses of Gangs, that one namespace gets in one period.
const EVENTS: u32 = 10;
const STATUSES: u32 = 200;
const PERIOD: Duration = Duration::from_secs(600);
/// The longest note that the API server accepts.
const NOTE_MAX: usize = 1_000;

/// Objects that are left out, and their reports.
#[derive(Debug, Default)]
pub(crate) struct OmittedObjects {
    known: BTreeMap<(ObjectKind, Arc<str>), String>,
    reports: BTreeMap<String, NamespaceReports>,
}

/// The number of reports in one namespace.
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
        if is_known || (self.known.len() >= REMEMBERED_MAX && !self.known.contains_key(&at)) {
            return false;
        }
        self.known.insert(at, why.to_owned());
        true
    }

    /// Counts one more report of a namespace. Returns whether the limit allows it.
    fn count_report(
        &mut self,
        namespace: &str,
        now: Instant,
        (most, count): (u32, fn(&mut NamespaceReports) -> &mut u32),
    ) -> bool {
        self.reports.retain(|_, reports| now.saturating_duration_since(reports.since) < PERIOD);
        let reports = self.reports.entry(namespace.to_owned());
        let count =
            count(reports.or_insert(NamespaceReports { since: now, events: 0, statuses: 0 }));
        *count += 1;
        *count <= most
    }

    /// An object is no longer left out, or was deleted.
    pub(crate) fn forget(&mut self, which: ObjectKind, key: &Arc<str>) {
        if !self.known.is_empty() {
            self.known.remove(&(which, key.clone()));
        }
    }
}

impl Host {
    /// Reports that an object is left out, or that its earlier state still counts.
    pub(crate) fn record_omission(&mut self, which: ObjectKind, omission: &Omission) {
        let key = omission.key();
        if !self.omitted_objects.is_news(which, &key, &omission.why) {
            return;
        }
        let (api_version, kind) = self.kind_of(which);
        let effect =
            if self.cache.has(which, &key) { "its earlier state counts" } else { "left out" };
        tracing::warn!(kind, object = key, why = omission.why, "{effect}");
        let reason = match omission.reason {
            OmissionReason::Invalid => "InvalidSpec",
            OmissionReason::NamespaceFull => "NamespaceLimitReached",
        };
        let now = Instant::now();
        let mut note: String = omission.why.chars().take(NOTE_MAX).collect();
        if let Some(stored) = omission.stored {
            note = format!("{note} (the object has {stored} bytes)");
        }
        // Events of many gangs may have used up the common limit; this one is recorded once, under a limit of its own.
        if self.writer.is_leader()
            && self.omitted_objects.count_report(
                &omission.namespace,
                now,
                (EVENTS, |reports| &mut reports.events),
            )
        {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let about = ObjectReference {
                api_version: Some(api_version),
                kind: Some(kind),
                name: text(&omission.name),
                namespace: text(&omission.namespace),
                uid: text(&omission.uid),
                ..ObjectReference::default()
            };
            self.publish(about, EventType::Warning, (reason, "Read"), &note);
        }
        let is_gang = self.sources.of(KindRole::Gang).map(ObjectKind::Other) == Some(which);
        if is_gang
            && !self.cache.has(which, &key)
            && self.omitted_objects.count_report(
                &omission.namespace,
                now,
                (STATUSES, |reports| &mut reports.statuses),
            )
        {
            self.write_omitted_status(&key.into(), reason, &note);
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

    /// Writes on a Gang why it is left out.
    fn write_omitted_status(&mut self, name: &Arc<str>, reason: &str, why: &str) {
        let Some(gangs) = self.gang_api(name) else { return };
        let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
        let phase = GangPhase::Infeasible;
        let conditions = gang_conditions(phase, reason, why, before, self.now());
        let patch = json!({"status": {
            "phase": phase, "reason": reason, "message": why, "conditions": conditions,
        }});
        let (writer, gang) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            writer.when_bindings_are_done().await;
            match writer.patch_status(&gangs, split_key(&gang).1, &patch).await {
                Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => tracing::warn!(gang = &*gang, %error, "its status was not written"),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::status::omitted_objects::*;

    #[test]
    fn object_is_reported_once_and_again_when_the_reason_changes() {
        let mut omitted = OmittedObjects::default();
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too large"));
        assert!(!omitted.is_news(ObjectKind::Pod, "a/b", "too large"));
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too deep"));
        omitted.forget(ObjectKind::Pod, &"a/b".into());
        assert!(omitted.is_news(ObjectKind::Pod, "a/b", "too deep"));
    }

    #[test]
    fn one_namespace_does_not_use_up_the_reports_of_others() {
        let (mut omitted, now) = (OmittedObjects::default(), Instant::now());
        let mut events = |space: &str, at: Instant| {
            let reported =
                |_: &u32| omitted.count_report(space, at, (EVENTS, |reports| &mut reports.events));
            (0..100).filter(reported).count()
        };
        assert_eq!(events("a", now), 10);
        assert_eq!(events("a", now + PERIOD / 2), 0);
        assert_eq!(events("b", now), 10);
        assert_eq!(events("a", now + PERIOD), 10);
    }
}
