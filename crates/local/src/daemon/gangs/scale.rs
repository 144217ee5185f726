//! Sets new bounds of a gang's role. A running gang with more members than the new maximum gives up the surplus: it
//! continues with the members that stay, or saves, stops and restarts, as in any resize.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Event;
use muster_core::event::{Refusal, Stale};
use muster_core::gang::{Gang as Known, GangSpec, Phase, Seat, members_of};
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::{Action, StopReason};
use muster_server::Refused;

use crate::daemon::apply::manifests::check_size;
use crate::daemon::state::Daemon;

impl Daemon {
    /// Sets new bounds of a role.
    pub(crate) fn scale(
        &mut self,
        name: &Arc<str>,
        role: Option<&str>,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<(), Refused> {
        let gang = self.known(name)?;
        let (id, mut spec) = (gang.id, gang.record.spec.clone());
        let role = match (role, spec.roles.as_mut_slice()) {
            (None, [only]) => only,
            (None, _) => {
                return Err(Refused::Invalid(format!("{name} has several roles: say which")));
            }
            (Some(role), roles) => roles
                .iter_mut()
                .find(|one| *one.name == *role)
                .ok_or_else(|| Refused::NotFound(format!("{name} has no role {role}")))?,
        };
        role.min = min.unwrap_or(role.min);
        role.max = max.unwrap_or(role.max.max(role.min));
        let bounds = (role.min, role.max);
        let wrong = match bounds {
            (0, _) => Some(format!("{name}: min must be at least 1: cancel or hold it instead")),
            (min, max) if max < min => {
                Some(format!("{name}: max {max} is below min {min}: give both"))
            }
            _ => None,
        };
        if let Some(why) = wrong {
            return Err(Refused::Invalid(why));
        }
        check_size(&spec)?;
        if let Some(id) = id {
            self.set_bounds(name, id, &spec)?;
        }
        if let Some(gang) = self.gangs.get_mut(name) {
            gang.record.spec = spec;
        }
        self.write_record(name);
        Ok(())
    }

    /// Sets new bounds in the World, after the gang has given up its surplus.
    fn set_bounds(&mut self, name: &Arc<str>, id: GangId, spec: &GangSpec) -> Result<(), Refused> {
        let refused =
            |why: String| Refused::Conflict(format!("{name} cannot be scaled now: {why}"));
        let Some(known) = self.world.gang(id) else { return Ok(()) };
        if let Phase::Assembling(order) = known.phase {
            let order = order.0;
            return Err(refused(format!(
                "its nodes are on their way (order-{order}): wait until it runs, or cancel it"
            )));
        }
        if let Some(until) = self.is_busy(id, known) {
            // The bounds are recorded, and applied then.
            self.record_event(name, "Scaled", format!("it gets its new size when {until}"), false);
            return Ok(());
        }
        if !has_too_many(known, spec) {
            // A gang with too few members grows to its new minimum, which holds from then on.
            let mut reached = spec.clone();
            if known.phase != Phase::Waiting {
                for (at, role) in (0u16..).zip(&mut reached.roles) {
                    role.min = role.min.min(known.members_in(at).max(1));
                }
            }
            if reached == known.spec {
                return Ok(());
            }
            let told = self.apply_event(&Event::GangChanged(reached));
            return told.map_err(|refusal| refused(refusal.to_string()));
        }
        // Until the surplus has left, the old maximum stays, with a minimum low enough to let it leave.
        let mut between = known.spec.clone();
        for (was, is) in between.roles.iter_mut().zip(&spec.roles) {
            was.min = was.min.min(is.max);
        }
        let seats = fewer(&known.seats, spec);
        let lowers = between != known.spec;
        if lowers {
            let told = self.apply_event(&Event::GangChanged(between));
            told.map_err(|refusal| refused(refusal.to_string()))?;
        }
        match self.apply_event(&Event::Decided(Action::Resize { gang: id, seats: seats.clone() })) {
            Ok(()) => self.resize(id, &seats),
            // Members that share a seat cannot be separated in place: the gang restarts with the new size.
            Err(Refusal::Stale(Stale::Seat)) => self.start_smaller(name, id, members_of(&seats)),
            Err(refusal) => return Err(refused(refusal.to_string())),
        }
        Ok(())
    }

    fn start_smaller(&mut self, name: &Arc<str>, id: GangId, to: u32) {
        let reason = StopReason::Moved;
        if self.apply_or_log(&Event::Decided(Action::Stop { gang: id, reason })) {
            self.record_event(
                name,
                "Resizing",
                format!("it stops and starts again with {to} members"),
                false,
            );
            self.stop(id, reason);
        }
    }

    /// What must happen before the size of a gang can be changed, to follow "when".
    fn is_busy(&self, id: GangId, known: &Known) -> Option<String> {
        match &known.phase {
            Phase::Waiting | Phase::Assembling(_) => None,
            Phase::Admitted { .. } => Some("its members have started".to_owned()),
            Phase::Stopping => Some("it has stopped".to_owned()),
            Phase::Running { .. } if known.resize.is_some() => {
                let to = known.resize.as_ref().map_or(0, |resize| members_of(&resize.to));
                Some(format!("it has been resized to {to} members"))
            }
            Phase::Running { .. } => {
                let order = self.world.orders().get(&self.world.preempted_for(id)?)?;
                let other = self.names.get(&order.spec.gang).map_or("another gang", |name| name);
                Some(format!("it has given up members for {other}"))
            }
        }
    }

    /// A gang has started, was resized, or has stopped: applies the requested bounds, if they are not in force yet.
    pub(crate) fn settle_bounds(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get(name).filter(|gang| !gang.record.cancelled) else { return };
        let (Some(id), wanted) = (gang.id, gang.record.spec.clone()) else { return };
        let Some(known) = self.world.gang(id).filter(|known| self.is_busy(id, known).is_none())
        else {
            return;
        };
        let mut both = known.spec.roles.iter().zip(&wanted.roles);
        if both.any(|(has, is)| (has.min, has.max) != (is.min, is.max))
            && let Err(refused) = self.set_bounds(name, id, &wanted)
        {
            tracing::warn!(gang = &**name, %refused, "its bounds are not settled");
        }
    }
}

/// Whether a gang has more members in a role than these bounds allow.
fn has_too_many(known: &Known, spec: &GangSpec) -> bool {
    let mut roles = (0u16..).zip(&spec.roles);
    roles.any(|(at, role)| known.members_in(at) > role.max)
}

/// As many of these seats as the bounds allow. Seats on nodes with the fewest members go first, so that nodes become
/// free.
fn fewer(seats: &[Seat], spec: &GangSpec) -> Vec<Seat> {
    let mut on_node: BTreeMap<NodeIdx, u32> = BTreeMap::new();
    for seat in seats {
        *on_node.entry(seat.node).or_default() += u32::from(seat.members);
    }
    let mut order: Vec<usize> = (0..seats.len()).collect();
    order.sort_by_key(|at| (on_node[&seats[*at].node], std::cmp::Reverse((seats[*at].node, *at))));
    let mut left = seats.to_vec();
    for (role, bounds) in (0u16..).zip(&spec.roles) {
        let mine = |seat: &&Seat| seat.role == role;
        let has: u32 = seats.iter().filter(mine).map(|seat| u32::from(seat.members)).sum();
        let mut surplus = has.saturating_sub(bounds.max);
        for at in &order {
            let seat = &mut left[*at];
            if seat.role == role {
                let go = surplus.min(u32::from(seat.members));
                seat.members -= go as u16;
                surplus -= go;
            }
        }
    }
    left.retain(|seat| seat.members > 0);
    left
}

#[cfg(test)]
mod tests {
    use muster_core::device::DeviceSet;

    use super::*;

    fn seat(node: u32, members: u16) -> Seat {
        Seat { devices: DeviceSet::default(), node: NodeIdx(node), role: 0, members }
    }

    #[test]
    fn scaling_down_gives_up_seats_on_nodes_with_fewest_members_first() {
        let text = "{kind: Gang, metadata: {name: a}, spec: {roles: [{name: w, min: 1, max: 3, resources: {cpu: 1}}]}}";
        let read = muster_api::read_texts(&[("a.yaml", text)]).expect("good");
        let spec = &read.gangs[0].spec;
        let all = [seat(0, 2), seat(1, 1), seat(2, 2)];
        assert_eq!(fewer(&all, spec), [seat(0, 2), seat(2, 1)]);
        assert_eq!(fewer(&[seat(0, 4)], spec), [seat(0, 3)]);
        assert_eq!(fewer(&[seat(0, 1), seat(1, 1)], spec).len(), 2, "none is too many");
    }
}
