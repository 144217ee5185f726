//! Quarantines objects that make the host panic, so that one bad gang costs that gang and not the process.
//!
//! A panic may leave the host's state half changed, so none of it is kept: everything is listed and rebuilt, without the item
//! that was being handled. The item is retried after a backoff that doubles.
//!
//! A panic of the planner names no item. Its suspects are the gangs that it was given since it last returned: they are
//! withheld in halves, and after every plan that succeeds one half is given to it again, until a single gang is left that
//! repeats the panic. A panic without any suspect ends the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cache::kinds::KindRole;
use crate::cache::store::Key;

/// The first backoff of an item.
const FIRST_BACKOFF: Duration = Duration::from_secs(60);
/// The longest backoff. Each one ends with one list of everything if the panic repeats.
const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// The characters of a panic's message that are shown.
const SHOWN: usize = 200;

/// What the host handles, which a panic is attributed to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WorkItem {
    Gang(Arc<str>),
    Pod(Key),
    Node(Key),
    Claim(Key),
    Object(KindRole, Key),
    /// No single object: all gangs that the planner was given.
    Planner,
}

/// Why an item is quarantined, and for how long.
#[derive(Debug)]
struct QuarantineEntry {
    why: String,
    since: Instant,
    backoff: Duration,
    /// Whether it was retried since.
    retried: bool,
}

impl QuarantineEntry {
    fn until(&self) -> Instant {
        self.since + self.backoff
    }
}

/// All items that are quarantined.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    entries: BTreeMap<WorkItem, QuarantineEntry>,
    /// Suspects of a panic of the planner that are withheld from it.
    withheld: Vec<BTreeSet<Arc<str>>>,
}

impl Quarantine {
    /// Quarantines an item: for longer each time.
    pub(crate) fn isolate(&mut self, item: WorkItem, panic: &str, now: Instant) {
        let before = self.entries.get(&item).map(|entry| entry.backoff);
        let backoff = before.map_or(FIRST_BACKOFF, |backoff| (backoff * 2).min(MAX_BACKOFF));
        let shown: String = panic.chars().take(SHOWN).collect();
        let why = format!(
            "quarantined for {} s: handling it caused an internal error ({shown})",
            backoff.as_secs()
        );
        tracing::error!(?item, seconds = backoff.as_secs(), panic = shown, "quarantined");
        self.entries.insert(item, QuarantineEntry { why, since: now, backoff, retried: false });
    }

    /// Whether an item is quarantined now.
    pub(crate) fn has(&self, item: &WorkItem, now: Instant) -> bool {
        self.entries.get(item).is_some_and(|entry| now < entry.until())
    }

    /// Why a gang is quarantined or withheld, if it is.
    pub(crate) fn reason(&self, gang: &Arc<str>, now: Instant) -> Option<String> {
        if self.entries.is_empty() && self.withheld.is_empty() {
            return None;
        }
        let entry = self.entries.get(&WorkItem::Gang(gang.clone()));
        let entry = entry.filter(|entry| now < entry.until()).map(|entry| entry.why.clone());
        let is_withheld = || self.withheld.iter().any(|half| half.contains(gang));
        let withheld = || "withheld while the cause of an internal error is searched".to_owned();
        entry.or_else(|| is_withheld().then(withheld))
    }

    /// Handles a panic of the planner after it was given these gangs. Returns whether there was a gang to suspect.
    pub(crate) fn plan_failed(&mut self, suspects: &[Arc<str>], panic: &str, now: Instant) -> bool {
        match suspects {
            [] => return false,
            [one] => self.isolate(WorkItem::Gang(one.clone()), panic, now),
            all => {
                let (first, second) = all.split_at(all.len() / 2);
                tracing::error!(suspects = all.len(), panic, "the planner panicked");
                self.withheld.push(second.iter().cloned().collect());
                self.withheld.push(first.iter().cloned().collect());
            }
        }
        true
    }

    /// Handles a plan that succeeded. Returns the gangs that the planner is given next.
    pub(crate) fn plan_succeeded(&mut self) -> BTreeSet<Arc<str>> {
        self.withheld.pop().unwrap_or_default()
    }

    /// Items whose backoff is over, once each. An item that caused no panic for long after that is forgotten.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<WorkItem> {
        self.entries.retain(|_, entry| now < entry.until() + MAX_BACKOFF);
        let over = self.entries.iter_mut().filter_map(|(item, entry)| {
            let is_over = !entry.retried && entry.until() <= now;
            entry.retried |= is_over;
            is_over.then(|| item.clone())
        });
        over.collect()
    }

    /// The time until the next backoff is over.
    pub(crate) fn time_to_next_retry(&self, now: Instant) -> Option<Duration> {
        let waiting = self.entries.values().filter(|entry| !entry.retried);
        waiting.map(|entry| entry.until().saturating_duration_since(now)).min()
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic without a message")
}

#[cfg(test)]
mod tests {
    use crate::recover::quarantine::*;

    fn gangs(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|at| Arc::from(format!("team-a/g{at:03}"))).collect()
    }

    /// Simulates a planner that panics whenever it is given one of the bad gangs. Returns how often it panicked.
    fn search(
        quarantine: &mut Quarantine,
        all: &[Arc<str>],
        bad: &[Arc<str>],
        now: Instant,
    ) -> u32 {
        let mut panics = 0;
        let mut shown: BTreeSet<Arc<str>> = all.iter().cloned().collect();
        for _ in 0..10_000 {
            let visible = |gang: &&Arc<str>| quarantine.reason(gang, now).is_none();
            let seen: Vec<Arc<str>> = shown.iter().filter(visible).cloned().collect();
            if seen.iter().any(|gang| bad.contains(gang)) {
                panics += 1;
                assert!(quarantine.plan_failed(&seen, "boom", now));
                shown = all.iter().cloned().collect(); // the World is rebuilt
                let bad_is_seen = |gang: &&Arc<str>| quarantine.reason(gang, now).is_none();
                shown.retain(|gang| bad_is_seen(&gang));
            } else {
                let next = quarantine.plan_succeeded();
                if next.is_empty() {
                    return panics;
                }
                shown = next;
            }
        }
        panic!("the search does not end");
    }

    #[test]
    fn planner_panic_quarantines_only_the_gangs_that_cause_it() {
        let (all, now) = (gangs(200), Instant::now());
        for bad in [vec![], vec![all[0].clone()], vec![all[63].clone(), all[199].clone()]] {
            let mut quarantine = Quarantine::default();
            let panics = search(&mut quarantine, &all, &bad, now);
            let out: Vec<Arc<str>> =
                all.iter().filter(|gang| quarantine.reason(gang, now).is_some()).cloned().collect();
            assert_eq!(out, bad);
            assert!(panics <= 9 * bad.len() as u32, "{panics} panics for {}", bad.len());
        }
    }

    #[test]
    fn planner_panic_without_suspects_is_not_handled() {
        assert!(!Quarantine::default().plan_failed(&[], "boom", Instant::now()));
    }

    #[test]
    fn backoff_doubles_and_an_item_is_due_once_after_each() {
        let (mut quarantine, mut now) = (Quarantine::default(), Instant::now());
        let item = WorkItem::Gang("team-a/bad".into());
        for backoff in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            quarantine.isolate(item.clone(), "boom", now);
            now += Duration::from_secs(backoff - 1);
            assert!(quarantine.has(&item, now) && quarantine.due(now).is_empty());
            now += Duration::from_secs(1);
            assert!(!quarantine.has(&item, now));
            assert_eq!(quarantine.due(now), std::slice::from_ref(&item));
            assert!(quarantine.due(now).is_empty());
        }
        // After a long time without a panic the backoff starts over.
        now += MAX_BACKOFF;
        assert!(quarantine.due(now).is_empty());
        quarantine.isolate(item.clone(), "boom", now);
        assert_eq!(quarantine.time_to_next_retry(now), Some(FIRST_BACKOFF));
    }
}
