//! What happens to requests only because time passes.

use std::sync::Arc;

use muster_core::gang::Phase;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;

use super::conditions::{BOOKING_EXPIRED, PROVISIONED};
use super::follow::origin_of_gang;
use crate::host::Host;

/// How long a request may lack something that is made after it, such as its templates.
const PATIENCE: Span = Span::secs(20);
/// How long a request must have been impossible to be so for good: nodes that begin anew are away for seconds.
const SURE: Span = Span::secs(5);

impl Host {
    /// Requests whose time is over are.
    pub(in super::super) fn tire_of_requests(&mut self) {
        let now = self.now();
        let open = |name: &&Arc<str>| self.requests.is_open(name);
        let open: Vec<Arc<str>> = self.requests.known.keys().filter(open).cloned().collect();
        for name in open {
            match self.requests.known[&name].conditions.since(PROVISIONED) {
                Some(since) if now.since(since) >= self.config.booking => {
                    let message = "nobody came for all of its room in time";
                    self.say_last(
                        &name,
                        BOOKING_EXPIRED,
                        "CapacityReservationTimeExpired",
                        message,
                    );
                }
                Some(_) => {}
                None => self.tire_of(&name, now),
            }
        }
    }

    /// Gives up a request that has waited too long for what it lacks.
    fn tire_of(&mut self, name: &Arc<str>, now: Time) {
        let origin = origin_of_gang(name);
        let Some(made) = self.request_made(&origin) else { return };
        let age = now.since(made);
        let trouble = self.groups.get(name).and_then(|group| group.trouble.clone());
        if let Some((trouble, _)) = trouble.filter(|_| age >= PATIENCE) {
            return self.fail(name, "Invalid", &trouble);
        }
        let valid_for = self.asked_by(&origin).ok().and_then(|asked| asked.valid_for);
        if valid_for.is_some_and(|valid_for| age >= valid_for) {
            return self.fail(name, "Expired", "its room was not there in time");
        }
        let gang = self.world.gang_named(name);
        let verdict = gang.and_then(|id| self.verdicts.iter().find(|(of, _)| *of == id));
        if let Some((id, verdict @ Verdict::Impossible { .. })) = verdict
            && age >= SURE
        {
            let message = muster_api::words::verdict(&self.world, *id, verdict);
            self.fail(name, "CapacityIsNotFound", &message);
        }
    }

    /// Requests of which nothing is left, and whose takers have started, were of use.
    pub(in super::super) fn settle_requests(&mut self) {
        let mut consumed: Vec<Arc<str>> = Vec::new();
        let world = &self.world;
        let starts = |taker: &Arc<str>| {
            let gang = world.gang_named(taker).and_then(|id| world.gang(id));
            gang.is_some_and(|gang| matches!(gang.phase, Phase::Admitted { .. }))
        };
        for (name, known) in &mut self.requests.known {
            known.takers.retain(starts);
            if known.is_spent && known.takers.is_empty() && !known.conditions.are_final() {
                consumed.push(name.clone());
            }
        }
        consumed.iter().for_each(|name| self.is_consumed(name));
    }
}
