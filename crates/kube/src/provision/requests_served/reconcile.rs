//! Reconciles served requests: from accepted through provisioned to closed, and writes their conditions.

use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_core::Event;
use muster_core::gang::{Phase, members_of};
use muster_core::id::GangId;
use muster_core::verdict::Verdict;

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::gang::identity::GangSource;
use crate::host::Host;
use crate::provision::requests_served::build::{RequestError, is_served};
use crate::provision::requests_served::conditions::{
    ACCEPTED, BOOKING_EXPIRED, CAPACITY_REVOKED, ConditionUpdate, Conditions, FAILED, PROVISIONED,
};
use crate::provision::requests_served::registry::{ServedRequest, ServedRequests};

impl Host {
    /// Handles a change of a request.
    pub(crate) fn observe_request(&mut self, moved: &ObjectChange<DynamicObject>) {
        let source = source_of_request(&moved.key);
        let gang = source.gang_name();
        match moved.is.as_deref().filter(|object| is_served(object)) {
            Some(object) => self.track_request(source, object),
            None => {
                self.served_requests.requests.remove(&gang);
                self.requeue_awaiting(&gang);
            }
        }
        if self.served_requests.waiting_gangs.contains_key(&gang)
            && !self.served_requests.is_open(&gang)
        {
            self.requeue_awaiting(&gang);
        }
        self.dirty.gangs.insert(gang);
    }

    /// Tracks a request. Conditions that are known already are kept.
    pub(crate) fn track_request(&mut self, source: GangSource, object: &DynamicObject) {
        let gang = source.gang_name();
        if !self.served_requests.requests.contains_key(&gang)
            && self.world.gang_named(&gang).is_some()
        {
            // Another request of this name was deleted before this one was observed: its gang is not this one's.
            self.remove_object(&gang);
            self.remove_gang(&gang);
        }
        let new = || ServedRequest {
            conditions: Conditions::of(object),
            consumers: std::collections::BTreeSet::new(),
            is_consumed: false,
            infeasible_since: None,
        };
        self.served_requests.requests.entry(gang.clone()).or_insert_with(new);
        if self.served_requests.is_open(&gang) {
            self.gangs.ensure(source);
        }
    }

    /// Handles a change of a PodTemplate: requests that were blocked may be valid now.
    pub(crate) fn observe_template(&mut self) {
        self.retry_blocked();
    }

    /// Whether a request exists and is not closed.
    pub(crate) fn is_request_open(&self, source: &GangSource) -> bool {
        self.request(source).is_some() && self.served_requests.is_open(&source.gang_name())
    }

    /// Reconciles a request. Its spec is read once: it cannot change.
    pub(crate) fn reconcile_request(&mut self, name: &Arc<str>) {
        if self.world.gang_named(name).is_none() {
            let source = &self.gangs.get(name).expect("just seen").source;
            match self.build_request(source) {
                Ok(built) => self.submit_or_update(name, built),
                Err(RequestError::Invalid(why)) => return self.fail_request(name, "Invalid", &why),
                Err(why) => drop(self.gangs.set_blocked(name, Some(why.to_string()))),
            }
        }
        let blocked = self.gangs.get(name).and_then(|record| record.blocked.clone());
        let blocked = blocked.map(|(why, _)| why);
        let (is_true, reason, message) = match blocked {
            None => (true, ACCEPTED, "the request is valid".to_owned()),
            Some(why) => (false, "InvalidSpec", why),
        };
        self.set_condition(
            name,
            &ConditionUpdate { condition: ACCEPTED, is_true, reason, message: &message },
        );
        self.reconcile_phase(name);
    }

    /// Updates the conditions of a request from the phase of its gang.
    pub(crate) fn reconcile_request_phase(&mut self, name: &Arc<str>, id: GangId) {
        let was_provisioned = self.served_requests.is(name, PROVISIONED);
        let is_recorded = self.gangs.get(name).is_some_and(|record| record.placement_written);
        match self.world.gang(id).expect("followed").phase {
            Phase::Waiting | Phase::Assembling(_) | Phase::Stopping if was_provisioned => {
                let message = "a node of its capacity is lost";
                self.close_request(name, CAPACITY_REVOKED, "NodeLost", message);
            }
            Phase::Waiting | Phase::Assembling(_) => {}
            Phase::Stopping => {
                // It was not reported as provisioned yet: it is planned again.
                self.apply_event(&Event::GangStopped(id));
                self.gangs.get_mut(name).expect("followed").placement_written = false;
                self.clear_placement(name);
            }
            Phase::Admitted { .. } if !is_recorded => {}
            Phase::Admitted { .. } => {
                self.apply_event(&Event::GangStarted(id));
                self.set_provisioned(name, id);
            }
            Phase::Running { .. } => self.set_provisioned(name, id),
        }
    }

    /// Reports a request as provisioned: it has all its seats, and its placement is stored.
    fn set_provisioned(&mut self, name: &Arc<str>, id: GangId) {
        if !self.served_requests.is(name, PROVISIONED) {
            let seats = &self.world.gang(id).expect("followed").seats;
            let nodes: std::collections::BTreeSet<_> = seats.iter().map(|seat| seat.node).collect();
            let message = format!(
                "capacity for {} pods is booked on {} nodes",
                members_of(seats),
                nodes.len()
            );
            let reason = "CapacityIsProvisioned";
            self.set_condition(
                name,
                &ConditionUpdate {
                    condition: PROVISIONED,
                    is_true: true,
                    reason,
                    message: &message,
                },
            );
        }
        self.requeue_awaiting(name);
    }

    /// Reports the planner's verdict on a request that is not provisioned yet.
    pub(crate) fn set_verdict_condition(
        &mut self,
        name: &Arc<str>,
        verdict: &Verdict,
        reason: &str,
        message: &str,
    ) {
        let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Provisioning { .. });
        if waits && !self.served_requests.is(name, PROVISIONED) {
            self.set_condition(
                name,
                &ConditionUpdate { condition: PROVISIONED, is_true: false, reason, message },
            );
        }
    }

    /// Closes a request as failed, or as revoked if it was provisioned.
    pub(crate) fn fail_request(&mut self, name: &Arc<str>, reason: &'static str, message: &str) {
        let had = self.served_requests.is(name, PROVISIONED);
        self.close_request(name, if had { CAPACITY_REVOKED } else { FAILED }, reason, message);
    }

    /// Closes a request with a terminal condition.
    pub(crate) fn close_request(
        &mut self,
        name: &Arc<str>,
        kind: &'static str,
        reason: &str,
        message: &str,
    ) {
        tracing::info!(request = &**name, kind, reason, message, "a request is closed");
        self.set_condition(
            name,
            &ConditionUpdate { condition: kind, is_true: true, reason, message },
        );
        self.dirty.gangs.insert(name.clone());
        self.requeue_awaiting(name);
    }

    /// Closes a request whose seats were all taken over, by gangs that have started.
    pub(crate) fn close_consumed_request(&mut self, name: &Arc<str>) {
        let message = "pods have taken over all of its capacity";
        self.close_request(name, BOOKING_EXPIRED, "CapacityBookingConsumed", message);
        // Its placement is not needed any more.
        self.remove_object(name);
    }

    /// Sets a condition of a request, and writes it if it has changed.
    fn set_condition(&mut self, name: &Arc<str>, update: &ConditionUpdate<'_>) {
        if !self.served_requests.requests.contains_key(name) {
            return;
        }
        let now = self.now();
        let source = request_of_gang(name);
        let generation = self.request(&source).and_then(|object| object.metadata.generation);
        let Some(known) = self.served_requests.requests.get_mut(name) else { return };
        if known.conditions.set(now, generation, update) {
            self.write_request_conditions(name);
        }
    }

    /// Writes all conditions of a request.
    pub(crate) fn write_request_conditions(&mut self, name: &Arc<str>) {
        let ServedRequests { requests, .. } = &self.served_requests;
        let Some(status) = requests.get(name).map(|known| known.conditions.as_status()) else {
            return;
        };
        let Some(kind) = self.sources.resource(KindRole::Request) else { return };
        let GangSource::Request { namespace, name: object } = request_of_gang(name) else { return };
        let requests: Api<DynamicObject> =
            Api::namespaced_with(self.writer.client.clone(), &namespace, kind);
        let writer = self.writer.for_namespace(&namespace);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            match writer.patch_status(&requests, &object, &status).await {
                Ok(_) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(request = &*gang, %error, "the conditions of a request were not written");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::RequestConditionNotWritten(gang));
                }
            }
        });
    }

    /// Requeues the gangs that wait for a request.
    fn requeue_awaiting(&mut self, name: &str) {
        let awaiting = self.served_requests.take_waiting(name);
        self.dirty.gangs.extend(awaiting);
    }
}

/// The gang source of a request, by the request's key.
pub(crate) fn source_of_request(key: &str) -> GangSource {
    let (namespace, name) = crate::cache::store::split_key(key);
    GangSource::Request { namespace: namespace.into(), name: name.into() }
}

/// The request that a gang was built of, by the gang's name.
pub(crate) fn request_of_gang(gang: &str) -> GangSource {
    source_of_request(gang.strip_suffix(crate::gang::identity::REQUEST_SUFFIX).unwrap_or(gang))
}
