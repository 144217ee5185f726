//! Records that are left out of a replay, as is usual with logs of real machines.

/// A record that was left out, as is usual in logs of real machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skip {
    /// Where it is.
    pub line: u64,
    /// Why.
    pub reason: SkipReason,
}

/// Why a record is of no use to a replay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum SkipReason {
    /// It was cancelled before it got any, or nobody knew.
    #[error("no processors, neither allocated nor requested")]
    NoProcessors,
    /// It was cancelled before it started, or nobody knew.
    #[error("run time is negative")]
    NoRunTime,
    /// It was never scheduled, or nobody knew for how long.
    #[error("no run time is given: it never ran")]
    NeverRan,
    /// It cannot be replayed without a time.
    #[error("submit time is negative")]
    NoSubmitTime,
    /// A stretch of a job that was swapped out; the job's own line counts the whole of it.
    #[error("part of a job that has a line of its own")]
    Partial,
    /// The job was there before; two gangs cannot have one name.
    #[error("its id was used on an earlier line")]
    RepeatedId,
}
