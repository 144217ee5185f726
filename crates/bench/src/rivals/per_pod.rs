//! Every member on its own, as in Karpenter.
//!
//! Machines are bought for the members that wait at the moment, packed together, regardless of
//! their gangs. A member starts when its machine is ready.

use muster_core::id::ClaimId;
use muster_core::time::{Span, Time};

use crate::rivals::events::{Alarm, News, Strategy};
use crate::rivals::offerings::{Backoff, Offerings};
use crate::rivals::pending_members::{PendingMembers, Unplaced};
use crate::rivals::simulation::{RivalSim, State};

/// Settings, with the values of Karpenter's source where it has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerPodTerms {
    /// A machine that has not joined by then is deleted and requested again (`registrationTimeout`).
    pub registration: Span,
    /// When an operator notices a node whose GPUs never appeared: Karpenter has no timeout for that, and counts
    /// the node as capacity until it is deleted by hand. A guess, in the rival's favour.
    pub noticed_after: Span,
    /// The back-off of an offering that is out of stock (`UnavailableOfferingsTTL`).
    pub stock_out: Span,
    /// How long an empty machine is kept (`consolidateAfter`).
    pub idle_after: Span,
}

impl Default for PerPodTerms {
    fn default() -> Self {
        Self {
            registration: Span::mins(15),
            noticed_after: Span::hours(1),
            stock_out: Span::mins(3),
            idle_after: Span::mins(10),
        }
    }
}

/// The strategy and its state. The launch timeout of five minutes is not modelled: it covers the call that requests
/// a machine, and these clouds answer that within seconds.
pub(crate) struct PerPod {
    terms: PerPodTerms,
    members: PendingMembers,
    offerings: Offerings,
    wakes: Option<Time>,
}

impl PerPod {
    pub(crate) fn new(terms: PerPodTerms) -> Self {
        Self {
            terms,
            members: PendingMembers::default(),
            offerings: Offerings::default(),
            wakes: None,
        }
    }

    fn buy(&mut self, sim: &mut RivalSim<'_>, gpus: u16) -> Option<ClaimId> {
        let offering = self.offerings.open(sim, gpus).next()?;
        let claim = sim.buy(offering);
        sim.set(sim.now + self.terms.registration, Alarm::Overdue(claim));
        Some(claim)
    }
}

impl Strategy for PerPod {
    fn begin(&mut self, sim: &mut RivalSim<'_>) {
        self.offerings = Offerings::of(sim);
        sim.idle_after = Some(self.terms.idle_after);
    }

    fn on_news(&mut self, sim: &mut RivalSim<'_>, news: News) {
        match news {
            News::Arrived(gang) => self.members.want(sim, gang, sim.gangs[gang].members),
            News::Broken { gang, lost, survivors } => {
                self.members.broken(sim, gang, lost, &survivors);
            }
            News::Refused(claim) => {
                let pause = self.terms.stock_out;
                let backoff = Backoff { first: pause, most: pause, forget: Span::ZERO };
                self.offerings.back_off(sim.now, sim.machine(claim).offering, backoff);
            }
            News::ShortOfGpus(claim) => {
                sim.set(sim.now + self.terms.noticed_after, Alarm::Noticed(claim));
            }
            News::Alarm(Alarm::Overdue(claim)) => {
                if sim.machine(claim).state == State::Coming {
                    sim.release(claim);
                }
            }
            News::Alarm(Alarm::Noticed(claim)) => sim.release(claim),
            News::Alarm(Alarm::Reopened) => self.wakes = None,
            News::Alarm(Alarm::Again(_))
            | News::Ready(_)
            | News::Silent(_)
            | News::Lost(_)
            | News::Ended(_) => {}
        }
    }

    fn act(&mut self, sim: &mut RivalSim<'_>) {
        self.members.bind(sim);
        let short = self.members.short(sim);
        let mut all_served = true;
        for gpus in
            pack(&short, |gpus| self.offerings.open(sim, gpus).map(|at| sim.spec(at).gpus).max())
        {
            all_served &= gpus.is_some_and(|gpus| self.buy(sim, gpus).is_some());
        }
        if !all_served && self.wakes.is_none() {
            self.wakes = self.offerings.reopens(sim.now);
            if let Some(at) = self.wakes {
                sim.set(at, Alarm::Reopened);
            }
        }
    }
}

/// Packs members into as few machines as the largest available type allows, larger members first; returns the GPUs that
/// each machine must have at least, or none for members that no available type fits.
fn pack(short: &[Unplaced], largest: impl Fn(u16) -> Option<u16>) -> Vec<Option<u16>> {
    let mut bins: Vec<Option<u16>> = Vec::new();
    for Unplaced { gpus, count, .. } in short {
        let Some(most) = largest(*gpus) else {
            bins.push(None);
            continue;
        };
        for _ in 0..*count {
            let room = |bin: &&mut Option<u16>| bin.is_some_and(|used| used + gpus <= most);
            match bins.iter_mut().find(room) {
                Some(Some(used)) => *used += gpus,
                _ => bins.push(Some(*gpus)),
            }
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_packed_into_as_few_machines_as_the_largest_type_allows() {
        let short = |gpus, count| Unplaced { gang: 0, gpus, count };
        let packed = pack(&[short(8, 2), short(4, 1), short(1, 5)], |_| Some(8));
        assert_eq!(packed, [Some(8), Some(8), Some(8), Some(1)]);
        assert_eq!(pack(&[short(8, 3)], |_| None), [None], "nothing to be had");
    }
}
