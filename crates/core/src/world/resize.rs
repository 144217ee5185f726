//! Gangs that run get more members, or fewer, and never fewer than their minimum.

use crate::id::GangId;
use crate::messages::event::{Refusal, Stale};
use crate::objects::gang::{Gang, Phase, Resize, Seat, without};
use crate::units::time::Span;
use crate::world::World;

impl World {
    /// Takes the seats a gang gets, and notes which it gives up. Those stay taken until it has left them.
    pub(super) fn resize(&mut self, id: GangId, seats: &[Seat]) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        if let Some(resize) = &gang.resize {
            // The same decision seen twice.
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

    /// A gang has the members it was told to have.
    pub(super) fn resized(&mut self, id: GangId) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let Some(Resize { to, .. }) = gang.resize.clone() else { return Err(Stale::Gang.into()) };
        let lost = gang.seats.iter().any(|seat| self.node(seat.node).is_none());
        self.take_on(id, to, lost);
        self.become_next(id);
        Ok(())
    }

    /// A gang that has more members by now is what its submitter asked for meanwhile, as far as it can be.
    fn become_next(&mut self, id: GangId) {
        let Some(next) = self.gang_mut(id).next.take() else { return };
        if self.change_gang(&next).is_err() {
            self.gang_mut(id).next = Some(next);
        }
    }

    /// A gang does not want more members; what it was to give up it has given up.
    pub(super) fn decline(&mut self, id: GangId) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let Some(Resize { to, added }) = gang.resize.clone() else {
            return Err(Stale::Gang.into());
        };
        let kept = without(&to, &added);
        // Who gives up nothing goes on as if nobody had asked.
        if kept.len() + added.len() == gang.seats.len() {
            self.give_up(id, kept);
        } else {
            self.take_on(id, kept, false);
        }
        let now = self.now;
        let gang = self.gang_mut(id);
        (gang.declined, gang.resized) = (Some(now), Some(now));
        Ok(())
    }

    /// What twice the members bring, as measured.
    pub(super) fn measure(&mut self, id: GangId, efficiency: u16) -> Result<(), Refusal> {
        self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        self.change_pace(id, Span::ZERO, |gang| gang.measured = Some(efficiency));
        Ok(())
    }

    /// A gang goes on with these seats, after a pause. If a node was lost under it, with what it had saved.
    fn take_on(&mut self, id: GangId, seats: Vec<Seat>, lost: bool) {
        let now = self.now;
        if lost {
            self.unlist_end(id);
            let gang = self.gang_mut(id);
            let (speed, disruption) = (gang.speed(), gang.spec.disruption);
            gang.work.stop(now, speed, |did| disruption.saved(did, false));
            self.list_end(id);
        }
        let pause = self.gang(id).expect("a gang that is not over").spec.scaling.resize;
        self.change_pace(id, pause, |_| {});
        self.give_up(id, seats);
        self.gang_mut(id).resized = Some(now);
    }

    /// A gang keeps these seats and leaves all others.
    fn give_up(&mut self, id: GangId, seats: Vec<Seat>) {
        self.unlist_end(id);
        let gang = self.gang_mut(id);
        gang.resize = None;
        gang.spare.clear();
        let left = without(&gang.seats, &seats);
        gang.seats = seats;
        self.list_end(id);
        self.charge_seats(id, &left, false);
        self.rise(id, &left);
        self.has_made_way(id);
        let gang = self.gang(id).expect("a gang that is not over");
        if gang.seats.iter().all(|seat| self.node(seat.node).is_some()) {
            self.broken.remove(&id);
        }
    }

    /// Counts what a gang has done so far, and lets it go on otherwise.
    pub(super) fn change_pace(&mut self, id: GangId, pause: Span, change: impl FnOnce(&mut Gang)) {
        let now = self.now;
        self.unlist_end(id);
        let gang = self.gang_mut(id);
        if matches!(gang.phase, Phase::Running { .. }) {
            let speed = gang.speed();
            gang.work.go_on(now, speed, pause);
        }
        change(gang);
        self.list_end(id);
    }

    /// A gang has given up what it was to give up for others.
    pub(super) fn has_made_way(&mut self, id: GangId) {
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
