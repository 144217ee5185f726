//! An accepted request counts as nodes, as in Cluster Autoscaler's best-effort-atomic class.
//!
//! All nodes a gang lacks are requested in one node group (a type in a zone) at once. "It admits workload
//! immediately after successful request, without waiting to verify that resources started": members start
//! as their nodes come, and wait at the barrier for nodes that do not.

use muster_core::id::ClaimId;
use muster_core::time::{Span, Time};

use crate::rivals::events::{Alarm, News, Strategy};
use crate::rivals::offerings::{Backoff, Offerings};
use crate::rivals::pending_members::{PendingMembers, Unplaced};
use crate::rivals::simulation::{RivalSim, State};

/// Settings, with the defaults of Cluster Autoscaler's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedTerms {
    /// A machine that is not ready by then is deleted and its group backs off (`max-node-provision-time`).
    pub provision: Span,
    /// The back-off of a group after its first failure (`initial-node-group-backoff-duration`); doubles.
    pub backoff: Span,
    /// The longest back-off of a group (`max-node-group-backoff-duration`).
    pub backoff_max: Span,
    /// Failures longer ago are forgotten (`node-group-backoff-reset-timeout`).
    pub backoff_reset: Span,
    /// How long an empty machine is kept (`scale-down-unneeded-time`). That nothing at all is released for
    /// ten minutes after any purchase (`scale-down-delay-after-add`) is not modelled, in the rival's favour.
    pub idle_after: Span,
}

impl Default for AcceptedTerms {
    fn default() -> Self {
        Self {
            provision: Span::mins(15),
            backoff: Span::mins(5),
            backoff_max: Span::mins(30),
            backoff_reset: Span::hours(3),
            idle_after: Span::mins(10),
        }
    }
}

/// The strategy and its state.
pub(crate) struct Accepted {
    terms: AcceptedTerms,
    members: PendingMembers,
    offerings: Offerings,
    wakes: Option<Time>,
}

impl Accepted {
    pub(crate) fn new(terms: AcceptedTerms) -> Self {
        Self {
            terms,
            members: PendingMembers::default(),
            offerings: Offerings::default(),
            wakes: None,
        }
    }

    fn back_off(&mut self, sim: &RivalSim<'_>, claim: ClaimId) {
        let AcceptedTerms { backoff, backoff_max, backoff_reset, .. } = self.terms;
        let backoff = Backoff { first: backoff, most: backoff_max, forget: backoff_reset };
        self.offerings.back_off(sim.now, sim.machine(claim).offering, backoff);
    }

    /// Requests all nodes a gang lacks, in the group where that costs least. `false` when every suitable group backs
    /// off.
    fn ask(&mut self, sim: &mut RivalSim<'_>, short: Unplaced) -> bool {
        let nodes = |gpus: u16| short.count.div_ceil(u32::from(gpus / short.gpus));
        let cost = |at| (sim.spec(at).price.times(nodes(sim.spec(at).gpus)), at);
        let Some((_, at)) = self.offerings.open(sim, short.gpus).map(cost).min() else {
            return false;
        };
        for _ in 0..nodes(sim.spec(at).gpus) {
            let claim = sim.buy(at);
            sim.set(sim.now + self.terms.provision, Alarm::Overdue(claim));
        }
        true
    }
}

impl Strategy for Accepted {
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
            News::Refused(claim) => self.back_off(sim, claim),
            News::Alarm(Alarm::Overdue(claim)) => {
                if matches!(sim.machine(claim).state, State::Coming | State::Joined) {
                    self.back_off(sim, claim);
                    sim.release(claim);
                }
            }
            News::Alarm(Alarm::Reopened) => self.wakes = None,
            News::Alarm(Alarm::Again(_) | Alarm::Noticed(_))
            | News::Ready(_)
            | News::Silent(_)
            | News::ShortOfGpus(_)
            | News::Lost(_)
            | News::Ended(_) => {}
        }
    }

    fn act(&mut self, sim: &mut RivalSim<'_>) {
        self.members.bind(sim);
        // One request after the other: nodes bought for one gang may have room for the next.
        let mut refused = 0;
        while let Some(short) = self.members.short(sim).get(refused).copied() {
            refused += usize::from(!self.ask(sim, short));
        }
        if refused > 0 && self.wakes.is_none() {
            self.wakes = self.offerings.reopens(sim.now);
            if let Some(at) = self.wakes {
                sim.set(at, Alarm::Reopened);
            }
        }
    }
}
