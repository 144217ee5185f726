//! The baseline: what plain first come, first served with EASY backfilling would have made of the same gangs.
//!
//! It is replayed beside the real schedule, from facts alone: a gang runs in it for as long as it really ran,
//! so its clock stands still until that is known. An elastic gang has its minimum there, and takes as long as it
//! would have with that. What counts is the longest wait: an order that lets others go first can be told when
//! somebody has waited about as long as he would have without it.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use crate::id::GangId;
use crate::objects::queue::Usage;
use crate::units::time::{Span, Time};

/// One gang, in the baseline and in truth.
#[derive(Clone, Debug)]
struct Entry {
    wants: Usage,
    said: Span,
    submitted: Time,
    /// When it started here.
    started: Option<Time>,
    truth: Truth,
}

/// What has really become of a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Truth {
    Waits,
    Runs { since: Time },
    Ended { lasted: Span },
}

/// The replay.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    clock: Time,
    entries: FxHashMap<GangId, Entry>,
    /// Submitted in truth, not here yet.
    coming: VecDeque<(Time, GangId)>,
    /// Wait here, oldest first.
    queue: VecDeque<GangId>,
    /// Run here, by when they end if their submitters are right.
    running: BTreeSet<(Time, GangId)>,
    /// Run here and have ended in truth, by when they end here.
    ends: BTreeSet<(Time, GangId)>,
    /// Run here and wait in truth, by when they started here.
    unstarted: BTreeSet<(Time, GangId)>,
    /// Run here and in truth, by how much later they started here; in milliseconds.
    under_way: BTreeSet<(i64, GangId)>,
    used: Usage,
    longest: Span,
}

impl Baseline {
    /// The longest anybody has waited so far.
    pub fn longest_wait(&self) -> Span {
        let head = self.queue.front().map(|id| self.clock.since(self.entries[id].submitted));
        self.longest.max(head.unwrap_or(Span::ZERO))
    }

    pub(crate) fn submitted(&mut self, now: Time, id: GangId, wants: Usage, said: Span) {
        let entry = Entry { wants, said, submitted: now, started: None, truth: Truth::Waits };
        self.entries.insert(id, entry);
        self.coming.push_back((now, id));
    }
    pub(crate) fn really_started(&mut self, now: Time, id: GangId) {
        self.learn(id, Truth::Runs { since: now });
    }
    pub(crate) fn really_requeued(&mut self, id: GangId) {
        self.learn(id, Truth::Waits);
    }
    pub(crate) fn really_ended(&mut self, id: GangId, lasted: Span) {
        self.learn(id, Truth::Ended { lasted });
    }
    /// It was cancelled: it is no more, here either.
    pub(crate) fn really_gone(&mut self, id: GangId) {
        self.unlist(id);
        let Some(entry) = self.entries.remove(&id) else { return };
        match entry.started {
            Some(started) => self.vacate(id, &entry, started),
            None => {
                self.queue.retain(|waiting| *waiting != id);
                self.coming.retain(|(_, coming)| *coming != id);
            }
        }
    }

    /// Lets everything happen that is certain by now, on a machine that has this much.
    pub(crate) fn advance(&mut self, now: Time, total: &Usage) {
        loop {
            let certain = self.certain_until(now);
            let end = self.ends.first().copied();
            let submit = self.coming.front().copied();
            // Of one instant, submissions come first.
            let next = match (submit, end) {
                (Some((at, _)), Some((end, _))) if end < at => end,
                (Some((at, _)), _) => at,
                (None, Some((end, _))) => end,
                (None, None) => break self.clock = self.clock.max(certain),
            };
            if next > certain {
                break self.clock = self.clock.max(certain);
            }
            self.clock = self.clock.max(next);
            match submit.filter(|(at, _)| *at == next) {
                Some((_, id)) => {
                    self.coming.pop_front();
                    self.queue.push_back(id);
                    // Nothing was freed: only the newcomer could start.
                    if fits(&self.used, &self.entries[&id].wants, total) {
                        self.pass(total);
                    }
                }
                None => {
                    let (_, id) = end.expect("the only other thing");
                    self.unlist(id);
                    let entry = self.entries.remove(&id).expect("it runs");
                    let started = entry.started.expect("it runs");
                    self.vacate(id, &entry, started);
                    self.pass(total);
                }
            }
        }
    }

    /// Up to when everything is known that can happen here.
    fn certain_until(&self, now: Time) -> Time {
        let unstarted = self.unstarted.first().map(|(at, _)| *at);
        let under_way = self.under_way.first().map(|(later, _)| Time(now.0 + later));
        unstarted.into_iter().chain(under_way).chain([now]).min().expect("at least now")
    }

    fn learn(&mut self, id: GangId, truth: Truth) {
        self.unlist(id);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.truth = truth;
        }
        self.list(id);
    }

    /// Enters a gang that runs here into the set that says what is known of its end.
    fn list(&mut self, id: GangId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Some(started) = entry.started else { return };
        match entry.truth {
            Truth::Waits => self.unstarted.insert((started, id)),
            Truth::Runs { since } => self.under_way.insert((started.0 - since.0, id)),
            Truth::Ended { lasted } => self.ends.insert((started + lasted, id)),
        };
    }
    fn unlist(&mut self, id: GangId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Some(started) = entry.started else { return };
        match entry.truth {
            Truth::Waits => self.unstarted.remove(&(started, id)),
            Truth::Runs { since } => self.under_way.remove(&(started.0 - since.0, id)),
            Truth::Ended { lasted } => self.ends.remove(&(started + lasted, id)),
        };
    }

    fn vacate(&mut self, id: GangId, entry: &Entry, started: Time) {
        self.used.amounts.take(&entry.wants.amounts, 1);
        self.used.gpu_milli -= entry.wants.gpu_milli;
        self.running.remove(&(started + entry.said, id));
    }

    fn start(&mut self, id: GangId) {
        let clock = self.clock;
        let entry = self.entries.get_mut(&id).expect("it waits");
        entry.started = Some(clock);
        self.longest = self.longest.max(clock.since(entry.submitted));
        self.used.add(&entry.wants.amounts, entry.wants.gpu_milli, 1);
        self.running.insert((clock + entry.said, id));
        self.list(id);
    }

    /// One pass of EASY: the head starts if it fits; else it gets a start time, and whoever does not delay it
    /// goes before.
    fn pass(&mut self, total: &Usage) {
        while let Some(id) = self.queue.front().copied() {
            let wants = &self.entries[&id].wants;
            if fits(&self.used, wants, total) {
                self.queue.pop_front();
                self.start(id);
            } else if fits(&Usage::default(), wants, total) {
                break;
            } else {
                // Larger than the machine is now: nothing to compare with.
                self.queue.pop_front();
                self.unlist(id);
                self.entries.remove(&id);
            }
        }
        let Some(head) = self.queue.front().copied() else { return };
        let (shadow, mut then) = self.head_start(head, total);
        let mut waiting = std::mem::take(&mut self.queue);
        waiting.retain(|id| {
            let entry = &self.entries[id];
            if *id == head || !fits(&self.used, &entry.wants, total) {
                return true;
            }
            let in_time = self.clock + entry.said <= shadow;
            if !in_time {
                if !fits(&then, &entry.wants, total) {
                    return true;
                }
                then.add(&entry.wants.amounts, entry.wants.gpu_milli, 1);
            }
            self.start(*id);
            false
        });
        self.queue = waiting;
    }

    /// When the head fits if everybody ends as said, and what is used then, with it.
    fn head_start(&self, head: GangId, total: &Usage) -> (Time, Usage) {
        let wants = &self.entries[&head].wants;
        let (mut then, mut at) = (self.used.clone(), self.clock);
        for (end, id) in &self.running {
            if *end > at && fits(&then, wants, total) {
                break;
            }
            let ended = &self.entries[id].wants;
            then.take(&ended.amounts, ended.gpu_milli, 1);
            at = at.max(*end);
        }
        then.add(&wants.amounts, wants.gpu_milli, 1);
        (at, then)
    }
}

/// Whether `wants` fits beside what is used.
fn fits(used: &Usage, wants: &Usage, total: &Usage) -> bool {
    used.gpu_milli + wants.gpu_milli <= total.gpu_milli
        && wants.amounts.iter().all(|(r, want)| used.amounts.get(r) + want <= total.amounts.get(r))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u64) -> Usage {
        Usage { gpu_milli: count * 1_000, ..Usage::default() }
    }
    fn at(secs: i64) -> Time {
        Time(secs * 1_000)
    }

    /// Three gangs on four GPUs: 3 for 100 s, 4, and 1 said to take 50 s, all at once.
    fn three(baseline: &mut Baseline) {
        for (id, (size, said)) in [(3, 100), (4, 100), (1, 50)].into_iter().enumerate() {
            baseline.submitted(at(0), GangId(id as u32), gpus(size), Span::secs(said));
        }
        baseline.advance(at(0), &gpus(4));
    }

    #[test]
    fn it_waits_for_the_truth() {
        let mut baseline = Baseline::default();
        three(&mut baseline);
        assert_eq!(baseline.running.len(), 2, "the small one goes before the large one");
        baseline.advance(at(60), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::ZERO, "nobody has really run: nothing is known");
        baseline.really_started(at(60), GangId(0));
        baseline.really_started(at(60), GangId(2));
        baseline.advance(at(70), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::secs(10), "ten seconds of each are known");
    }

    #[test]
    fn it_knows_the_longest_wait_in_the_end() {
        let mut baseline = Baseline::default();
        three(&mut baseline);
        for id in [0, 2] {
            baseline.really_started(at(0), GangId(id));
        }
        baseline.really_ended(GangId(2), Span::secs(20));
        baseline.really_ended(GangId(0), Span::secs(90));
        baseline.advance(at(200), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::secs(90));
        assert_eq!(baseline.clock, at(90), "the large one runs here and has not begun in truth");
        baseline.really_gone(GangId(1));
        baseline.advance(at(300), &gpus(4));
        assert_eq!(baseline.used, Usage::default());
    }
}
