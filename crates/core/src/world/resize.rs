//! Running gangs grow and shrink, never below their minimum.

use crate::id::GangId;
use crate::messages::event::{Refusal, Stale};
use crate::objects::gang::{Gang, Phase, Resize, Seat, without};
use crate::units::time::Span;
use crate::world::World;

impl World {
    /// Takes the seats a gang gets, and records which it gives up. Those stay taken until it has left them.
    pub(super) fn resize(&mut self, id: GangId, seats: &[Seat]) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        if let Some(resize) = &gang.resize {
            // The same decision repeated.
            return if resize.to == seats { Ok(()) } else { Err(Stale::Gang.into()) };
        }
        if gang.seats == seats {
            return Ok(());
        }
        if !matches!(gang.phase, Phase::Running { .. }) {
            return Err(Stale::Gang.into());
        }
        self.check_members(gang, seats)?;
        let added = without(seats, &gang.seats);
        if !self.are_free(gang, &added) {
            return Err(Stale::Seat.into());
        }
        self.check_quota(gang, &self.wants(gang, &added), &[])?;
        self.charge_seats(id, &added, true);
        self.sit(id, &added);
        let gang = self.gang_mut(id);
        gang.seats.extend(&added);
        gang.resize = Some(Resize { to: seats.to_vec(), added });
        Ok(())
    }

    /// A gang has the members of its last resize.
    pub(super) fn resized(&mut self, id: GangId) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let Some(Resize { to, .. }) = gang.resize.clone() else { return Err(Stale::Gang.into()) };
        let lost = gang.seats.iter().any(|seat| self.node(seat.node).is_none());
        self.continue_with(id, to, lost);
        self.apply_next_spec(id);
        Ok(())
    }

    /// Applies a spec change that waited for more members, as far as it can be.
    fn apply_next_spec(&mut self, id: GangId) {
        let Some(next) = self.gang_mut(id).next.take() else { return };
        if self.change_gang(&next).is_err() {
            self.gang_mut(id).next = Some(next);
        }
    }

    /// A gang declined more members; what it was to give up it has given up.
    pub(super) fn decline(&mut self, id: GangId) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let Some(Resize { to, added }) = gang.resize.clone() else {
            return Err(Stale::Gang.into());
        };
        let kept = without(&to, &added);
        // A gang that gives up nothing goes on unchanged.
        if kept.len() + added.len() == gang.seats.len() {
            self.shrink_to(id, kept);
        } else {
            self.continue_with(id, kept, false);
        }
        let now = self.now;
        let gang = self.gang_mut(id);
        (gang.declined, gang.resized) = (Some(now), Some(now));
        Ok(())
    }

    /// Records measured scaling efficiency.
    pub(super) fn measure(&mut self, id: GangId, efficiency: u16) -> Result<(), Refusal> {
        self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        self.change_speed(id, Span::ZERO, |gang| gang.measured = Some(efficiency));
        Ok(())
    }

    /// A gang continues with these seats, after a pause. If a node was lost under it, from its checkpoint.
    fn continue_with(&mut self, id: GangId, seats: Vec<Seat>, lost: bool) {
        let now = self.now;
        if lost {
            self.unindex_end(id);
            let gang = self.gang_mut(id);
            let (speed, disruption) = (gang.speed(), gang.spec.disruption);
            gang.work.stop(now, speed, |did| disruption.saved(did, false));
            self.index_end(id);
        }
        let pause = self.gang(id).expect("a gang that is not over").spec.scaling.resize;
        self.change_speed(id, pause, |_| {});
        self.shrink_to(id, seats);
        self.gang_mut(id).resized = Some(now);
    }

    /// A gang keeps these seats and leaves all others.
    fn shrink_to(&mut self, id: GangId, seats: Vec<Seat>) {
        self.unindex_end(id);
        let gang = self.gang_mut(id);
        gang.resize = None;
        gang.spare.clear();
        let left = without(&gang.seats, &seats);
        gang.seats = seats;
        self.index_end(id);
        self.charge_seats(id, &left, false);
        self.rise(id, &left);
        self.finish_preemption(id);
        let gang = self.gang(id).expect("a gang that is not over");
        if gang.seats.iter().all(|seat| self.node(seat.node).is_some()) {
            self.broken.remove(&id);
        }
    }

    /// Counts a gang's progress so far, and applies a change.
    pub(super) fn change_speed(&mut self, id: GangId, pause: Span, change: impl FnOnce(&mut Gang)) {
        let now = self.now;
        self.unindex_end(id);
        let gang = self.gang_mut(id);
        if matches!(gang.phase, Phase::Running { .. }) {
            let speed = gang.speed();
            gang.work.go_on(now, speed, pause);
        }
        change(gang);
        self.index_end(id);
    }

    /// A victim has given up its seats.
    pub(super) fn finish_preemption(&mut self, id: GangId) {
        let Some(order) = self.making_way.get(&id) else { return };
        let way = self.orders[order].after.iter().find(|way| way.gang == id);
        let seats = &self.gangs[id].as_deref().expect("a gang that is not over").seats;
        if way.is_some_and(|way| way.seats.iter().any(|seat| seats.contains(seat))) {
            return;
        }
        let order = self.making_way.remove(&id).expect("just seen");
        let order = self.orders.get_mut(&order).expect("somebody makes way for it");
        order.after.retain(|way| way.gang != id);
    }
}
