//! The baseline without gangs: every member is submitted and placed on its own, and waits at the barrier for the others
//! on a machine that is paid for, as with per-pod schedulers and autoscalers.

use std::sync::Arc;

use muster_core::gang::{Disruption, GangSpec};
use muster_core::time::{Span, Time};

use crate::accounts::Outcome;
use crate::job::Job;

/// A workload split into single members.
#[derive(Clone, Debug)]
pub struct Apart {
    /// One job per member.
    pub jobs: Vec<Job>,
    /// For each, the job it was a member of.
    pub group_of: Vec<usize>,
}

/// Splits every gang into its members.
pub fn take_apart(jobs: &[Job]) -> Apart {
    let mut apart = Apart { jobs: Vec::new(), group_of: Vec::new() };
    for (group, job) in jobs.iter().enumerate() {
        for role in &job.gang.roles {
            for member in 0..role.min {
                let name: Arc<str> = format!("{}.{}.{member}", job.gang.name, role.name).into();
                let mut alone = role.clone();
                (alone.min, alone.max) = (1, 1);
                let gang = GangSpec {
                    name,
                    roles: vec![alone],
                    closeness: None,
                    // The work of the whole group cannot be saved by one member.
                    disruption: Disruption { checkpoint: None, ..job.gang.disruption },
                    ..job.gang.clone()
                };
                apart.jobs.push(Job::new(gang, job.submit, job.run));
                apart.group_of.push(group);
            }
        }
    }
    apart
}

/// The outcome of one gang whose members were placed one by one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Together {
    /// From submission until the last member had started; none if some never did.
    pub wait: Option<Span>,
    /// From the first member's start to the last one's.
    pub spread: Span,
    /// GPU time members spent at the barrier, in milliseconds.
    pub wasted_gpu_ms: u64,
    /// Whether all of it was done.
    pub ended: bool,
}

/// Joins the outcomes of members, gang by gang. Members whose group never completed waited until `now`.
pub fn put_together(
    apart: &Apart,
    outcomes: &[Outcome],
    groups: usize,
    now: Time,
) -> Vec<Together> {
    let mut together = vec![Together { ended: true, ..Together::default() }; groups];
    let members = |group: usize| {
        let of_group = move |i: &usize| apart.group_of[*i] == group;
        (0..apart.jobs.len()).filter(of_group)
    };
    for (group, sum) in together.iter_mut().enumerate() {
        let starts: Vec<Time> = members(group).filter_map(|i| outcomes[i].started).collect();
        let complete = starts.len() == members(group).count();
        let last = if complete { starts.iter().max().copied() } else { Some(now) };
        let (Some(first), Some(last)) = (starts.iter().min().copied(), last) else {
            sum.ended = false;
            continue;
        };
        sum.spread = last.since(first);
        for i in members(group) {
            let gpu_milli = apart.jobs[i].gang.roles[0].request.gpu_milli();
            if let Some(started) = outcomes[i].started {
                sum.wasted_gpu_ms += gpu_milli * last.since(started).0 / 1_000;
            }
            sum.ended &= outcomes[i].ended.is_some();
        }
        let submitted = members(group).filter_map(|i| outcomes[i].submitted).min();
        sum.wait = submitted.filter(|_| complete).map(|submitted| last.since(submitted));
    }
    together
}
