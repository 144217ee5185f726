//! What happens to requests only because time passes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_api::words;
use muster_core::gang::Phase;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;

use crate::host::Host;
use crate::provision::requests_served::conditions::{BOOKING_EXPIRED, PROVISIONED};
use crate::provision::requests_served::reconcile::origin_of_gang;

/// How long a request may lack something that is made after it, such as its templates.
const PATIENCE: Span = Span::secs(20);
/// How long a request must have been impossible to be so for good: nodes that begin anew are away for seconds.
const SURE: Duration = Duration::from_secs(5);

impl Host {
    /// Requests whose time is over are.
    pub(crate) fn expire_requests(&mut self) {
        let now = self.now();
        let open = |name: &&Arc<str>| self.served_requests.is_open(name);
        let open: Vec<Arc<str>> = self.served_requests.known.keys().filter(open).cloned().collect();
        for name in open {
            match self.served_requests.known[&name].conditions.since(PROVISIONED) {
                Some(since) if now.since(since) >= self.config.booking_ttl => {
                    let message = "nobody came for all of its room in time";
                    self.say_last(
                        &name,
                        BOOKING_EXPIRED,
                        "CapacityReservationTimeExpired",
                        message,
                    );
                }
                Some(_) => {}
                None => self.expire(&name, now),
            }
        }
    }

    /// Gives up a request that has waited too long for what it lacks.
    fn expire(&mut self, name: &Arc<str>, now: Time) {
        let origin = origin_of_gang(name);
        let Some(made) = self.request_made(&origin) else { return };
        let age = now.since(made);
        let trouble = self.gangs.get(name).and_then(|group| group.blocked.clone());
        if let Some((trouble, _)) = trouble.filter(|_| age >= PATIENCE) {
            return self.fail(name, "Invalid", &trouble);
        }
        let valid_for = self.asked_by(&origin).ok().and_then(|asked| asked.valid_for);
        if valid_for.is_some_and(|valid_for| age >= valid_for) {
            return self.fail(name, "Expired", "its room was not there in time");
        }
        let gang = self.world.gang_named(name);
        let verdict = gang.and_then(|id| self.verdicts.iter().find(|(of, _)| *of == id));
        let verdict = verdict.filter(|(_, verdict)| matches!(verdict, Verdict::Impossible { .. }));
        let message = verdict.map(|(id, verdict)| words::verdict(&self.world, *id, verdict));
        let Some(known) = self.served_requests.known.get_mut(name) else { return };
        let Some(message) = message else {
            known.impossible = None;
            return;
        };
        if known.impossible.get_or_insert_with(Instant::now).elapsed() >= SURE {
            self.fail(name, "CapacityIsNotFound", &message);
        }
    }

    /// Requests of which nothing is left, and whose takers have started, were of use.
    pub(crate) fn settle_requests(&mut self) {
        let mut consumed: Vec<Arc<str>> = Vec::new();
        let world = &self.world;
        let starts = |taker: &Arc<str>| {
            let gang = world.gang_named(taker).and_then(|id| world.gang(id));
            gang.is_some_and(|gang| matches!(gang.phase, Phase::Admitted { .. }))
        };
        for (name, known) in &mut self.served_requests.known {
            known.takers.retain(starts);
            if known.is_spent && known.takers.is_empty() && !known.conditions.are_final() {
                consumed.push(name.clone());
            }
        }
        consumed.iter().for_each(|name| self.is_consumed(name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::provision::requests_served::timeouts::*;
    use crate::tests::fixture::HostFixture;

    fn node(is_ready: bool) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "status": {
                "allocatable": {"cpu": "8", "pods": "9", "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            },
        })
    }

    #[tokio::test]
    async fn a_request_that_was_impossible_for_a_moment_is_not_given_up() {
        let mut stage = HostFixture::new();
        let metadata = json!({
            "name": "room", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z",
        });
        let limits = json!({"nvidia.com/gpu": "8"});
        stage.show(json!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata,
            "template": {"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}},
        }), false);
        stage.show(json!({
            "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata,
            "spec": {"provisioningClassName": "gang.muster.sh",
                "podSets": [{"podTemplateRef": {"name": "room"}, "count": 1}]},
        }), false);
        stage.see(node(false));
        let name = stage.host.served_requests.known.keys().next().expect("a request").clone();
        let is_open = |stage: &HostFixture| stage.host.served_requests.is_open(&name);
        stage.host.turn();
        assert!(
            stage.host.served_requests.known[&name].impossible.is_some(),
            "{:?}",
            stage.host.verdicts
        );
        assert!(is_open(&stage), "it was given up in an instant");
        // It has been so for long: there is nothing to wait for.
        let long_ago = Instant::now().checked_sub(Duration::from_secs(60));
        let known = stage.host.served_requests.known.get_mut(&name).expect("a request");
        known.impossible = long_ago;
        assert!(known.impossible.is_some());
        let mut other = stage;
        other.host.turn();
        assert!(!other.host.served_requests.is_open(&name));
    }
}
