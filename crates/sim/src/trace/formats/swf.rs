//! The Standard Workload Format of the Parallel Workloads Archive: 18 columns of numbers a line, `-1` where
//! a value is unknown, and a header of comments.
//!
//! Only the columns named below are read; the others (memory, executable, think time, ...) are not checked.

mod header;
mod record;
#[cfg(test)]
mod tests;

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use muster_core::gang::{GangSpec, Provisioning, ProvisioningMode, Request};
use muster_core::resource::{CPU, NamedAmounts};
use rustc_hash::{FxHashMap, FxHashSet};

pub use header::Header;
pub use record::Record;

use crate::job::Job;
use crate::trace::defaults;
use crate::trace::error::TraceError;
use crate::trace::parse::lines::Lines;
use crate::trace::skipped::{Skip, SkipReason};

/// A log as read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Swf {
    /// Its comments.
    pub header: Header,
    /// Its usable records by submit time; those of one instant by id, as logs number them in order of arrival.
    pub records: Vec<Record>,
    /// Its unusable records.
    pub skipped: Vec<Skip>,
}

/// The source of the expected duration of gangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Estimates {
    /// The time the user requested, or the true run time where the log has none. It may be shorter than the
    /// true run time, where the machine did not enforce it.
    #[default]
    Requested,
    /// The true run time: perfect foresight, to measure the value of estimates.
    True,
}

/// How records become jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwfOptions {
    /// The queue every gang waits in.
    pub queue: Arc<str>,
    /// Where expected durations come from.
    pub estimates: Estimates,
}

impl Default for SwfOptions {
    fn default() -> Self {
        Self { queue: "default".into(), estimates: Estimates::Requested }
    }
}

/// Reads a log, gzipped or not.
pub fn read(path: &Path) -> Result<Swf, TraceError> {
    parse(path, crate::trace::parse::open(path)?)
}

/// Reads a log from `input`; `file` is what errors call it.
pub fn parse(file: &Path, input: impl BufRead) -> Result<Swf, TraceError> {
    let mut swf = Swf::default();
    let mut ids = FxHashSet::default();
    let mut lines = Lines::new(file, input);
    while let Some((place, text)) = lines.next()? {
        if let Some(comment) = text.strip_prefix(';') {
            swf.header.add(comment);
        } else if !text.is_empty() {
            let fresh = |record: Record| match ids.insert(record.id) {
                true => Ok(record),
                false => Err(SkipReason::RepeatedId),
            };
            match crate::trace::formats::swf::record::parse(place, &text)?.and_then(fresh) {
                Ok(record) => swf.records.push(record),
                Err(reason) => swf.skipped.push(Skip { line: place.line, reason }),
            }
        }
    }
    swf.records.sort_by_key(|record| (record.submit, record.id));
    Ok(swf)
}

impl Swf {
    /// One rigid gang per record, one member per processor. Job `i` comes from record `i`, so that a replay
    /// can be compared with the recorded waits.
    pub fn jobs(&self, options: &SwfOptions) -> Vec<Job> {
        let role: Arc<str> = "proc".into();
        let one_cpu = NamedAmounts::from([(CPU.into(), 1_000)]);
        let provisioning =
            Provisioning { mode: ProvisioningMode::Never, ..Provisioning::default() };
        let mut users = FxHashMap::<u64, Arc<str>>::default();
        let nobody: Arc<str> = "".into();
        let mut user_name = |user: Option<u64>| match user {
            Some(user) => users.entry(user).or_insert_with(|| format!("u{user}").into()).clone(),
            None => nobody.clone(),
        };
        let job = |record: &Record| {
            let request = Request { amounts: one_cpu.clone(), gpu: None };
            let roles = vec![defaults::role(role.clone(), record.processors, request)];
            let (name, user) = (format!("job-{}", record.id).into(), user_name(record.user));
            let gang = GangSpec {
                provisioning: provisioning.clone(),
                expected_duration: Some(match options.estimates {
                    Estimates::Requested => record.requested.unwrap_or(record.run),
                    Estimates::True => record.run,
                }),
                ..defaults::gang(name, options.queue.clone(), user, roles)
            };
            Job::new(gang, record.submit, record.run)
        };
        self.records.iter().map(job).collect()
    }
}
