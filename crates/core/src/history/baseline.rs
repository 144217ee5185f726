//! The baseline: a replay of the same gangs under first come, first served with EASY backfilling.
//!
//! It runs beside the real schedule, from facts alone: a gang runs in it for as long as it really ran, so its clock
//! stands still until that is known. An elastic gang has its minimum there, and takes as long as it would have with
//! that. What counts is the longest wait: a queue order that lets gangs overtake can detect when a gang has waited
//! about as long as it would have in the baseline.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use crate::id::GangId;
use crate::objects::queue::Usage;
use crate::units::time::{Span, Time};

/// One gang, in the baseline and in reality.
#[derive(Clone, Debug)]
struct Entry {
    wants: Usage,
    estimate: Span,
    submitted: Time,
    /// When it started in the baseline.
    started: Option<Time>,
    actual: Actual,
}

/// What has really happened to a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Actual {
    Waits,
    Runs { since: Time },
    Ended { lasted: Span },
}

/// The replay.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    clock: Time,
    entries: FxHashMap<GangId, Entry>,
    /// Really submitted, but not yet at the baseline's clock.
    coming: VecDeque<(Time, GangId)>,
    /// Waiting in the baseline, oldest first.
    queue: VecDeque<GangId>,
    /// Running in the baseline, by their estimated end.
    running: BTreeSet<(Time, GangId)>,
    /// Running in the baseline and really ended, by their end in the baseline.
    ends: BTreeSet<(Time, GangId)>,
    /// Running in the baseline and really waiting, by their start in the baseline.
    unstarted: BTreeSet<(Time, GangId)>,
    /// Running in both, by how much later they started in the baseline; in milliseconds.
    under_way: BTreeSet<(i64, GangId)>,
    used: Usage,
    longest: Span,
}

impl Baseline {
    /// The longest wait so far.
    pub fn longest_wait(&self) -> Span {
        let head = self.queue.front().map(|id| self.clock.since(self.entries[id].submitted));
        self.longest.max(head.unwrap_or(Span::ZERO))
    }

    pub(crate) fn submitted(&mut self, now: Time, id: GangId, wants: Usage, estimate: Span) {
        let entry = Entry { wants, estimate, submitted: now, started: None, actual: Actual::Waits };
        self.entries.insert(id, entry);
        self.coming.push_back((now, id));
    }
    pub(crate) fn really_started(&mut self, now: Time, id: GangId) {
        self.learn(id, Actual::Runs { since: now });
    }
    pub(crate) fn really_requeued(&mut self, id: GangId) {
        self.learn(id, Actual::Waits);
    }
    pub(crate) fn really_ended(&mut self, id: GangId, lasted: Span) {
        self.learn(id, Actual::Ended { lasted });
    }
    /// It was cancelled: it leaves the baseline too.
    pub(crate) fn really_gone(&mut self, id: GangId) {
        self.unindex(id);
        let Some(entry) = self.entries.remove(&id) else { return };
        match entry.started {
            Some(started) => self.vacate(id, &entry, started),
            None => {
                self.queue.retain(|waiting| *waiting != id);
                self.coming.retain(|(_, coming)| *coming != id);
            }
        }
    }

    /// Advances as far as the future is certain by now, on a machine with this much capacity.
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
                    self.unindex(id);
                    let entry = self.entries.remove(&id).expect("it runs");
                    let started = entry.started.expect("it runs");
                    self.vacate(id, &entry, started);
                    self.pass(total);
                }
            }
        }
    }

    /// Up to when all future of the baseline is known.
    fn certain_until(&self, now: Time) -> Time {
        let unstarted = self.unstarted.first().map(|(at, _)| *at);
        let under_way = self.under_way.first().map(|(later, _)| Time(now.0 + later));
        unstarted.into_iter().chain(under_way).chain([now]).min().expect("at least now")
    }

    fn learn(&mut self, id: GangId, actual: Actual) {
        self.unindex(id);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.actual = actual;
        }
        self.index(id);
    }

    /// Enters a running gang into the set that tells what is known of its end.
    fn index(&mut self, id: GangId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Some(started) = entry.started else { return };
        match entry.actual {
            Actual::Waits => self.unstarted.insert((started, id)),
            Actual::Runs { since } => self.under_way.insert((started.0 - since.0, id)),
            Actual::Ended { lasted } => self.ends.insert((started + lasted, id)),
        };
    }
    fn unindex(&mut self, id: GangId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let Some(started) = entry.started else { return };
        match entry.actual {
            Actual::Waits => self.unstarted.remove(&(started, id)),
            Actual::Runs { since } => self.under_way.remove(&(started.0 - since.0, id)),
            Actual::Ended { lasted } => self.ends.remove(&(started + lasted, id)),
        };
    }

    fn vacate(&mut self, id: GangId, entry: &Entry, started: Time) {
        self.used.amounts.take(&entry.wants.amounts, 1);
        self.used.gpu_milli -= entry.wants.gpu_milli;
        self.running.remove(&(started + entry.estimate, id));
    }

    fn start(&mut self, id: GangId) {
        let clock = self.clock;
        let entry = self.entries.get_mut(&id).expect("it waits");
        entry.started = Some(clock);
        self.longest = self.longest.max(clock.since(entry.submitted));
        self.used.add(&entry.wants.amounts, entry.wants.gpu_milli, 1);
        self.running.insert((clock + entry.estimate, id));
        self.index(id);
    }

    /// One pass of EASY: the head starts if it fits; else it gets a shadow time, and gangs that do not delay it are
    /// backfilled.
    fn pass(&mut self, total: &Usage) {
        while let Some(id) = self.queue.front().copied() {
            let wants = &self.entries[&id].wants;
            if fits(&self.used, wants, total) {
                self.queue.pop_front();
                self.start(id);
            } else if fits(&Usage::default(), wants, total) {
                break;
            } else {
                // Larger than the machine is now: not comparable.
                self.queue.pop_front();
                self.unindex(id);
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
            let in_time = self.clock + entry.estimate <= shadow;
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

    /// The shadow time: when the head fits if all estimates hold, and the usage then, with it.
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

    /// Three gangs on four GPUs: 3 for 100 s, 4, and 1 with an estimate of 50 s, all at once.
    fn submit_three(baseline: &mut Baseline) {
        for (id, (size, estimate)) in [(3, 100), (4, 100), (1, 50)].into_iter().enumerate() {
            baseline.submitted(at(0), GangId(id as u32), gpus(size), Span::secs(estimate));
        }
        baseline.advance(at(0), &gpus(4));
    }

    #[test]
    fn baseline_clock_waits_until_run_times_are_known() {
        let mut baseline = Baseline::default();
        submit_three(&mut baseline);
        assert_eq!(baseline.running.len(), 2, "the small one goes before the large one");
        baseline.advance(at(60), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::ZERO, "no gang has really run: nothing is known");
        baseline.really_started(at(60), GangId(0));
        baseline.really_started(at(60), GangId(2));
        baseline.advance(at(70), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::secs(10), "ten seconds of each are known");
    }

    #[test]
    fn baseline_reports_the_longest_wait_once_runs_ended() {
        let mut baseline = Baseline::default();
        submit_three(&mut baseline);
        for id in [0, 2] {
            baseline.really_started(at(0), GangId(id));
        }
        baseline.really_ended(GangId(2), Span::secs(20));
        baseline.really_ended(GangId(0), Span::secs(90));
        baseline.advance(at(200), &gpus(4));
        assert_eq!(baseline.longest_wait(), Span::secs(90));
        assert_eq!(baseline.clock, at(90), "the large one runs here and has not really started");
        baseline.really_gone(GangId(1));
        baseline.advance(at(300), &gpus(4));
        assert_eq!(baseline.used, Usage::default());
    }
}
