//! A trace as a table: the first row names the columns, every further row is a gang.
//!
//! | column | meaning |
//! |---|---|
//! | `submit_s`, `run_s` | arrival and true run time in seconds (required) |
//! | `members` | members of the gang (required) |
//! | `min` | members it can start with; `members` when left out |
//! | `name` | unique in the table; `job-<row>` when left out |
//! | `gpus` | per member: `8`, or a part of one such as `0.5`; none when left out |
//! | `cpu`, `memory` | per member, as Kubernetes quantities; `cpu` is 1 when left out |
//! | `queue`, `user`, `priority` | `default`, nobody and 0 when left out |
//! | `estimate_s` | what the user expects, in seconds; unknown when left out |
//! | `topology` | the level all members must share; anywhere when left out |
//! | `deadline_s` | when it should be done, in seconds after it arrives; whenever when left out |
//! | `cost_of_waiting` | what an hour of delay costs; unknown when left out |
//!
//! A cell in double quotes may hold commas, but no cell spans lines. An empty cell is a cell left out.

mod columns;
mod split;

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use muster_core::device::{GpuRequest, MAX_DEVICES, WHOLE};
use muster_core::gang::{Closeness, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::resource::{CPU, MEMORY, NamedAmounts};
use muster_core::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};

use self::columns::{Column, Columns, Row};
use super::lines::Lines;
use super::{CellError, TraceError, cell};
use crate::job::Job;

/// Tables do not say whose GPUs they are; nearly all are these.
const GPU: &str = "nvidia.com/gpu";

/// Reads a table, gzipped or not. Jobs come by submit time; those of one instant stay in the order of rows.
pub fn read(path: &Path) -> Result<Vec<Job>, TraceError> {
    parse(path, super::open(path)?)
}

/// Reads a table from `input`; `file` is what errors call it.
pub fn parse(file: &Path, input: impl BufRead) -> Result<Vec<Job>, TraceError> {
    let mut lines = Lines::new(file, input);
    let mut cells = Vec::new();
    let mut columns = None;
    let mut names = Names::default();
    let mut jobs = Vec::new();
    while let Some((place, text)) = lines.next()? {
        if text.is_empty() {
            continue;
        }
        split::split(place, &text, &mut cells)?;
        match &columns {
            None => columns = Some(Columns::find(file, &cells)?),
            Some(columns) => {
                let row = Row::new(place, columns, &cells)?;
                jobs.push(job(&row, jobs.len() + 1, &mut names)?);
            }
        }
    }
    if columns.is_none() {
        Columns::find(file, &[])?;
    }
    jobs.sort_by_key(|job: &Job| job.submit);
    Ok(jobs)
}

/// Names seen so far. Equal names share one allocation; gang names must differ.
#[derive(Default)]
struct Names {
    shared: FxHashSet<Arc<str>>,
    gangs: FxHashMap<Arc<str>, u64>,
}

impl Names {
    fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.shared.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.shared.insert(name.clone());
        name
    }

    fn gang(&mut self, name: &str, line: u64) -> Result<Arc<str>, CellError> {
        let name: Arc<str> = name.into();
        match self.gangs.insert(name.clone(), line) {
            None => Ok(name),
            Some(line) => Err(CellError::NameTaken { line }),
        }
    }
}

fn job(row: &Row<'_>, number: usize, names: &mut Names) -> Result<Job, TraceError> {
    let submit = Time::ZERO + row.required(Column::Submit, cell::seconds)?;
    let run = row.required(Column::Run, cell::seconds)?;
    let members = row.required(Column::Members, cell::count)?;
    let min = row.optional(Column::Min, |text| match cell::count(text)? {
        min if min > members => Err(CellError::AboveMembers { members }),
        min => Ok(min),
    })?;
    let name = row.get(Column::Name).map_or_else(|| format!("job-{number}"), str::to_owned);
    let role = RoleSpec {
        name: names.share("worker"),
        min: min.unwrap_or(members),
        max: members,
        request: request(row, names)?,
        constraints: Default::default(),
    };
    let gang = GangSpec {
        name: names
            .gang(&name, row.line())
            .map_err(|reason| row.bad(Column::Name, &name, reason))?,
        queue: names.share(row.get(Column::Queue).unwrap_or("default")),
        user: names.share(row.get(Column::User).unwrap_or_default()),
        priority: row.optional(Column::Priority, priority)?.unwrap_or(0),
        roles: vec![role],
        closeness: row.get(Column::Topology).map(|level| Closeness::Required(names.share(level))),
        provisioning: Provisioning::default(),
        expected_duration: row.optional(Column::Estimate, cell::seconds)?,
        deadline: row.optional(Column::Deadline, cell::seconds)?.map(|after| submit + after),
        cost_of_waiting: row.optional(Column::CostOfWaiting, cell::money)?,
        disruption: muster_core::gang::Disruption::default(),
    };
    Ok(Job { gang, submit, run })
}

fn request(row: &Row<'_>, names: &mut Names) -> Result<Request, TraceError> {
    let cpu = row.optional(Column::Cpu, cell::milli)?.unwrap_or(1_000);
    let memory = row.optional(Column::Memory, cell::units)?.unwrap_or(0);
    let asked = [(CPU, cpu), (MEMORY, memory)].into_iter().filter(|(_, amount)| *amount > 0);
    let amounts: NamedAmounts = asked.map(|(name, amount)| (names.share(name), amount)).collect();
    let gpu = row.optional(Column::Gpus, gpus)?.flatten();
    let gpu = gpu.map(|(count, share)| GpuRequest { resource: names.share(GPU), count, share });
    Ok(Request { amounts, gpu })
}

/// Devices per member and the share of each: a part of one, or whole ones.
fn gpus(text: &str) -> Result<Option<(u16, u16)>, CellError> {
    let whole = u64::from(WHOLE);
    match cell::milli(text)? {
        0 => Ok(None),
        milli if milli > MAX_DEVICES as u64 * whole => {
            Err(CellError::TooManyGpus { most: MAX_DEVICES })
        }
        milli if milli < whole => Ok(Some((1, milli as u16))),
        milli if milli % whole == 0 => Ok(Some(((milli / whole) as u16, WHOLE))),
        _ => Err(CellError::BrokenGpus),
    }
}

fn priority(text: &str) -> Result<i32, CellError> {
    i32::try_from(cell::whole(text)?).map_err(|_| CellError::TooLarge)
}

#[cfg(test)]
mod tests;
