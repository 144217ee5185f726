//! Leaves out what makes the controller panic, so that one bad gang costs that gang and not the process.
//!
//! A panic may leave the host's records half changed, so none of them is kept: everything is listed and counted anew,
//! without the subject that was being handled. It is tried again after a pause that doubles.
//!
//! A panic of the planner names no subject. Its suspects are the gangs that it was shown since it last returned: they
//! are withheld in halves, and after every plan that succeeds one half is shown again, until a single gang is left that
//! brings the panic back. A panic without any suspect ends the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cache::kinds::KindRole;
use crate::cache::store::Key;

/// How long a subject is left out at first.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// And at most. Each pause ends with one list of everything if the panic comes back.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);
/// How much of a panic's message is shown.
const SHOWN: usize = 200;

/// What the host was busy with when it panicked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Subject {
    Gang(Arc<str>),
    Pod(Key),
    Node(Key),
    Claim(Key),
    Object(KindRole, Key),
    /// No object by itself: all gangs that the planner was shown.
    Planner,
}

/// Why a subject is left out, and for how long.
#[derive(Debug)]
struct Case {
    why: String,
    since: Instant,
    pause: Duration,
    /// Whether it was tried again since.
    retried: bool,
}

impl Case {
    fn until(&self) -> Instant {
        self.since + self.pause
    }
}

/// All subjects that are left out.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    cases: BTreeMap<Subject, Case>,
    /// Suspects of a panic of the planner that are not shown to it yet.
    withheld: Vec<BTreeSet<Arc<str>>>,
}

impl Quarantine {
    /// Leaves a subject out: for longer each time.
    pub(crate) fn leave_out(&mut self, subject: Subject, panic: &str, now: Instant) {
        let before = self.cases.get(&subject).map(|case| case.pause);
        let pause = before.map_or(FIRST_PAUSE, |pause| (pause * 2).min(MAX_PAUSE));
        let shown: String = panic.chars().take(SHOWN).collect();
        let why = format!(
            "left out for {} s: handling it caused an internal error ({shown})",
            pause.as_secs()
        );
        tracing::error!(?subject, seconds = pause.as_secs(), panic = shown, "left out");
        self.cases.insert(subject, Case { why, since: now, pause, retried: false });
    }

    /// Whether a subject is left out now.
    pub(crate) fn has(&self, subject: &Subject, now: Instant) -> bool {
        self.cases.get(subject).is_some_and(|case| now < case.until())
    }

    /// Why a gang is left out, if it is.
    pub(crate) fn why(&self, gang: &Arc<str>, now: Instant) -> Option<String> {
        if self.cases.is_empty() && self.withheld.is_empty() {
            return None;
        }
        let case = self.cases.get(&Subject::Gang(gang.clone()));
        let case = case.filter(|case| now < case.until()).map(|case| case.why.clone());
        let is_withheld = || self.withheld.iter().any(|half| half.contains(gang));
        let withheld = || "held back while the cause of an internal error is searched".to_owned();
        case.or_else(|| is_withheld().then(withheld))
    }

    /// The planner panicked after it was shown these gangs. Whether there was a gang to suspect.
    pub(crate) fn plan_failed(&mut self, suspects: &[Arc<str>], panic: &str, now: Instant) -> bool {
        match suspects {
            [] => return false,
            [one] => self.leave_out(Subject::Gang(one.clone()), panic, now),
            all => {
                let (first, second) = all.split_at(all.len() / 2);
                tracing::error!(suspects = all.len(), panic, "the planner panicked");
                self.withheld.push(second.iter().cloned().collect());
                self.withheld.push(first.iter().cloned().collect());
            }
        }
        true
    }

    /// The planner returned: the gangs it is shown next.
    pub(crate) fn plan_succeeded(&mut self) -> BTreeSet<Arc<str>> {
        self.withheld.pop().unwrap_or_default()
    }

    /// Subjects whose pause is over, once each. What stayed out of trouble for long after that is forgotten.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Subject> {
        self.cases.retain(|_, case| now < case.until() + MAX_PAUSE);
        let over = self.cases.iter_mut().filter_map(|(subject, case)| {
            let is_over = !case.retried && case.until() <= now;
            case.retried |= is_over;
            is_over.then(|| subject.clone())
        });
        over.collect()
    }

    /// How long until the next pause is over.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let waiting = self.cases.values().filter(|case| !case.retried);
        waiting.map(|case| case.until().saturating_duration_since(now)).min()
    }
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic without a message")
}

#[cfg(test)]
mod tests {
    use crate::recover::quarantine::*;

    fn gangs(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|at| Arc::from(format!("team-a/g{at:03}"))).collect()
    }

    /// Plays a planner that panics whenever it is shown one of the bad gangs. How often it panicked.
    fn search(
        quarantine: &mut Quarantine,
        all: &[Arc<str>],
        bad: &[Arc<str>],
        now: Instant,
    ) -> u32 {
        let mut panics = 0;
        let mut shown: BTreeSet<Arc<str>> = all.iter().cloned().collect();
        for _ in 0..10_000 {
            let visible = |gang: &&Arc<str>| quarantine.why(gang, now).is_none();
            let seen: Vec<Arc<str>> = shown.iter().filter(visible).cloned().collect();
            if seen.iter().any(|gang| bad.contains(gang)) {
                panics += 1;
                assert!(quarantine.plan_failed(&seen, "boom", now));
                shown = all.iter().cloned().collect(); // all is counted anew
                let bad_is_seen = |gang: &&Arc<str>| quarantine.why(gang, now).is_none();
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
    fn planner_panic_leaves_out_the_gangs_that_cause_it_and_no_other() {
        let (all, now) = (gangs(200), Instant::now());
        for bad in [vec![], vec![all[0].clone()], vec![all[63].clone(), all[199].clone()]] {
            let mut quarantine = Quarantine::default();
            let panics = search(&mut quarantine, &all, &bad, now);
            let out: Vec<Arc<str>> =
                all.iter().filter(|gang| quarantine.why(gang, now).is_some()).cloned().collect();
            assert_eq!(out, bad);
            assert!(panics <= 9 * bad.len() as u32, "{panics} panics for {}", bad.len());
        }
    }

    #[test]
    fn planner_panic_without_suspects_is_not_survived() {
        assert!(!Quarantine::default().plan_failed(&[], "boom", Instant::now()));
    }

    #[test]
    fn pauses_double_and_a_subject_is_due_once_after_each() {
        let (mut quarantine, mut now) = (Quarantine::default(), Instant::now());
        let subject = Subject::Gang("team-a/bad".into());
        for pause in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            quarantine.leave_out(subject.clone(), "boom", now);
            now += Duration::from_secs(pause - 1);
            assert!(quarantine.has(&subject, now) && quarantine.due(now).is_empty());
            now += Duration::from_secs(1);
            assert!(!quarantine.has(&subject, now));
            assert_eq!(quarantine.due(now), std::slice::from_ref(&subject));
            assert!(quarantine.due(now).is_empty());
        }
        // Good for long, it begins with a short pause again.
        now += MAX_PAUSE;
        assert!(quarantine.due(now).is_empty());
        quarantine.leave_out(subject.clone(), "boom", now);
        assert_eq!(quarantine.wait(now), Some(FIRST_PAUSE));
    }
}
