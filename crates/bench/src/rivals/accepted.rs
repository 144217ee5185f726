//! A request that was accepted counts as nodes, as Cluster Autoscaler's best-effort-atomic class does.
//!
//! All nodes a gang lacks are asked for in one node group (a type in a zone) at once. "It admits workload
//! immediately after successful request, without waiting to verify that resources started": members start
//! as their nodes come, and wait at the barrier for nodes that do not.

use muster_core::id::ClaimId;
use muster_core::time::{Span, Time};

use crate::rivals::events::{Alarm, News, Strategy};
use crate::rivals::offerings::{Backoff, Shelf};
use crate::rivals::pending_members::{Members, Short};
use crate::rivals::simulation::{Floor, State};

/// Settings, with the defaults of Cluster Autoscaler's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedTerms {
    /// A machine that is not ready by then is deleted and its group left alone (`max-node-provision-time`).
    pub provision: Span,
    /// How long a group is left alone after its first failure (`initial-node-group-backoff-duration`); doubles.
    pub backoff: Span,
    /// The longest a group is left alone (`max-node-group-backoff-duration`).
    pub backoff_max: Span,
    /// Failures longer ago are forgotten (`node-group-backoff-reset-timeout`).
    pub backoff_reset: Span,
    /// How long an empty machine is kept (`scale-down-unneeded-time`). That nothing at all is given back for
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
    members: Members,
    shelf: Shelf,
    wakes: Option<Time>,
}

impl Accepted {
    pub(crate) fn new(terms: AcceptedTerms) -> Self {
        Self { terms, members: Members::default(), shelf: Shelf::default(), wakes: None }
    }

    fn leave_alone(&mut self, floor: &Floor<'_>, claim: ClaimId) {
        let AcceptedTerms { backoff, backoff_max, backoff_reset, .. } = self.terms;
        let backoff = Backoff { first: backoff, most: backoff_max, forget: backoff_reset };
        self.shelf.leave_alone(floor.now, floor.machine(claim).offering, backoff);
    }

    /// Asks for all a gang lacks, in the group where that costs least. `false` when every group that would do
    /// is left alone.
    fn ask(&mut self, floor: &mut Floor<'_>, short: Short) -> bool {
        let nodes = |gpus: u16| short.count.div_ceil(u32::from(gpus / short.gpus));
        let cost = |at| (floor.spec(at).price.times(nodes(floor.spec(at).gpus)), at);
        let Some((_, at)) = self.shelf.open(floor, short.gpus).map(cost).min() else {
            return false;
        };
        for _ in 0..nodes(floor.spec(at).gpus) {
            let claim = floor.buy(at);
            floor.set(floor.now + self.terms.provision, Alarm::Overdue(claim));
        }
        true
    }
}

impl Strategy for Accepted {
    fn begin(&mut self, floor: &mut Floor<'_>) {
        self.shelf = Shelf::of(floor);
        floor.idle_after = Some(self.terms.idle_after);
    }

    fn hear(&mut self, floor: &mut Floor<'_>, news: News) {
        match news {
            News::Arrived(gang) => self.members.want(floor, gang, floor.gangs[gang].members),
            News::Broken { gang, lost, survivors } => {
                self.members.broken(floor, gang, lost, &survivors);
            }
            News::Refused(claim) => self.leave_alone(floor, claim),
            News::Alarm(Alarm::Overdue(claim)) => {
                if matches!(floor.machine(claim).state, State::Coming | State::Joined) {
                    self.leave_alone(floor, claim);
                    floor.give_back(claim);
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

    fn act(&mut self, floor: &mut Floor<'_>) {
        self.members.bind(floor);
        // One request after the other: what is bought for one gang may have room for the next.
        let mut refused = 0;
        while let Some(short) = self.members.short(floor).get(refused).copied() {
            refused += usize::from(!self.ask(floor, short));
        }
        if refused > 0 && self.wakes.is_none() {
            self.wakes = self.shelf.reopens(floor.now);
            if let Some(at) = self.wakes {
                floor.set(at, Alarm::Reopened);
            }
        }
    }
}
