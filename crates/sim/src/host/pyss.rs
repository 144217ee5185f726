//! The event order of pyss, the simulator behind the published backfilling results.
//!
//! Start times can be compared job by job only if the order of events within one instant is the same: all
//! submissions come before all ends, the planner runs after each of them, and after a submission only if the new job
//! fits now (or if predictions of run times change by themselves). A job that ends exactly as predicted has released its
//! processors before any other event of that instant.

use muster_plan::place::{Fits, place};
use muster_plan::predict::{self, Belief};
use muster_plan::scratch::Scratch;

use crate::host::events::SimEvent;
use crate::host::sim::Sim;

impl Sim {
    /// Handles the events of one instant in the order of pyss.
    pub(crate) fn step_as_pyss(&mut self) {
        let Some(at) = self.event_queue.next_at() else { return };
        self.now = at;
        let mut instant = Vec::new();
        while self.event_queue.next_at() == Some(at) {
            instant.extend(self.event_queue.pop().map(|(_, event)| event));
        }
        for event in &instant {
            if self.ends_as_believed(event) {
                self.handle(*event);
            }
        }
        for event in instant {
            match event {
                SimEvent::Submit(job) => {
                    self.handle(event);
                    // Predictions that are corrected as time passes open holes without any job ending.
                    let corrects = self.policy.order.belief() == Belief::LastTwo;
                    if corrects || self.fits_now(job) {
                        self.plan_once();
                    }
                }
                // Handled above, if it ended as predicted; the planner runs all the same.
                _ => {
                    self.handle(event);
                    self.plan_once();
                }
            }
        }
    }

    fn ends_as_believed(&self, event: &SimEvent) -> bool {
        let SimEvent::Done(gang, epoch) = event else { return false };
        let belief = self.policy.order.belief();
        let current = self.running.get(gang).is_some_and(|running| running.epoch == *epoch);
        let hoped = |gang| predict::end_as_hoped(&self.world, gang, belief, self.now) == self.now;
        current && self.world.gang(*gang).is_some_and(hoped)
    }

    fn fits_now(&self, job: usize) -> bool {
        let gang =
            self.world.gang_named(&self.jobs[job].gang.name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| {
            place(&mut Scratch::new(&self.world), &mut Fits::default(), gang).is_ok()
        })
    }
}
