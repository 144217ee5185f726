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
//! | `queue`, `user`, `priority` | `default`, none and 0 when left out |
//! | `estimate_s` | what the user expects, in seconds; unknown when left out |
//! | `topology` | the level all members must share; anywhere when left out |
//! | `deadline_s` | when it should be done, in seconds after it arrives; whenever when left out |
//! | `cost_of_waiting` | what an hour of delay costs; unknown when left out |
//!
//! A cell in double quotes may hold commas, but no cell spans lines. An empty cell is a cell left out.

mod columns;
#[cfg(test)]
mod tests;

use std::io::BufRead;
use std::path::Path;

use muster_core::gang::{Closeness, GangSpec, Request, RoleSpec};
use muster_core::time::Time;

use crate::job::Job;
use crate::trace::defaults;
use crate::trace::error::TraceError;
use crate::trace::parse::cell;
use crate::trace::parse::cell::CellError;
use crate::trace::parse::columns::{Row, rows};
use crate::trace::parse::names::Names;
use columns::Column;

/// Reads a table, gzipped or not. Jobs come by submit time; those of one instant stay in the order of rows.
pub fn read(path: &Path) -> Result<Vec<Job>, TraceError> {
    parse(path, crate::trace::parse::open(path)?)
}

/// Reads a table from `input`; `file` is what errors call it.
pub fn parse(file: &Path, input: impl BufRead) -> Result<Vec<Job>, TraceError> {
    let mut names = Names::default();
    let mut jobs = Vec::new();
    rows::<Column>(file, input, |row| {
        jobs.push(job(row, jobs.len() + 1, &mut names)?);
        Ok(())
    })?;
    jobs.sort_by_key(|job: &Job| job.submit);
    Ok(jobs)
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
    let role = defaults::role(names.share("worker"), members, request(row, names)?);
    let role = RoleSpec { min: min.unwrap_or(members), ..role };
    let name =
        names.only(&name, row.line()).map_err(|reason| row.bad(Column::Name, &name, reason))?;
    let queue = names.share(row.get(Column::Queue).unwrap_or("default"));
    let user = names.share(row.get(Column::User).unwrap_or_default());
    let gang = GangSpec {
        priority: row.optional(Column::Priority, priority)?.unwrap_or(0),
        closeness: row.get(Column::Topology).map(|level| Closeness::Required(names.share(level))),
        expected_duration: row.optional(Column::Estimate, cell::seconds)?,
        deadline: row.optional(Column::Deadline, cell::seconds)?.map(|after| submit + after),
        cost_of_waiting: row.optional(Column::CostOfWaiting, cell::money)?,
        disruption: muster_core::gang::Disruption::default(),
        scaling: Default::default(),
        ..defaults::gang(name, queue, user, vec![role])
    };
    Ok(Job::new(gang, submit, run))
}

fn request(row: &Row<'_>, names: &mut Names) -> Result<Request, TraceError> {
    let cpu = row.optional(Column::Cpu, cell::milli)?.unwrap_or(1_000);
    let memory = row.optional(Column::Memory, cell::units)?.unwrap_or(0);
    let gpu = row.optional(Column::Gpus, gpus)?.flatten();
    Ok(defaults::request(names, cpu, memory, gpu))
}

/// Devices per member and the share of each.
fn gpus(text: &str) -> Result<Option<defaults::Devices>, CellError> {
    defaults::devices(cell::milli(text)?)
}

fn priority(text: &str) -> Result<i32, CellError> {
    i32::try_from(cell::whole(text)?).map_err(|_| CellError::TooLarge)
}
