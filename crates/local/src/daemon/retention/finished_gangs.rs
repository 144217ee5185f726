//! Deletes finished gangs after their retention time, and the oldest beyond a maximum. Their usage is kept for good.
//!
//! A wall clock can be wrong for hours. So a gang is deleted for its age only when two checks some minutes apart agree
//! that it is old, and only a fraction of all gangs at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_clock::since_boot;
use muster_server::Kind;

use crate::daemon::effects::Effect;
use crate::daemon::state::Daemon;
use crate::system::clock::{wall_now, wall_read};

/// Retention of finished gangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// For how long.
    pub time: Duration,
    /// How many at most.
    pub gangs: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { time: Duration::from_secs(7 * 24 * 3_600), gangs: 10_000 }
    }
}

impl Keep {
    /// How often retention is checked: often enough that no gang stays much longer than configured.
    pub(crate) fn check_every(&self) -> Duration {
        (self.time / 10).clamp(Duration::from_secs(1), Duration::from_secs(60))
    }

    /// The minimum time between two checks that must agree, and between two batches of deletions.
    fn confirmed_after(&self) -> Duration {
        (self.time / 10).clamp(Duration::from_secs(1), Duration::from_secs(300))
    }
}

/// Gangs that may be deleted for their age at once, however few there are.
const PART_LEAST: usize = 16;
/// Otherwise one in this many.
const PART: usize = 10;

/// Gangs that one check found old, until another check agrees.
#[derive(Debug, Default)]
pub(crate) struct Aging {
    /// When the first check was, by the boot-time clock, and what it found.
    first: Option<(Duration, BTreeSet<i64>)>,
}

impl Aging {
    /// The gangs that are old by this check and by an earlier one, at most a fraction of all that are kept.
    fn confirmed(
        &mut self,
        keep: &Keep,
        now: Duration,
        old: &BTreeSet<i64>,
        kept: usize,
    ) -> BTreeSet<i64> {
        let Some((since, found)) = &mut self.first else {
            self.first = (!old.is_empty()).then(|| (now, old.clone()));
            return BTreeSet::new();
        };
        // A gang that is no longer old never was: the clock was wrong.
        found.retain(|uid| old.contains(uid));
        if now.saturating_sub(*since) < keep.confirmed_after() {
            return BTreeSet::new();
        }
        let most = (kept / PART).max(PART_LEAST);
        let gone: BTreeSet<i64> = found.iter().copied().take(most).collect();
        let left: BTreeSet<i64> = old.difference(&gone).copied().collect();
        self.first = (!left.is_empty()).then_some((now, left));
        gone
    }
}

impl Daemon {
    /// Deletes gangs that finished long ago, with their output.
    pub(crate) fn delete_expired(&mut self) {
        if self
            .retention_checked
            .is_some_and(|looked| looked.elapsed() < self.retention.check_every())
        {
            return;
        }
        self.retention_checked = Some(Instant::now());
        let keep = self.retention;
        let time = i64::try_from(keep.time.as_millis()).unwrap_or(i64::MAX);
        // Old by both the steady clock and the wall clock.
        let before = wall_now().min(wall_read()).saturating_sub(time);
        let old = self.store.gangs_to_forget(before, u64::MAX);
        let old = self.check_store(old).unwrap_or_default();
        let kept = self.store.count_over();
        let kept = self.check_store(kept).unwrap_or_default();
        let uids = old.iter().map(|(uid, _)| *uid).collect();
        let gone = self.aging.confirmed(&keep, since_boot(), &uids, kept);
        let surplus = self.store.gangs_to_forget(i64::MIN, keep.gangs);
        let surplus = self.check_store(surplus).unwrap_or_default();
        let mut all: Vec<(i64, String)> =
            old.into_iter().filter(|(uid, _)| gone.contains(uid)).collect();
        all.extend(surplus.into_iter().filter(|(uid, _)| !gone.contains(uid)));
        for (uid, name) in all {
            self.delete_one(uid, &name.into());
        }
    }

    fn delete_one(&mut self, uid: i64, name: &Arc<str>) {
        let runs = self.store.forget_gang(uid);
        for run in self.check_store(runs).unwrap_or_default() {
            self.effects.push(Effect::RemoveDirectory(self.run_directory(run)));
        }
        if self.gangs.get(name).is_some_and(|gang| gang.uid == uid) {
            self.gangs.remove(name);
            self.outbox.remove(self.clock.stamp(self.now), Kind::Gang, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks by minute: the gangs found old in each, and the gangs deleted then.
    fn forgotten(looks: &[(u64, &[i64])], kept: usize) -> Vec<Vec<i64>> {
        let (keep, mut aging) = (Keep::default(), Aging::default());
        let look = |(minute, old): &(u64, &[i64])| {
            let (now, old) = (Duration::from_secs(minute * 60), old.iter().copied().collect());
            aging.confirmed(&keep, now, &old, kept).into_iter().collect()
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn clock_nine_days_ahead_for_four_minutes_deletes_nothing() {
        let all: &[i64] = &[1, 2, 3];
        let looks = [(0, &[][..]), (1, all), (3, all), (5, &[]), (6, &[]), (20, all)];
        assert!(forgotten(&looks, 3).iter().all(Vec::is_empty));
    }

    #[test]
    fn two_checks_minutes_apart_that_agree_delete_old_gangs() {
        let looks: [(u64, &[i64]); 4] = [(0, &[1]), (1, &[1, 2]), (5, &[1, 2]), (10, &[2])];
        assert_eq!(forgotten(&looks, 2), [vec![], vec![], vec![1], vec![2]]);
    }

    #[test]
    fn only_a_fraction_is_deleted_at_once() {
        let all: Vec<i64> = (0..1_000).collect();
        let looks: [(u64, &[i64]); 3] = [(0, &all), (5, &all), (6, &all[100..])];
        let counts: Vec<usize> = forgotten(&looks, 1_000).iter().map(Vec::len).collect();
        assert_eq!(counts, [0, 100, 0]);
    }
}
