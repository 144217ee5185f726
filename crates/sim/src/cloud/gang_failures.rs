//! Machine failures under load: after how much GPU time of its own a gang loses a machine.
//!
//! The loss of a machine costs what runs on it: one under a gang of 64 GPUs that has run for days outweighs all differences
//! between strategies. So here a failure belongs to the gang and not to the machine. Every strategy on the same gangs meets
//! the same failures, after the same work, whatever machines it has bought and when.

use muster_core::time::{Span, Time};
use rand::RngExt;
use rustc_hash::FxHashMap;

use crate::cloud::random_streams::Stream;
use crate::cloud::stock::exponential;

/// Failures of machines at work, by job.
#[derive(Clone, Debug)]
pub struct GangFailures {
    /// GPU time in use between two failures, on average.
    mean: Span,
    seed: u64,
    jobs: FxHashMap<usize, NextFailure>,
}

/// The next failure of one job.
#[derive(Clone, Copy, Debug)]
struct NextFailure {
    /// Machines it has lost.
    failures: u32,
    /// GPU time until it loses the next.
    left: Span,
    /// The member on that machine, as a part of all.
    member: f64,
    /// Since when the job works, and with how many GPUs.
    at_work: Option<(Time, u32)>,
}

impl GangFailures {
    /// One failure per `mean` of GPU time on average, random from this seed.
    pub fn new(mean: Span, seed: u64) -> Self {
        Self { mean, seed, jobs: FxHashMap::default() }
    }

    /// A job begins to work with so many GPUs; returns when it loses a machine if it works until then.
    pub fn begin(&mut self, job: usize, now: Time, gpus: u32) -> Option<Time> {
        let (mean, seed) = (self.mean, self.seed);
        let next = self.jobs.entry(job).or_insert_with(|| draw(mean, seed, job, 0));
        next.at_work = Some((now, gpus));
        let lasts = next.left.0.checked_div(u64::from(gpus))?;
        Some(now + Span(lasts.max(1)))
    }

    /// A job does not work any more, or not with these GPUs.
    pub fn end(&mut self, job: usize, now: Time) {
        let Some(next) = self.jobs.get_mut(&job) else { return };
        if let Some((since, gpus)) = next.at_work.take() {
            let used = now.since(since).saturating_mul(u64::from(gpus));
            next.left = Span(next.left.0.saturating_sub(used.0));
        }
    }

    /// A job loses a machine; returns the member on it, counted from 0.
    pub fn fail(&mut self, job: usize, members: usize) -> usize {
        let (mean, seed) = (self.mean, self.seed);
        let Some(next) = self.jobs.get_mut(&job) else { return 0 };
        let (failures, member) = (next.failures + 1, next.member);
        *next = draw(mean, seed, job, failures);
        ((member * members as f64) as usize).min(members.saturating_sub(1))
    }
}

fn draw(mean: Span, seed: u64, job: usize, failures: u32) -> NextFailure {
    let mut rng = Stream::GangFailures { job: job as u32, failures }.open(seed);
    let (left, member) = (exponential(&mut rng, mean), rng.random_range(0.0..1.0));
    NextFailure { failures, left, member, at_work: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Time {
        Time::ZERO + Span::hours(hours)
    }

    #[test]
    fn failure_comes_after_the_same_work_however_often_a_job_was_stopped() {
        let mean = Span::hours(1_000);
        let failures = GangFailures::new(mean, 7).begin(3, at(0), 8).expect("it works");
        let lasts = failures.since(Time::ZERO);
        let (third, mut failures) = (Span(lasts.0 / 3), GangFailures::new(mean, 7));
        failures.begin(3, at(10), 8);
        failures.end(3, at(10) + third);
        let again = failures.begin(3, at(500), 8).expect("it works");
        let rest = again.since(at(500)) + third;
        assert!(rest.0.abs_diff(lasts.0) <= 1, "{rest} and {lasts}");
        assert_eq!(failures.begin(3, at(500), 0), None, "a job without GPUs loses no machine");
    }

    #[test]
    fn next_failure_is_the_same_whenever_the_first_one_came() {
        let (mut early, mut late) =
            (GangFailures::new(Span::hours(9), 1), GangFailures::new(Span::hours(9), 1));
        early.begin(0, at(0), 2);
        late.begin(0, at(77), 2);
        assert_eq!(early.fail(0, 4), late.fail(0, 4));
        let lasts = |failures: &mut GangFailures, at: Time| {
            failures.begin(0, at, 2).expect("it works").since(at)
        };
        assert_eq!(lasts(&mut early, at(5)), lasts(&mut late, at(99)));
    }

    #[test]
    fn mean_gpu_time_to_failure_is_as_configured() {
        let mut failures = GangFailures::new(Span::hours(100), 5);
        let lasts = (0..4_000).map(|job| failures.begin(job, at(0), 4).expect("it works"));
        let mean = lasts.map(|end| end.since(at(0)).as_secs_f64()).sum::<f64>() / 4_000.0;
        assert!((mean / 3_600.0 - 25.0).abs() < 1.5, "{mean}");
    }
}
