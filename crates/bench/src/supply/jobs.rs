//! Jobs of the ITP traces (Microsoft 2021): `job_id,submission_time,duration,num_gpu`, times in seconds.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::{GangSpec, Provisioning, Request, RoleSpec};
use muster_core::resource::{CPU, MEMORY};
use muster_core::time::{Span, Time};
use muster_sim::Job;
use muster_sim::trace::open;

use crate::supply::model::GPU;

/// GPUs of the largest machine: a job that requests more becomes a gang with members of this size.
const NODE: u32 = 8;

/// Every job of a trace, by submit time.
pub(crate) fn jobs(path: &Path) -> anyhow::Result<Vec<Job>> {
    let mut lines = open(path)?.lines();
    let head = lines.next().transpose()?.unwrap_or_default();
    if head.trim() != "job_id,submission_time,duration,num_gpu" {
        bail!("{}: not a trace with job_id,submission_time,duration,num_gpu", path.display());
    }
    let mut jobs = Vec::new();
    for (i, line) in lines.enumerate() {
        let line = line?;
        let job = job(i, &line).with_context(|| format!("{}: line {}", path.display(), i + 2))?;
        jobs.push(job);
    }
    jobs.sort_by_key(|job| job.submit);
    Ok(jobs)
}

fn job(i: usize, line: &str) -> anyhow::Result<Job> {
    let cells: Vec<&str> = line.trim().split(',').collect();
    let [_, submitted, duration, gpus] = cells[..] else {
        bail!("{} columns instead of four", cells.len());
    };
    let submit = Time::from_secs_f64(submitted.parse().context("submission_time")?);
    let run = Span::from_secs_f64(duration.parse().context("duration")?);
    let gpus: u32 = gpus.parse().context("num_gpu")?;
    ensure!(gpus > 0, "no GPUs asked for");
    let members = members(gpus);
    Ok(Job::new(gang(i, members, (gpus / members) as u16), submit, run))
}

/// As few members as can be that all have the same number of GPUs: whole machines where that comes out even.
fn members(gpus: u32) -> u32 {
    (gpus.div_ceil(NODE)..=gpus).find(|members| gpus.is_multiple_of(*members)).unwrap_or(gpus)
}

/// One rigid role. Cores and memory are a GPU's part of its machine, so that GPUs alone decide. It has no
/// expected duration: the traces have none.
fn gang(i: usize, members: u32, gpus: u16) -> GangSpec {
    let amounts = BTreeMap::from([
        (CPU.into(), u64::from(gpus) * 8_000),
        (MEMORY.into(), u64::from(gpus) * (61 << 30)),
    ]);
    let gpu = Some(GpuRequest { resource: GPU.into(), count: gpus, share: WHOLE });
    GangSpec {
        name: format!("itp-{i}").into(),
        queue: "default".into(),
        user: "".into(),
        priority: 0,
        priority_is_declared: false,
        roles: vec![RoleSpec {
            name: "worker".into(),
            min: members,
            max: members,
            request: Request { amounts, gpu },
            constraints: Default::default(),
            spread: Vec::new(),
        }],
        closeness: None,
        provisioning: Provisioning::default(),
        expected_duration: None,
        deadline: None,
        cost_of_waiting: None,
        disruption: muster_core::gang::Disruption::default(),
        scaling: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_machine_is_a_gang_of_members_alike() {
        let shape = |line| {
            let role = job(0, line).unwrap().gang.roles[0].clone();
            (role.min, role.request.gpu.unwrap().count)
        };
        assert_eq!(shape("a,10,20,1"), (1, 1));
        assert_eq!(shape("a,10,20,8"), (1, 8));
        assert_eq!(shape("a,10,20,64"), (8, 8));
        assert_eq!(shape("a,10,20,12"), (2, 6));
        assert_eq!(shape("a,10,20,11"), (11, 1));
        assert!(job(0, "a,10,20").is_err());
    }
}
