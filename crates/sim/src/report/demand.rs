//! The demand of jobs: the same in every run.

use std::sync::Arc;

use muster_core::time::{Span, Time};
use rustc_hash::FxHashMap;

use crate::job::Job;
use crate::report::capacity::Measure;

/// Names by number, in the order they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) list: Vec<Arc<str>>,
    number: FxHashMap<Arc<str>, usize>,
}

impl Names {
    pub(crate) fn number(&mut self, name: &Arc<str>) -> usize {
        *self.number.entry(name.clone()).or_insert_with(|| {
            self.list.push(name.clone());
            self.list.len() - 1
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// The demand of one job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) queue: usize,
    pub(crate) user: usize,
    pub(crate) submit: Time,
    /// How long it runs with every role at its maximum.
    pub(crate) run: Span,
    /// Capacity it does not start without.
    pub(crate) least: u64,
    /// Capacity it never exceeds.
    pub(crate) most: u64,
    members: (u64, u64),
}

impl Demand {
    pub(crate) fn new(job: &Job, measure: Measure, queues: &mut Names, users: &mut Names) -> Self {
        let (least, most) = measure.of_gang(&job.gang);
        let mut members = (0, 0);
        for role in &job.gang.roles {
            members.0 += u64::from(role.min);
            members.1 += u64::from(role.max);
        }
        Self {
            queue: queues.number(&job.gang.queue),
            user: users.number(&job.gang.user),
            submit: job.submit,
            run: job.run,
            least,
            most,
            members,
        }
    }

    /// The work in it: capacity times milliseconds.
    pub(crate) fn work(&self) -> u128 {
        u128::from(self.most) * u128::from(self.run.0)
    }

    /// Its mean capacity if its run took this long. An elastic gang with half of its members takes twice as long, so the
    /// run time gives the size.
    pub(crate) fn size(&self, took: Span) -> u64 {
        let (fewest, all) = self.members;
        if fewest == all || took == Span::ZERO {
            return self.most;
        }
        let members = self.run.0 as f64 * all as f64 / took.0 as f64;
        let part = ((members - fewest as f64) / (all - fewest) as f64).clamp(0.0, 1.0);
        self.least + ((self.most - self.least) as f64 * part).round() as u64
    }
}
