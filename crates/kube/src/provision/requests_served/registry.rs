//! Room that is asked for ahead of its pods: ProvisioningRequests of Muster's class.
//!
//! A request is a gang of nobody. It is planned, ordered and given seats like any other (`gather`, `follow`), and a
//! seat of it is room that nobody else gets. Pods that name the request take these seats over (`hand_over`), in one
//! step of the World: no plan is made between the end of the booking and the start of the gang that follows it.
//!
//! What is known of a request is in its conditions (`conditions`), and where its room is, in the Gang that Muster makes
//! of it; after a restart both are read again (`found`). What happens only because time passes is in `late`.
//!
//! Deliberately not here: what a template says of other pods, ports and volumes. The pods are held to it when they come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::provision::requests_served::conditions::Conditions;

/// All requests of Muster's class, by the name of their gang.
#[derive(Debug, Default)]
pub(crate) struct ServedRequests {
    pub(crate) known: BTreeMap<Arc<str>, Known>,
    /// Gangs that wait until the request they name has its room.
    pub(crate) awaited_by: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Known {
    /// What was last said of it.
    pub(crate) conditions: Conditions,
    /// Gangs that have taken some of its room and have not started yet.
    pub(crate) takers: BTreeSet<Arc<str>>,
    /// Whether all of its room was taken.
    pub(crate) is_spent: bool,
    /// Since when there is no way it could ever have its room.
    pub(crate) impossible: Option<Instant>,
}

impl ServedRequests {
    /// Whether a request wants its room, or has it.
    pub(crate) fn is_open(&self, gang: &str) -> bool {
        self.known.get(gang).is_some_and(|known| !known.is_spent && !known.conditions.are_final())
    }

    /// Whether something was said of a request.
    pub(crate) fn is(&self, gang: &str, kind: &str) -> bool {
        self.known.get(gang).is_some_and(|known| known.conditions.is(kind))
    }

    /// A gang is no more, and waits for nothing.
    pub(crate) fn waits_no_more(&mut self, gang: &str) {
        self.awaited_by.retain(|_, waiting| {
            waiting.remove(gang);
            !waiting.is_empty()
        });
    }

    /// How many requests somebody waits for.
    #[cfg(test)]
    pub(crate) fn waited_for(&self) -> usize {
        self.awaited_by.len()
    }

    /// Whoever waits for a request, once.
    pub(crate) fn awaiting(&mut self, gang: &str) -> BTreeSet<Arc<str>> {
        self.awaited_by.remove(gang).unwrap_or_default()
    }
}
