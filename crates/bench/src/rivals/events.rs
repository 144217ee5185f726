//! The events of the simulation, and the news that a strategy gets of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Fact;
use muster_core::id::{ClaimId, NodeIdx};
use muster_core::order::ClaimFailure;
use muster_core::resource::NamedAmounts;
use muster_core::time::Time;
use muster_sim::cloud::Stage;

use crate::rivals::simulation::{RivalSim, State, id};

/// An event in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimEvent {
    /// A job is submitted.
    Submit(usize),
    /// A machine reaches a stage.
    Machine(ClaimId, Stage),
    /// A machine in service fails.
    Fails(ClaimId),
    /// A machine fails under a gang, if this is still the start it was scheduled for.
    GangFails(usize, u32),
    /// A gang's work is done, if this is still the start it was scheduled for.
    Done(usize, u32),
    /// A machine may have been empty since then.
    Idle(ClaimId, Time),
    /// An alarm of the strategy.
    Alarm(Alarm),
}

/// The purpose of an alarm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// A machine should have joined by now.
    Overdue(ClaimId),
    /// An operator notices a machine that never got its GPUs.
    Noticed(ClaimId),
    /// Try again for one gang.
    Again(usize),
    /// The back-off of an offering is over.
    Reopened,
}

/// News for a strategy.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A gang was submitted.
    Arrived(usize),
    /// A machine shows every GPU.
    Ready(ClaimId),
    /// The provider refuses: out of stock.
    Refused(ClaimId),
    /// A machine does not join, which shows when a good one would long be ready. Strategies with timeouts alone ignore
    /// it.
    Silent(ClaimId),
    /// A node lacks GPUs, for ever. Strategies with timeouts alone ignore it.
    ShortOfGpus(ClaimId),
    /// A gang has lost members with their machine, and its work if it was at work; `survivors` were stopped.
    Broken { gang: usize, lost: u32, survivors: Vec<ClaimId> },
    /// A machine has failed in service; its gangs were reported as broken before.
    Lost(ClaimId),
    /// A gang is done; the machines of its members.
    Ended(Vec<ClaimId>),
    /// An alarm is due.
    Alarm(Alarm),
}

/// A provisioning strategy.
pub(crate) trait Strategy {
    /// Before the first event.
    fn begin(&mut self, sim: &mut RivalSim<'_>);
    /// Handles news.
    fn on_news(&mut self, sim: &mut RivalSim<'_>, news: News);
    /// Acts after all events of an instant.
    fn act(&mut self, sim: &mut RivalSim<'_>);
}

impl RivalSim<'_> {
    /// Handles all events of the next instant. `false` when everything is over or `until` has come.
    pub(crate) fn step(&mut self, strategy: &mut impl Strategy, until: Time) -> bool {
        let over = self.unfinished == 0 && self.held == 0;
        let Some(at) = self.event_queue.next_at().filter(|at| !over && *at <= until) else {
            return false;
        };
        self.now = at;
        while self.event_queue.next_at() == Some(at) {
            let (_, what) = self.event_queue.pop().expect("just peeked");
            self.handle(strategy, what);
        }
        strategy.act(self);
        true
    }

    fn handle(&mut self, strategy: &mut impl Strategy, what: SimEvent) {
        match what {
            SimEvent::Submit(gang) => {
                self.submit(gang);
                strategy.on_news(self, News::Arrived(gang));
            }
            SimEvent::Machine(claim, stage) => {
                if self.machine(claim).state != State::Gone {
                    self.staged(strategy, claim, stage);
                }
            }
            SimEvent::Fails(claim) => {
                if self.machine(claim).state != State::Gone {
                    self.fails(strategy, claim);
                }
            }
            SimEvent::GangFails(gang, epoch) => {
                let seats = &self.gangs[gang].seats;
                if self.gangs[gang].epoch == epoch
                    && let Some(gang_failures) = &mut self.gang_failures
                {
                    let claim = seats[gang_failures.fail(gang, seats.len())];
                    self.fails(strategy, claim);
                }
            }
            SimEvent::Done(gang, epoch) => {
                if self.gangs[gang].epoch == epoch {
                    let seats = self.leave(gang);
                    self.gangs[gang].epoch += 1;
                    self.unfinished -= 1;
                    self.tell(&Fact::GangEnded { gang: id(gang) });
                    strategy.on_news(self, News::Ended(seats));
                }
            }
            SimEvent::Idle(claim, since) => {
                let machine = self.machine(claim);
                if machine.state == State::Ready
                    && machine.seated.is_empty()
                    && machine.empty_since == since
                {
                    self.release(claim);
                }
            }
            SimEvent::Alarm(alarm) => strategy.on_news(self, News::Alarm(alarm)),
        }
    }

    fn staged(&mut self, strategy: &mut impl Strategy, claim: ClaimId, stage: Stage) {
        let at = claim.0 as usize;
        match stage {
            Stage::Launched => self.tell(&Fact::ClaimLaunched { claim }),
            Stage::Joined => self.machines[at].state = State::Joined,
            Stage::Shows(gpus) => {
                if let Some(fails) = self.cloud.failure(self.now, self.machines[at].offering) {
                    self.event_queue.add(fails, SimEvent::Fails(claim));
                }
                if gpus < self.machines[at].gpus {
                    strategy.on_news(self, News::ShortOfGpus(claim));
                    return;
                }
                self.machines[at].state = State::Ready;
                self.coming.remove(&claim);
                self.open.insert((gpus, claim));
                let allocatable = self.spec(self.machines[at].offering).allocatable.clone();
                self.tell(&node_seen(claim, allocatable, gpus));
                self.note_empty(claim);
                strategy.on_news(self, News::Ready(claim));
            }
            Stage::Fails(failure) => {
                self.tell(&Fact::ClaimFailed { claim, failure });
                if matches!(failure, ClaimFailure::BootFailed | ClaimFailure::Vanished) {
                    strategy.on_news(self, News::Silent(claim));
                } else {
                    self.release(claim); // there is nothing to keep
                    strategy.on_news(self, News::Refused(claim));
                }
            }
        }
    }

    /// A machine in service is lost, and with it the work of every gang that had a member on it.
    fn fails(&mut self, strategy: &mut impl Strategy, claim: ClaimId) {
        self.tell(&Fact::ClaimFailed { claim, failure: ClaimFailure::Vanished });
        let mut hit: BTreeMap<usize, u32> = BTreeMap::new();
        for gang in &self.machine(claim).seated {
            *hit.entry(*gang).or_default() += 1;
        }
        let mut news = Vec::new();
        for (gang, lost) in hit {
            let survivors = if self.gangs[gang].at_work() {
                let mut survivors = self.stop(gang, claim);
                survivors.retain(|seat| *seat != claim);
                survivors
            } else {
                self.leave_one(gang, claim);
                Vec::new()
            };
            news.push(News::Broken { gang, lost, survivors });
        }
        self.release(claim);
        for news in news {
            strategy.on_news(self, news);
        }
        strategy.on_news(self, News::Lost(claim));
    }
}

fn node_seen(claim: ClaimId, allocatable: NamedAmounts, gpus: u16) -> Fact {
    Fact::NodeSeen {
        node: NodeIdx(claim.0),
        name: Arc::from(""),
        claim: Some(claim),
        allocatable,
        gpus,
        ready: true,
    }
}
