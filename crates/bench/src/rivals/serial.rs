//! One zone after the other, all or nothing, as in SkyPilot.
//!
//! Every job gets machines of its own: the full set of one type in one zone, in order of price. If any of them
//! fails, all are released and the next zone is tried. When the job is done they are released at once. Nothing starts
//! before all are ready, so there are no partial starts; nothing is shared either.

use std::collections::BTreeMap;

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::time::Span;

use crate::rivals::events::{Alarm, News, Strategy};
use crate::rivals::simulation::{RivalSim, State};

/// Settings, with the values of SkyPilot's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SerialTerms {
    /// The pause when every zone has been tried (`_RETRY_UNTIL_UP_INIT_GAP_SECONDS`). Older versions let it
    /// grow; a pause that stays short gives shorter waits and costs nothing here.
    pub pause: Span,
}

impl Default for SerialTerms {
    fn default() -> Self {
        Self { pause: Span::secs(30) }
    }
}

/// One job's attempt.
#[derive(Clone, Debug, Default)]
struct Attempt {
    /// Offerings not tried yet in this round, the next one last.
    left: Vec<OfferingRef>,
    claims: Vec<ClaimId>,
}

/// The strategy and its state.
pub(crate) struct Serial {
    terms: SerialTerms,
    attempts: BTreeMap<usize, Attempt>,
    owner: BTreeMap<ClaimId, usize>,
}

impl Serial {
    pub(crate) fn new(terms: SerialTerms) -> Self {
        Self { terms, attempts: BTreeMap::new(), owner: BTreeMap::new() }
    }

    /// Starts a round: every suitable offering, cheapest first.
    fn begin_round(&mut self, sim: &mut RivalSim<'_>, gang: usize) {
        let wants = sim.gangs[gang].gpus;
        let mut left = sim.by_price();
        left.retain(|at| sim.spec(*at).gpus >= wants);
        left.sort_by_key(|at| (sim.spec(*at).price.times(machines(sim, gang, *at)), *at));
        left.reverse();
        self.attempts.insert(gang, Attempt { left, claims: Vec::new() });
        self.try_next(sim, gang);
    }

    fn try_next(&mut self, sim: &mut RivalSim<'_>, gang: usize) {
        let attempt = self.attempts.get_mut(&gang).expect("a round has begun");
        let Some(at) = attempt.left.pop() else {
            sim.set(sim.now + self.terms.pause, Alarm::Again(gang));
            return;
        };
        for _ in 0..machines(sim, gang, at) {
            let claim = sim.buy(at);
            attempt.claims.push(claim);
            self.owner.insert(claim, gang);
        }
    }

    /// Releases all machines of an attempt.
    fn tear_down(&mut self, sim: &mut RivalSim<'_>, gang: usize) {
        let attempt = self.attempts.get_mut(&gang).expect("it has an attempt");
        for claim in attempt.claims.drain(..) {
            self.owner.remove(&claim);
            sim.release(claim);
        }
    }

    /// One machine failed: the whole set is released, and the next offering is tried.
    fn failed(&mut self, sim: &mut RivalSim<'_>, claim: ClaimId) {
        let Some(gang) = self.owner.get(&claim).copied() else { return };
        self.tear_down(sim, gang);
        sim.accounts.rollbacks += 1;
        self.try_next(sim, gang);
    }

    fn ready(&mut self, sim: &mut RivalSim<'_>, claim: ClaimId) {
        let gang = self.owner[&claim];
        let claims = &self.attempts[&gang].claims;
        if claims.iter().any(|claim| sim.machine(*claim).state != State::Ready) {
            return;
        }
        let per = u32::from(sim.machine(claim).gpus / sim.gangs[gang].gpus);
        for member in 0..sim.gangs[gang].members {
            sim.seat(gang, claims[(member / per) as usize]);
        }
    }
}

/// Machines of one type that a gang needs.
fn machines(sim: &RivalSim<'_>, gang: usize, at: OfferingRef) -> u32 {
    let gang = &sim.gangs[gang];
    gang.members.div_ceil(u32::from(sim.spec(at).gpus / gang.gpus))
}

impl Strategy for Serial {
    fn begin(&mut self, _: &mut RivalSim<'_>) {}

    fn on_news(&mut self, sim: &mut RivalSim<'_>, news: News) {
        match news {
            News::Arrived(gang) | News::Alarm(Alarm::Again(gang)) => self.begin_round(sim, gang),
            News::Ready(claim) => self.ready(sim, claim),
            // A machine that is lost before the set is complete counts as one that never came.
            News::Refused(claim)
            | News::Silent(claim)
            | News::ShortOfGpus(claim)
            | News::Lost(claim) => self.failed(sim, claim),
            News::Broken { gang, .. } => {
                self.tear_down(sim, gang);
                self.begin_round(sim, gang);
            }
            News::Ended(seats) => {
                let gang = self.owner[&seats[0]];
                self.tear_down(sim, gang);
                self.attempts.remove(&gang);
            }
            News::Alarm(_) => {}
        }
    }

    fn act(&mut self, _: &mut RivalSim<'_>) {}
}
