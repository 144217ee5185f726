//! Gives back single seats of a running gang, and records which ones go first when it has to shrink.

use crate::id::GangId;
use crate::messages::event::{Refusal, RoleSeats, Stale};
use crate::objects::gang::{Gang, Phase, Seat};
use crate::units::time::Span;
use crate::world::World;

impl World {
    /// A gang goes on without these seats, which are free at once. The World is unchanged when the gang does not have
    /// them, is being resized, or would be left with less than its minimum.
    pub(super) fn give_seats_back(
        &mut self,
        id: GangId,
        back: &[RoleSeats],
    ) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let has_seats = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. });
        if !has_seats || gang.resize.is_some() {
            return Err(Stale::Gang.into());
        }
        let (kept, left) = self.parted(id, gang, back).ok_or(Stale::Seat)?;
        let has = |role: usize| {
            let mine = kept.iter().filter(|seat| usize::from(seat.role) == role);
            mine.map(|seat| u32::from(seat.members)).sum::<u32>()
        };
        if gang.spec.roles.iter().enumerate().any(|(at, role)| has(at) < role.min) {
            return Err(Stale::BelowMin.into());
        }
        self.change_speed(id, Span::ZERO, |_| {});
        self.unindex_end(id);
        let gang = self.gang_mut(id);
        gang.seats = kept;
        gang.spare.clear();
        self.index_end(id);
        self.charge_seats(id, &left, false);
        self.rise(id, &left);
        self.finish_preemption(id);
        let gang = self.gang(id).expect("just seen");
        if gang.seats.iter().all(|seat| self.node(seat.node).is_some()) {
            self.broken.remove(&id);
        }
        Ok(())
    }

    /// The seats a gang keeps and those it leaves when it gives these back; none when it does not have them. Seats
    /// that an order waits for are left first.
    fn parted(
        &self,
        id: GangId,
        gang: &Gang,
        back: &[RoleSeats],
    ) -> Option<(Vec<Seat>, Vec<Seat>)> {
        let order = self.making_way.get(&id).and_then(|order| self.orders.get(order));
        let ways = order.into_iter().flat_map(|order| &order.after);
        let awaited: Vec<Seat> =
            ways.filter(|way| way.gang == id).flat_map(|way| way.seats.clone()).collect();
        let mut left: Vec<Seat> = Vec::new();
        let mut kept = gang.seats.clone();
        for one in back {
            let mut lacks = one.members;
            for is_awaited in [true, false] {
                let mut at = 0;
                while at < kept.len() && lacks > 0 {
                    let seat = kept[at];
                    let is_it = (seat.role, seat.node) == (one.role, one.node)
                        && awaited.contains(&seat) == is_awaited;
                    if !is_it {
                        at += 1;
                        continue;
                    }
                    let members = seat.members.min(lacks);
                    lacks -= members;
                    left.push(Seat { members, ..seat });
                    match seat.members - members {
                        0 => drop(kept.remove(at)),
                        members => kept[at].members = members,
                    }
                }
            }
            if lacks > 0 {
                return None;
            }
        }
        Some((kept, left))
    }

    /// Records the seats that a gang gives up first when it has to shrink.
    pub(super) fn spare_seats(&mut self, id: GangId, spare: &[RoleSeats]) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let has = |one: &RoleSeats| {
            let mine =
                gang.seats.iter().filter(|seat| (seat.role, seat.node) == (one.role, one.node));
            mine.map(|seat| u32::from(seat.members)).sum::<u32>() >= u32::from(one.members)
        };
        if !spare.iter().all(has) {
            return Err(Stale::Seat.into());
        }
        self.gang_mut(id).spare = spare.to_vec();
        Ok(())
    }
}
