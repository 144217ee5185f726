//! Passes facts on: as events to the board, and unchanged to watchers.

use std::sync::Arc;

use muster_api::words;
use muster_core::Fact;
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::time::Time;
use muster_server::{Kind, Note};

use crate::daemon::state::Daemon;

impl Daemon {
    /// A fact at this instant.
    pub(crate) fn fact(&mut self, fact: &Fact) {
        self.fact_at(self.now, fact);
    }

    /// A fact of a moment ago.
    pub(crate) fn fact_at(&mut self, at: Time, fact: &Fact) {
        for watcher in &mut self.watchers {
            watcher.fact(at, &self.world, fact);
        }
        let (gang, reason, message, warning) = match fact {
            Fact::OrderPlaced { gang, claims, .. } => {
                let what = muster_api::figures::count(claims.len(), "node");
                (*gang, "Ordered", format!("{what} asked for, all together"), false)
            }
            Fact::OrderCompleted { gang, .. } => {
                (*gang, "NodesReady", "every node is ready with every GPU".to_owned(), false)
            }
            Fact::OrderRolledBack { gang, reason, .. } => {
                let why = words::rollback(&self.world, *reason);
                (*gang, "RolledBack", format!("the whole order was given up: {why}"), true)
            }
            _ => return,
        };
        self.record_event_of(gang, reason, message, warning);
    }

    /// Records an event about a gang in the World.
    pub(crate) fn record_event_of(
        &mut self,
        gang: GangId,
        reason: &str,
        message: String,
        warning: bool,
    ) {
        if let Some(name) = self.names.get(&gang).cloned() {
            self.record_event(&name, reason, message, warning);
        }
    }

    /// Records an event about a gang.
    pub(crate) fn record_event(
        &mut self,
        name: &Arc<str>,
        reason: &str,
        message: String,
        warning: bool,
    ) {
        let (kind, name, reason) = (Kind::Gang, name.clone(), reason.into());
        let at = self.clock.stamp(self.now);
        self.outbox.note(at, Note { kind, name, reason, message, warning });
    }

    pub(crate) fn stop_message(&self, reason: StopReason) -> String {
        words::stop(&self.world, reason)
    }
}
