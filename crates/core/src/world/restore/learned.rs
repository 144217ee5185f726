//! The learned state of a World, passed on to the next World.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::Run;
use crate::history::decayed_usage::DecayedUsage;
use crate::history::remembered::{PastDemand, PastUse, Remembered};
use crate::world::World;

impl World {
    /// Everything that cannot be observed, as of now.
    pub fn remembered(&self) -> Remembered {
        let queues = self.queues.values().map(|queue| {
            let past = queue.past.later(&queue.usage, queue.half_life, self.now);
            (queue.spec.name.clone(), past.named(&self.names))
        });
        let pools = self.pools.values().filter_map(|pool| {
            let arrivals = pool.demand.arrivals().iter().copied().collect();
            let since = pool.demand.since()?;
            Some((pool.spec.name.clone(), PastDemand { since, until: self.now, arrivals }))
        });
        Remembered {
            at: self.now,
            queues: queues.filter(|(_, past)| *past != PastUse::default()).collect(),
            users: self.history.by_user(),
            pools: pools.collect(),
        }
    }

    /// Restores the learned state of an earlier World. Queues and pools that do not exist are skipped, and so is
    /// everything later than now: clocks of hosts differ.
    pub(in crate::world) fn remember(&mut self, remembered: &Remembered) {
        let now = self.now;
        for (name, used) in &remembered.queues {
            let Some(queue) = self.queue_by_name.get(name) else { continue };
            let past = DecayedUsage::from_named(used, remembered.at.min(now), &mut self.names);
            self.queues[*queue].past = past;
        }
        let mut runs: Vec<(&Run, &Arc<str>)> = Vec::new();
        for (user, theirs) in &remembered.users {
            runs.extend(theirs.iter().filter(|run| run.ended <= now).map(|run| (run, user)));
        }
        runs.sort_by_key(|(run, _)| run.ended);
        runs.into_iter().for_each(|(run, user)| self.history.record(user, *run));
        for (name, past) in &remembered.pools {
            let Some(pool) = self.pool_by_name.get(name) else { continue };
            let pool = &mut self.pools[*pool];
            if pool.spec.ahead.forecast.is_some() {
                pool.demand.restore(past, now);
            }
        }
    }
}

impl crate::history::History {
    /// Every user's latest runs, the oldest first.
    fn by_user(&self) -> BTreeMap<Arc<str>, Vec<Run>> {
        self.users().map(|(user, runs)| (user.clone(), runs.copied().collect())).collect()
    }
}
