//! Nodes that join, get notice of termination, are lost, and come back.

use std::sync::Arc;

use muster_core::event::Refusal;
use muster_core::id::ClaimId;
use muster_core::node::NodeSpec;
use muster_core::order::ClaimFailure;
use muster_core::time::{Span, Time};
use muster_core::{Event, Fact, World};

use crate::cloud::Machine;
use crate::faults::Sabotage;
use crate::host::events::SimEvent;
use crate::host::sim::Sim;

/// An outage of a node that exists from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// The node, by its index in the list of nodes that exist from the start.
    pub node: usize,
    /// When it is lost.
    pub at: Time,
    /// The notice before that; none when zero.
    pub notice: Span,
    /// When it is back; never when absent.
    pub lasts: Option<Span>,
}

/// The name of the node of a claim.
pub(crate) fn node_name(world: &World, claim: ClaimId) -> Arc<str> {
    world.claims()[&claim].node_name()
}

impl Sim {
    pub(crate) fn add_node(&mut self, spec: NodeSpec) -> Result<(), Refusal> {
        let (name, claim, gpus, ready) = (spec.name.clone(), spec.claim, spec.gpus, spec.ready);
        let allocatable = spec.allocatable.clone();
        self.apply(Event::NodeSeen(spec))?;
        let node = self.world.node_named(&name).expect("just seen");
        self.note_fact(&Fact::NodeSeen { node, name, claim, allocatable, gpus, ready });
        Ok(())
    }

    /// Removes a node; whether there was one.
    pub(crate) fn remove_node(&mut self, name: Arc<str>) -> Result<bool, Refusal> {
        let Some(node) = self.world.node_named(&name) else { return Ok(false) };
        self.apply(Event::NodeGone(name.clone()))?;
        self.note_fact(&Fact::NodeLost { node, name });
        self.end_grace_on(node);
        Ok(true)
    }

    /// Gives notice of when a node will be gone, if it is here; `Time::MAX` withdraws it.
    fn give_notice(&mut self, name: Arc<str>, by: Time) -> Result<(), Refusal> {
        let Some(node) = self.world.node_named(&name) else { return Ok(()) };
        if !self.is_planted(Sabotage::NoNotice) {
            self.apply(Event::NodeNotice { name, by })?;
        }
        self.note_fact(&Fact::NodeNoticed { node, by });
        Ok(())
    }

    /// Schedules the outages of nodes that exist from the start.
    pub(crate) fn schedule_outages(&mut self) {
        for (i, outage) in self.outages.iter().enumerate() {
            if outage.notice > Span::ZERO {
                let told = Time(outage.at.0 - outage.notice.0 as i64).max(Time::ZERO);
                self.event_queue.add(told, SimEvent::OutageNoticed(i));
            }
            self.event_queue.add(outage.at, SimEvent::OutageBegins(i));
        }
    }

    pub(crate) fn outage_noticed(&mut self, outage: usize) -> Result<(), Refusal> {
        let Outage { node, at, .. } = self.outages[outage];
        self.give_notice(self.standing[node].name.clone(), at)
    }

    pub(crate) fn outage_begins(&mut self, outage: usize) -> Result<(), Refusal> {
        let Outage { node, lasts, .. } = self.outages[outage];
        if self.remove_node(self.standing[node].name.clone())?
            && let Some(lasts) = lasts
        {
            self.event_queue.add(self.now + lasts, SimEvent::OutageEnds(node));
        }
        Ok(())
    }

    pub(crate) fn outage_ends(&mut self, node: usize) -> Result<(), Refusal> {
        self.add_node(self.standing[node].clone())
    }

    /// Schedules the failure of a machine that has just come into service, and its notice.
    pub(crate) fn schedule_failure(&mut self, claim: ClaimId) {
        let Some(offering) = self.cloud.machines.get(&claim).map(|machine| machine.offering) else {
            return;
        };
        let Some(at) = self.cloud.failure(self.now, offering) else { return };
        let notice = self.cloud.notice(offering);
        if notice > Span::ZERO {
            let told = Time(at.0 - notice.0 as i64).max(self.now);
            self.event_queue.add(told, SimEvent::NodeNoticed(claim, at));
        }
        self.event_queue.add(at, SimEvent::NodeFails(claim));
    }

    pub(crate) fn node_noticed(&mut self, claim: ClaimId, by: Time) -> Result<(), Refusal> {
        if self.cloud.machines.get(&claim).is_none_or(Machine::is_away) {
            return Ok(());
        }
        self.give_notice(node_name(&self.world, claim), by)
    }

    pub(crate) fn node_fails(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        // A machine that was stopped since, and starts again, does not fail this time.
        if self.cloud.machines.get(&claim).is_none_or(Machine::is_away) {
            return Ok(());
        }
        if self.remove_node(node_name(&self.world, claim))? {
            self.note_fact(&Fact::ClaimFailed { claim, failure: ClaimFailure::Vanished });
        }
        Ok(())
    }

    /// Reclaims the machines that providers want back, booting ones included. Machines that are up get notice where the
    /// provider gives it.
    pub(crate) fn reclaim(&mut self) -> Result<(), Refusal> {
        for claim in self.cloud.reclaimed(self.now) {
            let machine = &self.cloud.machines[&claim];
            let by = self.now + self.cloud.notice(machine.offering);
            if by > self.now && machine.is_up(self.now) {
                self.give_notice(node_name(&self.world, claim), by)?;
                self.event_queue.add(by, SimEvent::Reclaimed(claim));
            } else {
                self.reclaimed(claim)?;
            }
        }
        self.schedule_reclaim();
        Ok(())
    }

    /// The provider reclaims a machine that was not released or stopped before.
    pub(crate) fn reclaimed(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        let machine = self.cloud.machines.get_mut(&claim);
        let Some(machine) = machine.filter(|machine| machine.is_wanted_back()) else {
            return Ok(());
        };
        machine.reclaimed = true;
        if !self.remove_node(node_name(&self.world, claim))? {
            self.apply(Event::ClaimFailed(claim, ClaimFailure::Vanished))?;
        }
        self.note_fact(&Fact::ClaimFailed { claim, failure: ClaimFailure::Vanished });
        Ok(())
    }

    /// Withdraws every notice.
    pub(crate) fn withdraw_notices(&mut self) {
        let noticed = self.world.noticed().filter_map(|(_, node)| self.world.node_name(node));
        let noticed: Vec<Arc<str>> = noticed.cloned().collect();
        if !noticed.is_empty() {
            self.event_queue.add(self.now, SimEvent::Wake);
        }
        for name in noticed {
            let told = self.give_notice(name, Time::MAX);
            debug_assert!(told.is_ok(), "a node that is here");
        }
    }
}
