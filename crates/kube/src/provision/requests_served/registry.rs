//! The state of served requests: their conditions, their consumers, and the gangs that wait for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::provision::requests_served::conditions::Conditions;

/// All requests of Muster's class, by the name of their gang.
#[derive(Debug, Default)]
pub(crate) struct ServedRequests {
    pub(crate) requests: BTreeMap<Arc<str>, ServedRequest>,
    /// Gangs that wait until the request they name is provisioned, by request.
    pub(crate) waiting_gangs: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct ServedRequest {
    /// As they were last set.
    pub(crate) conditions: Conditions,
    /// Gangs that have taken over some of its seats and have not started yet.
    pub(crate) consumers: BTreeSet<Arc<str>>,
    /// Whether all of its seats were taken over.
    pub(crate) is_consumed: bool,
    /// Since when the planner finds it infeasible.
    pub(crate) infeasible_since: Option<Instant>,
}

impl ServedRequests {
    /// Whether a request is neither closed nor consumed.
    pub(crate) fn is_open(&self, gang: &str) -> bool {
        self.requests
            .get(gang)
            .is_some_and(|known| !known.is_consumed && !known.conditions.are_terminal())
    }

    /// Whether a condition of a request is true.
    pub(crate) fn is(&self, gang: &str, kind: &str) -> bool {
        self.requests.get(gang).is_some_and(|known| known.conditions.is(kind))
    }

    /// Removes a gang that does not exist any more from those that wait.
    pub(crate) fn stop_waiting(&mut self, gang: &str) {
        self.waiting_gangs.retain(|_, waiting| {
            waiting.remove(gang);
            !waiting.is_empty()
        });
    }

    /// The number of requests that gangs wait for.
    #[cfg(test)]
    pub(crate) fn awaited_count(&self) -> usize {
        self.waiting_gangs.len()
    }

    /// Removes and returns the gangs that wait for a request.
    pub(crate) fn take_waiting(&mut self, gang: &str) -> BTreeSet<Arc<str>> {
        self.waiting_gangs.remove(gang).unwrap_or_default()
    }
}
