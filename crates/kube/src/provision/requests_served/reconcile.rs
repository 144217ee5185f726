//! Requests are followed: understood, given their room, done; and told so.

use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_core::Event;
use muster_core::gang::{Phase, members_of};
use muster_core::id::GangId;
use muster_core::verdict::Verdict;

use crate::api::retry::Said;
use crate::cache::kinds::KindRole;
use crate::cache::store::Moved;
use crate::effects::outcome::Outcome;
use crate::gang::identity::GangSource;
use crate::host::Host;
use crate::provision::requests_served::build::{Unread, is_served};
use crate::provision::requests_served::conditions::{
    ACCEPTED, BOOKING_EXPIRED, CAPACITY_REVOKED, Conditions, FAILED, PROVISIONED, Word,
};
use crate::provision::requests_served::registry::{Known, ServedRequests};
use crate::schedule::placement::AGAIN;

impl Host {
    /// Takes in a change of a request.
    pub(crate) fn observe_request(&mut self, moved: &Moved<DynamicObject>) {
        let origin = source_of(&moved.key);
        let gang = origin.gang_name();
        match moved.is.as_deref().filter(|object| is_served(object)) {
            Some(object) => self.track_request(origin, object),
            None => {
                self.served_requests.known.remove(&gang);
                self.requeue_awaiting(&gang);
            }
        }
        if self.served_requests.awaited_by.contains_key(&gang)
            && !self.served_requests.is_open(&gang)
        {
            self.requeue_awaiting(&gang);
        }
        self.dirty.gangs.insert(gang);
    }

    /// A request there is. What was said of it stays said.
    pub(crate) fn track_request(&mut self, origin: GangSource, object: &DynamicObject) {
        let gang = origin.gang_name();
        if !self.served_requests.known.contains_key(&gang) && self.world.gang_named(&gang).is_some()
        {
            // One of its name went before anybody looked: what that had, and asked for, is not this one's.
            self.remove_object(&gang);
            self.remove_gang(&gang);
        }
        let new = || Known {
            conditions: Conditions::of(object),
            takers: std::collections::BTreeSet::new(),
            is_spent: false,
            impossible: None,
        };
        self.served_requests.known.entry(gang.clone()).or_insert_with(new);
        if self.served_requests.is_open(&gang) {
            self.gangs.ensure(origin);
        }
    }

    /// A template has come or changed: requests that could not be understood may be now.
    pub(crate) fn observe_template(&mut self) {
        self.retry_blocked();
    }

    /// Whether a request wants its room, or has it.
    pub(crate) fn is_wanted(&self, origin: &GangSource) -> bool {
        self.request(origin).is_some() && self.served_requests.is_open(&origin.gang_name())
    }

    /// Looks at a request again. What it asks for is read once: it cannot change.
    pub(crate) fn reconcile_request(&mut self, name: &Arc<str>) {
        if self.world.gang_named(name).is_none() {
            let origin = &self.gangs.get(name).expect("just seen").source;
            match self.build_request(origin) {
                Ok(gathered) => self.submit_or_update(name, gathered),
                Err(Unread::Wrong(why)) => return self.fail(name, "Invalid", &why),
                Err(why) => drop(self.gangs.set_blocked(name, Some(why.to_string()))),
            }
        }
        let trouble = self.gangs.get(name).and_then(|group| group.blocked.clone());
        let trouble = trouble.map(|(why, _)| why);
        let (is, reason, message) = match trouble {
            None => (true, ACCEPTED, "it is understood".to_owned()),
            Some(why) => (false, "InvalidSpec", why),
        };
        self.say(name, &Word { kind: ACCEPTED, is, reason, message: &message });
        self.reconcile_phase(name);
    }

    /// Holds what is said of a request against what the World has for it.
    pub(crate) fn reconcile_request_phase(&mut self, name: &Arc<str>, id: GangId) {
        let was_there = self.served_requests.is(name, PROVISIONED);
        let is_recorded = self.gangs.get(name).is_some_and(|group| group.placement_written);
        match self.world.gang(id).expect("followed").phase {
            Phase::Waiting | Phase::Assembling(_) | Phase::Stopping if was_there => {
                let message = "a node under it is lost";
                self.say_last(name, CAPACITY_REVOKED, "NodeLost", message);
            }
            Phase::Waiting | Phase::Assembling(_) => {}
            Phase::Stopping => {
                // Nobody was told that it is there: it is got anew.
                self.apply_event(&Event::GangStopped(id));
                self.gangs.get_mut(name).expect("followed").placement_written = false;
                self.clear_placement(name);
            }
            Phase::Admitted { .. } if !is_recorded => {}
            Phase::Admitted { .. } => {
                self.apply_event(&Event::GangStarted(id));
                self.is_provisioned(name, id);
            }
            Phase::Running { .. } => self.is_provisioned(name, id),
        }
    }

    /// All of its room is there, and it is written down where.
    fn is_provisioned(&mut self, name: &Arc<str>, id: GangId) {
        if !self.served_requests.is(name, PROVISIONED) {
            let seats = &self.world.gang(id).expect("followed").seats;
            let nodes: std::collections::BTreeSet<_> = seats.iter().map(|seat| seat.node).collect();
            let message =
                format!("room for {} pods is kept on {} nodes", members_of(seats), nodes.len());
            let reason = "CapacityIsProvisioned";
            self.say(name, &Word { kind: PROVISIONED, is: true, reason, message: &message });
        }
        self.requeue_awaiting(name);
    }

    /// What the planner says of a request that has no room yet.
    pub(crate) fn say_verdict(
        &mut self,
        name: &Arc<str>,
        verdict: &Verdict,
        reason: &str,
        message: &str,
    ) {
        let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Provisioning { .. });
        if waits && !self.served_requests.is(name, PROVISIONED) {
            self.say(name, &Word { kind: PROVISIONED, is: false, reason, message });
        }
    }

    /// A request will not be served. One that had its room has lost it.
    pub(crate) fn fail(&mut self, name: &Arc<str>, reason: &'static str, message: &str) {
        let had = self.served_requests.is(name, PROVISIONED);
        self.say_last(name, if had { CAPACITY_REVOKED } else { FAILED }, reason, message);
    }

    /// Nothing more is done for a request, and it is told why.
    pub(crate) fn say_last(
        &mut self,
        name: &Arc<str>,
        kind: &'static str,
        reason: &str,
        message: &str,
    ) {
        tracing::info!(request = &**name, kind, reason, message, "a request is over");
        self.say(name, &Word { kind, is: true, reason, message });
        self.dirty.gangs.insert(name.clone());
        self.requeue_awaiting(name);
    }

    /// All of a request's room was taken, by gangs that have started.
    pub(crate) fn is_consumed(&mut self, name: &Arc<str>) {
        let message = "pods have taken all of its room";
        self.say_last(name, BOOKING_EXPIRED, "CapacityBookingConsumed", message);
        // Where its room was is no longer worth knowing.
        self.remove_object(name);
    }

    /// Says something of a request, if it is news.
    fn say(&mut self, name: &Arc<str>, word: &Word<'_>) {
        if !self.served_requests.known.contains_key(name) {
            return;
        }
        let now = self.now();
        let origin = origin_of_gang(name);
        let generation = self.request(&origin).and_then(|object| object.metadata.generation);
        let Some(known) = self.served_requests.known.get_mut(name) else { return };
        if known.conditions.say(now, generation, word) {
            self.write_request(name);
        }
    }

    /// Writes down all that is said of a request.
    pub(crate) fn write_request(&mut self, name: &Arc<str>) {
        let ServedRequests { known, .. } = &self.served_requests;
        let Some(status) = known.get(name).map(|known| known.conditions.as_status()) else {
            return;
        };
        let Some(kind) = self.sources.resource(KindRole::Request) else { return };
        let GangSource::Request { namespace, name: object } = origin_of_gang(name) else { return };
        let requests: Api<DynamicObject> =
            Api::namespaced_with(self.writer.client.clone(), &namespace, kind);
        let hands = self.writer.within(&namespace);
        let (told, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            match hands.patch_status(&requests, &object, &status).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(request = &*gang, %said, "what became of it was not written");
                    tokio::time::sleep(AGAIN).await;
                    let _ = told.send(Outcome::RequestConditionNotWritten(gang));
                }
            }
        });
    }

    /// Whoever waits for a request looks again.
    fn requeue_awaiting(&mut self, name: &str) {
        let awaiting = self.served_requests.awaiting(name);
        self.dirty.gangs.extend(awaiting);
    }
}

/// Why a request is a gang.
pub(crate) fn source_of(key: &str) -> GangSource {
    let (namespace, name) = crate::provision::order_object::parts(key);
    GangSource::Request { namespace: namespace.into(), name: name.into() }
}

/// The request that a gang was made of, by the gang's name.
pub(crate) fn origin_of_gang(gang: &str) -> GangSource {
    source_of(gang.strip_suffix(crate::gang::identity::REQUEST_SUFFIX).unwrap_or(gang))
}
