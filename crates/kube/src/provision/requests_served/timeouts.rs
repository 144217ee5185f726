//! Timeouts of served requests.
//!
//! Rule: a provisioned request is closed after `--booking-ttl`. One that is not provisioned fails when it lacks a template for
//! 20 seconds, when its own validity is over, or when it was infeasible for 5 seconds on end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_api::words;
use muster_core::gang::Phase;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;

use crate::host::Host;
use crate::provision::requests_served::conditions::{BOOKING_EXPIRED, PROVISIONED};
use crate::provision::requests_served::reconcile::request_of_gang;

/// How long a request may lack an object that is created after it, such as its templates.
const TEMPLATE_TIMEOUT: Span = Span::secs(20);
/// How long a request must be infeasible to fail: nodes that restart are missing for seconds.
const INFEASIBLE_TIMEOUT: Duration = Duration::from_secs(5);

impl Host {
    /// Closes requests whose time is over.
    pub(crate) fn expire_requests(&mut self) {
        let now = self.now();
        let open = |name: &&Arc<str>| self.served_requests.is_open(name);
        let open: Vec<Arc<str>> =
            self.served_requests.requests.keys().filter(open).cloned().collect();
        for name in open {
            match self.served_requests.requests[&name].conditions.since(PROVISIONED) {
                Some(since) if now.since(since) >= self.config.booking_ttl => {
                    let message = "not all of its capacity was taken over in time";
                    self.close_request(
                        &name,
                        BOOKING_EXPIRED,
                        "CapacityReservationTimeExpired",
                        message,
                    );
                }
                Some(_) => {}
                None => self.expire_request(&name, now),
            }
        }
    }

    /// Fails a request that has waited too long.
    fn expire_request(&mut self, name: &Arc<str>, now: Time) {
        let source = request_of_gang(name);
        let Some(made) = self.request_created_at(&source) else { return };
        let age = now.since(made);
        let blocked = self.gangs.get(name).and_then(|record| record.blocked.clone());
        if let Some((blocked, _)) = blocked.filter(|_| age >= TEMPLATE_TIMEOUT) {
            return self.fail_request(name, "Invalid", &blocked);
        }
        let valid_for = self.request_spec(&source).ok().and_then(|capacity| capacity.valid_for);
        if valid_for.is_some_and(|valid_for| age >= valid_for) {
            return self.fail_request(name, "Expired", "its capacity was not provisioned in time");
        }
        let gang = self.world.gang_named(name);
        let verdict = gang.and_then(|id| self.verdicts.iter().find(|(of, _)| *of == id));
        let verdict = verdict.filter(|(_, verdict)| matches!(verdict, Verdict::Impossible { .. }));
        let message = verdict.map(|(id, verdict)| words::verdict(&self.world, *id, verdict));
        let Some(known) = self.served_requests.requests.get_mut(name) else { return };
        let Some(message) = message else {
            known.infeasible_since = None;
            return;
        };
        if known.infeasible_since.get_or_insert_with(Instant::now).elapsed() >= INFEASIBLE_TIMEOUT {
            self.fail_request(name, "CapacityIsNotFound", &message);
        }
    }

    /// Closes requests whose seats were all taken over by gangs that have started.
    pub(crate) fn close_consumed_requests(&mut self) {
        let mut consumed: Vec<Arc<str>> = Vec::new();
        let world = &self.world;
        let starts = |consumer: &Arc<str>| {
            let gang = world.gang_named(consumer).and_then(|id| world.gang(id));
            gang.is_some_and(|gang| matches!(gang.phase, Phase::Admitted { .. }))
        };
        for (name, known) in &mut self.served_requests.requests {
            known.consumers.retain(starts);
            if known.is_consumed && known.consumers.is_empty() && !known.conditions.are_terminal() {
                consumed.push(name.clone());
            }
        }
        consumed.iter().for_each(|name| self.close_consumed_request(name));
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
    async fn request_that_is_infeasible_for_a_moment_does_not_fail() {
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
        let name = stage.host.served_requests.requests.keys().next().expect("a request").clone();
        let is_open = |stage: &HostFixture| stage.host.served_requests.is_open(&name);
        stage.host.run_cycle();
        assert!(
            stage.host.served_requests.requests[&name].infeasible_since.is_some(),
            "{:?}",
            stage.host.verdicts
        );
        assert!(is_open(&stage), "it failed at once");
        // It has been infeasible for long.
        let long_ago = Instant::now().checked_sub(Duration::from_secs(60));
        let known = stage.host.served_requests.requests.get_mut(&name).expect("a request");
        known.infeasible_since = long_ago;
        assert!(known.infeasible_since.is_some());
        let mut other = stage;
        other.host.run_cycle();
        assert!(!other.host.served_requests.is_open(&name));
    }
}
