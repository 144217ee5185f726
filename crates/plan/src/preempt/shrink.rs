//! Shrink victims no more than is needed: free nodes are used first, then seats whose members are gone.

use muster_core::gang::Seat;

use super::search::Search;
use crate::order::quota;
use crate::place::place_together;

/// Seats that are tried one by one, after as many as possible were kept at once.
const ONE_BY_ONE: usize = 16;

impl Search<'_, '_, '_> {
    /// The seats of the gang if victims that go on with fewer members keep as many as they can. `seats` where they
    /// can keep none.
    pub(crate) fn shrink_least(&mut self, seats: Vec<Seat>) -> Vec<Seat> {
        let mut all = self.surplus_seats();
        let most = self.most_kept(&all);
        let rest = all.split_off(most);
        self.keep(&all);
        for one in rest.iter().take(ONE_BY_ONE) {
            if self.fits_beside(std::slice::from_ref(one)) {
                self.keep(std::slice::from_ref(one));
            }
        }
        if self.kept.is_empty() {
            return seats;
        }
        let instead = place_together(&mut self.scratch.trial(), self.fits, self.gang);
        instead.unwrap_or(seats)
    }

    /// All seats that chosen candidates would give up and go on, seats of running members first.
    fn surplus_seats(&self) -> Vec<(usize, Seat)> {
        let mut all = Vec::new();
        for at in &self.chosen {
            let candidate = &self.candidates[*at];
            if candidate.reason.is_none() {
                let spare = candidate.gang.spare_seats();
                let seats = candidate.seats.iter();
                all.extend(seats.map(|seat| (spare.contains(seat), *at, *seat)));
            }
        }
        all.sort_by_key(|(is_spare, ..)| *is_spare);
        all.into_iter().map(|(_, at, seat)| (at, seat)).collect()
    }

    /// The most of these, from the first, beside which the gang fits.
    fn most_kept(&mut self, all: &[(usize, Seat)]) -> usize {
        let (mut fits, mut above) = (0, all.len() + 1);
        while above - fits > 1 {
            let middle = fits + (above - fits) / 2;
            if self.fits_beside(&all[..middle]) {
                fits = middle;
            } else {
                above = middle;
            }
        }
        fits
    }

    /// Whether the gang fits if these seats are kept, beside those that are kept already. A seat on a node that is
    /// too small for all members on it was never free, and is not kept.
    fn fits_beside(&mut self, kept: &[(usize, Seat)]) -> bool {
        let world = self.scratch.world;
        let mut trial = self.scratch.trial();
        for (at, seat) in kept {
            let other = self.candidates[*at].gang;
            let signature = world.signature(other.sigs[usize::from(seat.role)]);
            if !trial.node_state(seat.node).is_some_and(|state| state.has_free(signature, seat)) {
                return false;
            }
            trial.sit(other, &[*seat]);
            quota::charge_seats(&mut trial, other, &[*seat]);
        }
        quota::over_limit(&trial, self.gang).is_none()
            && place_together(&mut trial, self.fits, self.gang).is_ok()
    }

    fn keep(&mut self, kept: &[(usize, Seat)]) {
        for (at, seat) in kept {
            let other = self.candidates[*at].gang;
            self.scratch.sit(other, &[*seat]);
            quota::charge_seats(self.scratch, other, &[*seat]);
        }
        self.kept.extend_from_slice(kept);
    }
}
