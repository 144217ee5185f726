//! Records that a replay skips, as is usual with logs of real machines.

/// A skipped record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skip {
    /// Its line.
    pub line: u64,
    /// The reason.
    pub reason: SkipReason,
}

/// Why a record cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum SkipReason {
    /// It was cancelled before it got any, or the number is unknown.
    #[error("no processors, neither allocated nor requested")]
    NoProcessors,
    /// It was cancelled before it started, or the time is unknown.
    #[error("run time is negative")]
    NoRunTime,
    /// It was never scheduled, or the time is unknown.
    #[error("no run time is given: it never ran")]
    NeverRan,
    /// It cannot be replayed without a time.
    #[error("submit time is negative")]
    NoSubmitTime,
    /// A stretch of a job that was swapped out; the job's own line counts the whole of it.
    #[error("part of a job that has a line of its own")]
    Partial,
    /// The job is on an earlier line; two gangs cannot have one name.
    #[error("its id was used on an earlier line")]
    RepeatedId,
}
