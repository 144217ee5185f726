//! A GPU cluster's log of jobs as a table: the logs of Microsoft's Philly and ITP clusters, SenseTime's Helios,
//! and versions of them made for simulators. One row is one job; the header says which columns there are.
//!
//! | what | spellings | |
//! |---|---|---|
//! | the job | `job_id`, `jobid`, `job`, `id` | required |
//! | when it was submitted | `submission_time`, `submit_time`, `submitted_time`, `arrival_time` | required |
//! | how many GPUs it had | `num_gpu`, `num_gpus`, `gpu_num`, `gpus`, `gpu_count` | required |
//! | how long it ran | `duration`, `run_time`, `runtime`, `duration_s` | or its start and its end |
//! | its start | `start_time`, `started_time` | |
//! | its end | `end_time`, `finished_time`, `finish_time` | |
//! | its user | `user`, `user_id` | none |
//! | its virtual cluster, which is a queue here | `vc`, `virtual_cluster` | `default` |
//!
//! Times are seconds or dates; dates are counted from the first submission. Other columns, such as a status, are
//! not read: a job that failed or was killed used its GPUs all the same.

#[cfg(test)]
mod tests;

use std::io::BufRead;
use std::path::Path;

use muster_core::device::{MAX_DEVICES, WHOLE};
use muster_core::gang::RoleSpec;
use muster_core::time::{Span, Time};

use crate::job::Job;
use crate::trace::defaults;
use crate::trace::error::TraceError;
use crate::trace::parse::cell::{CellError, Moment};
use crate::trace::parse::columns::{Row, columns, rows};
use crate::trace::parse::names::Names;
use crate::trace::parse::{cell, columns};
use crate::trace::read::Replay;
use crate::trace::skipped::{Skip, SkipReason};

columns! {
    /// A column a log may have.
    pub(crate) enum Column, strict: false, required: [Id, Submit, Gpus],
    Id: "job_id" | "jobid" | "job" | "id",
    Submit: "submission_time" | "submit_time" | "submitted_time" | "arrival_time",
    Gpus: "num_gpu" | "num_gpus" | "gpu_num" | "gpus" | "gpu_count",
    Run: "duration" | "run_time" | "runtime" | "duration_s",
    Start: "start_time" | "started_time",
    End: "end_time" | "finished_time" | "finish_time",
    User: "user" | "user_id",
    Queue: "vc" | "virtual_cluster",
}

/// Reads a log, gzipped or not. A job of more GPUs than a node has becomes a gang of whole nodes, and one member
/// for the rest if there is one.
pub fn read(path: &Path, gpus_per_node: u16) -> Result<Replay, TraceError> {
    parse(path, crate::trace::parse::open(path)?, gpus_per_node)
}

/// Reads a log from `input`; `file` is what errors call it.
pub fn parse(file: &Path, input: impl BufRead, gpus_per_node: u16) -> Result<Replay, TraceError> {
    let mut names = Names::default();
    let mut replay = Replay::default();
    let mut dated = false;
    let per_node = u32::from(gpus_per_node.clamp(1, MAX_DEVICES as u16));
    rows::<Column>(file, input, |row| {
        let spans = row.has(Column::Start) && row.has(Column::End);
        if !row.has(Column::Run) && !spans {
            let (file, column) = (file.to_owned(), columns::Column::name(Column::Run));
            return Err(TraceError::MissingColumn { file, column });
        }
        let submit = row.required(Column::Submit, cell::moment)?;
        dated |= matches!(submit, Moment::Date(_));
        let roles = roles(row.required(Column::Gpus, gpus)?, per_node, &mut names);
        let name = row.required(Column::Id, |id| names.only(id, row.line()))?;
        match run(row)? {
            None => replay.skipped.push(Skip { line: row.line(), reason: SkipReason::NeverRan }),
            Some(run) => {
                let queue = names.share(row.get(Column::Queue).unwrap_or("default"));
                let user = names.share(row.get(Column::User).unwrap_or_default());
                let gang = defaults::gang(name, queue, user, roles);
                replay.jobs.push(Job::new(gang, Time::ZERO + submit.span(), run));
            }
        }
        Ok(())
    })?;
    replay.jobs.sort_by_key(|job| job.submit);
    if let Some(first) = replay.jobs.first().map(|job| job.submit).filter(|_| dated) {
        for job in &mut replay.jobs {
            job.submit = Time::ZERO + job.submit.since(first);
        }
    }
    Ok(replay)
}

/// How long it ran: as it says, or from its start to its end.
fn run(row: &Row<'_>) -> Result<Option<Span>, TraceError> {
    if row.has(Column::Run) {
        return Ok(row.optional(Column::Run, cell::seconds_if_known)?.flatten());
    }
    let start = row.optional(Column::Start, cell::moment_if_known)?.flatten();
    let end = row.optional(Column::End, cell::moment_if_known)?.flatten();
    let (Some(start), Some(end)) = (start, end) else { return Ok(None) };
    let (start, end) = (Time::ZERO + start.span(), Time::ZERO + end.span());
    Ok((end >= start).then(|| end.since(start)))
}

fn gpus(text: &str) -> Result<u32, CellError> {
    match cell::whole(text)? {
        0 => Ok(0),
        _ => cell::count(text),
    }
}

/// Members of whole nodes, and one for what is left over; without GPUs one member.
fn roles(gpus: u32, per_node: u32, names: &mut Names) -> Vec<RoleSpec> {
    let (whole, rest) = (gpus / per_node, gpus % per_node);
    let mut role = |name: &str, members: u32, gpus: u32| {
        let devices = (gpus > 0).then_some((gpus as u16, WHOLE));
        defaults::role(names.share(name), members, defaults::request(names, 1_000, 0, devices))
    };
    match (whole, rest) {
        (0, _) => vec![role("worker", 1, rest)],
        (_, 0) => vec![role("worker", whole, per_node)],
        _ => vec![role("worker", whole, per_node), role("rest", 1, rest)],
    }
}
