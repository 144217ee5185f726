//! What the World remembers, handed on to the World that comes after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::Run;
use crate::history::decayed_usage::Past;
use crate::history::remembered::{PastDemand, PastUse, Remembered};
use crate::world::World;

impl World {
    /// All that cannot be seen by looking, as of now.
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

    /// Takes over what a World before this one remembered. Queues and pools that are not there are passed over, and so is
    /// whatever is said to have been later than now: clocks of hosts differ.
    pub(super) fn remember(&mut self, remembered: &Remembered) {
        let now = self.now;
        for (name, used) in &remembered.queues {
            let Some(queue) = self.queue_by_name.get(name) else { continue };
            let past = Past::from_named(used, remembered.at.min(now), &mut self.names);
            self.queues[*queue].past = past;
        }
        let mut runs: Vec<(&Run, &Arc<str>)> = Vec::new();
        for (user, theirs) in &remembered.users {
            runs.extend(theirs.iter().filter(|run| run.ended <= now).map(|run| (run, user)));
        }
        runs.sort_by_key(|(run, _)| run.ended);
        runs.into_iter().for_each(|(run, user)| self.history.note(user, *run));
        for (name, past) in &remembered.pools {
            let Some(pool) = self.pool_by_name.get(name) else { continue };
            let pool = &mut self.pools[*pool];
            if pool.spec.ahead.forecast.is_some() {
                pool.demand.remember(past, now);
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
