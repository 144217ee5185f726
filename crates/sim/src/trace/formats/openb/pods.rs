//! The list of pods: one row is one pod, a gang of one.
//!
//! `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time`;
//! some lists end after `gpu_milli` and can be placed, but not replayed. `gpu_milli` below 1000 is a part of one
//! GPU, `gpu_spec` lists the models that will do, separated by `|`. Service class and phase are not read.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use muster_core::device::WHOLE;
use muster_core::gang::{GangSpec, Request, RoleSpec};
use muster_core::time::Time;

use crate::job::Job;
use crate::trace::defaults;
use crate::trace::error::TraceError;
use crate::trace::formats::openb::{device_count, mebibytes, number};
use crate::trace::parse::cell::CellError;
use crate::trace::parse::columns::{Row, columns, rows};
use crate::trace::parse::names::Names;
use crate::trace::parse::{cell, columns, open};
use crate::trace::read::Replay;
use crate::trace::skipped::{Skip, SkipReason};

columns! {
    /// A column a list of pods may have.
    pub(crate) enum Column, strict: false, required: [Name, Cpu, Memory, Gpus, Share],
    Name: "name",
    Cpu: "cpu_milli",
    Memory: "memory_mib",
    Gpus: "num_gpu",
    Share: "gpu_milli",
    Models: "gpu_spec",
    Created: "creation_time",
    Deleted: "deletion_time",
    Scheduled: "scheduled_time",
}

/// One pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pod {
    /// The line it is on.
    pub line: u64,
    /// Its name, unique in the list.
    pub name: Arc<str>,
    /// Its request.
    pub request: Request,
    /// GPU models that will do; any when empty.
    pub models: Vec<Arc<str>>,
    /// When it was created, where the list says so.
    pub created: Option<Time>,
    /// When it was scheduled, if it ever was.
    pub scheduled: Option<Time>,
    /// When it was deleted.
    pub deleted: Option<Time>,
}

/// Reads a list of pods, gzipped or not, in the order of rows; also one without times.
pub fn read_pods(path: &Path) -> Result<Vec<Pod>, TraceError> {
    parse_pods(path, open(path)?)
}

/// Reads a list of pods from `input`; `file` is what errors call it.
pub fn parse_pods(file: &Path, input: impl BufRead) -> Result<Vec<Pod>, TraceError> {
    let mut names = Names::default();
    let mut pods = Vec::new();
    rows::<Column>(file, input, |row| {
        pods.push(pod(row, &mut names)?);
        Ok(())
    })?;
    Ok(pods)
}

/// Pods as gangs of one that run for as long as they were scheduled, by the time they came. Those that never
/// were are skipped.
///
/// # Errors
/// When the list has no times.
pub fn jobs(file: &Path, pods: Vec<Pod>) -> Result<Replay, TraceError> {
    let mut replay = Replay::default();
    for pod in pods {
        let Some(submit) = pod.created else {
            let column = columns::Column::name(Column::Created);
            return Err(TraceError::MissingColumn { file: file.to_owned(), column });
        };
        let ran = pod.scheduled.zip(pod.deleted).filter(|(from, to)| from <= to);
        let Some((scheduled, deleted)) = ran else {
            replay.skipped.push(Skip { line: pod.line, reason: SkipReason::NeverRan });
            continue;
        };
        let gang = gang(pod.name.clone(), &pod);
        replay.jobs.push(Job::new(gang, submit, deleted.since(scheduled)));
    }
    replay.jobs.sort_by_key(|job| job.submit);
    Ok(replay)
}

/// A pod as a gang of one.
pub fn gang(name: Arc<str>, pod: &Pod) -> GangSpec {
    let mut role: RoleSpec = defaults::role("pod".into(), 1, pod.request.clone());
    role.constraints.gpu_models = pod.models.clone();
    defaults::gang(name, "default".into(), "".into(), vec![role])
}

fn pod(row: &Row<'_>, names: &mut Names) -> Result<Pod, TraceError> {
    let time = |column| {
        let span = row.optional(column, cell::seconds)?;
        Ok::<_, TraceError>(span.map(|span| Time::ZERO + span))
    };
    let created = match row.has(Column::Created) {
        true => Some(Time::ZERO + row.required(Column::Created, cell::seconds)?),
        false => None,
    };
    let name = row.required(Column::Name, |name| names.only(name, row.line()))?;
    let (cpu, memory) =
        (row.required(Column::Cpu, number)?, row.required(Column::Memory, mebibytes)?);
    let models = row.get(Column::Models).unwrap_or_default();
    let models = models.split('|').map(str::trim).filter(|model| !model.is_empty());
    let models = models.map(|model| names.share(model)).collect();
    let gpu = devices(row)?;
    Ok(Pod {
        line: row.line(),
        name,
        request: defaults::request(names, cpu, memory, gpu),
        models,
        created,
        scheduled: time(Column::Scheduled)?,
        deleted: time(Column::Deleted)?,
    })
}

/// So many GPUs, or a part of one.
fn devices(row: &Row<'_>) -> Result<Option<defaults::Devices>, TraceError> {
    let count = row.required(Column::Gpus, device_count)?;
    let share = row.required(Column::Share, |text| match number(text)? {
        _ if count == 0 => Ok(0),
        share if share == u64::from(WHOLE) => Ok(WHOLE),
        share if count == 1 && (1..u64::from(WHOLE)).contains(&share) => Ok(share as u16),
        _ => Err(CellError::NotShare),
    })?;
    Ok((count > 0).then_some((count, share)))
}
