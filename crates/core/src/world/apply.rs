//! [`World::apply`]: the only way the World changes.

use crate::messages::event::{Event, Refusal};
use crate::messages::plan::Action;
use crate::units::time::Time;
use crate::world::World;

impl World {
    /// Applies one event that happened at `now`.
    ///
    /// # Errors
    /// When the event does not fit the World as it is; the World is unchanged then, except for its time.
    pub fn apply(&mut self, now: Time, event: &Event) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        self.end_quarantines();
        match event {
            Event::Synced => {
                self.synced = true;
                Ok(())
            }
            Event::Tick => Ok(()),
            Event::Epoch(unix_ms) => {
                self.epoch = *unix_ms;
                Ok(())
            }
            Event::NumbersFrom(number) => {
                self.next_order = self.next_order.max(*number);
                self.next_claim = self.next_claim.max(*number);
                Ok(())
            }
            Event::QueueSet(spec) => self.set_queue(spec.clone()),
            Event::QueueGone(name) => self.queue_gone(name),
            Event::PoolSet(spec) => self.set_pool(spec.clone()),
            Event::GangSubmitted(spec) => self.submit(spec),
            Event::GangCancelled(gang) => self.cancel(*gang),
            Event::GangChanged(spec) => self.change_gang(spec),
            Event::GangFound { gang, since, sitting } => self.restore_gang(*gang, *since, sitting),
            Event::GangWaits { gang, submitted, since } => {
                self.restore_waiting(*gang, *submitted, *since)
            }
            Event::OrderFound { order, placed, top_ups } => {
                self.restore_order(order, *placed, *top_ups)
            }
            Event::SeatsGivenBack { gang, seats } => self.give_seats_back(*gang, seats),
            Event::SeatsSpare { gang, seats } => self.spare_seats(*gang, seats),
            Event::GangTurnedOut { spec, sitting } => self.replace_members(spec, sitting),
            Event::ClaimFound { claim, offering, asked, launched } => {
                self.restore_claim(*claim, *offering, *asked, *launched)
            }
            Event::OfferingFound { offering, was } => self.restore_offering(*offering, *was),
            Event::OrdersFailed { gang, orders, last } => {
                self.restore_failed_orders(*gang, *orders, *last)
            }
            Event::NodeSeen(spec) => self.update_node(spec),
            Event::NodeIdle { name, since } => self.restore_idle(name, *since),
            Event::NodeGone(name) => self.remove_node(name),
            Event::NodeNotice { name, by } => self.notice_node(name, *by),
            Event::ClaimLaunched(claim) => self.launch_claim(*claim),
            Event::ClaimStopped(claim) => self.claim_stopped(*claim),
            Event::ClaimFailed(claim, failure) => self.fail_claim(*claim, *failure),
            Event::ClaimGone(claim) => self.forget_claim(*claim),
            Event::GangStarted(gang) => self.start(*gang),
            Event::GangResized(gang) => self.resized(*gang),
            Event::ResizeDeclined(gang) => self.decline(*gang),
            Event::GangMeasured(gang, efficiency) => self.measure(*gang, *efficiency),
            Event::GangStopped(gang) => self.stopped(*gang),
            Event::GangEnded(gang) => self.end(*gang),
            Event::Remembered(remembered) => {
                self.remember(remembered);
                Ok(())
            }
            Event::Expected { pool, outlook } => self.set_forecast(pool, outlook),
            Event::Decided(action) => self.decide(action),
        }
    }

    fn decide(&mut self, action: &Action) -> Result<(), Refusal> {
        match action {
            Action::Admit { gang, seats } => self.admit(*gang, seats),
            Action::Order(spec) => self.place_order(spec),
            Action::RollBack { order, reason } => self.roll_back(*order, *reason),
            Action::TopUp { order, lost, claim, offering } => {
                self.top_up(*order, *lost, *claim, *offering)
            }
            Action::Exchange { gets, coming, gives, ready } => {
                self.exchange(*gets, *coming, *gives, *ready)
            }
            Action::Stock { claims } => self.stock(claims),
            Action::Retry { claim, attempt } => self.retry(*claim, *attempt),
            Action::Park { claim } => self.park(*claim),
            Action::Retire { claim } => self.retire(*claim),
            Action::Resize { gang, seats } => self.resize(*gang, seats),
            Action::Stop { gang, reason } => self.stop(*gang, *reason),
            Action::Release { claim } => self.release(*claim),
        }
    }
}
