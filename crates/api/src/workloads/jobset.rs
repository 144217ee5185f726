//! JobSet: replicated Jobs, each with its own template. All of them are one gang.

use crate::foreign::json::Json;
use crate::foreign::json::MAX_MEMBERS;
use crate::workloads::job;
use crate::workloads::kind::WorkloadRole;
use crate::workloads::template::role;

pub(crate) const ROLE: &str = "jobset.sigs.k8s.io/replicatedjob-name";
pub(crate) const JOB_INDEX: &str = "jobset.sigs.k8s.io/job-index";

pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    spec.list("replicatedJobs").iter().filter_map(replicated).collect()
}

fn replicated(job: &Json<'_>) -> Option<WorkloadRole> {
    let name = job.text("name");
    if name.is_none() {
        job.missing("name");
    }
    let replicas = job.count("replicas").unwrap_or(1);
    let inner = job.need("template")?.need("spec")?;
    let (count, _) = job::size(&inner)?;
    let all = replicas.saturating_mul(count);
    if all > MAX_MEMBERS {
        job.error(format!("{replicas} replicas of {count} pods are more than {MAX_MEMBERS}"));
        return None;
    }
    (all > 0).then(|| role(name?, all, &inner, "template"))?
}

/// The rank of a pod within its replicated job: jobs one after the other, pods within a job. Jobs are assumed to have
/// up to a thousand pods; larger ones are ordered only within a job.
pub(crate) fn rank(job: Option<u32>, pod: Option<u32>) -> Option<u32> {
    match (job, pod) {
        (Some(job), pod) => Some(job.saturating_mul(1_000).saturating_add(pod.unwrap_or(0))),
        (None, pod) => pod,
    }
}
