//! `batch/v1` Job.
//!
//! A Job is a gang only as far as its pods run at once: `parallelism`, and no more than `completions`. An indexed Job
//! with as many completions as it runs at once is what distributed training uses, and is rigid. Any other Job works off
//! a list, and needs only one pod at a time.

use crate::foreign::json::Json;
use crate::workloads::kind::WorkloadRole;
use crate::workloads::template::role;

/// The single role of a Job.
pub(crate) const ROLE: &str = "worker";
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    let Some((count, min)) = size(spec) else { return Vec::new() };
    let role = role(ROLE, count, spec, "template");
    role.map(|role| WorkloadRole { min, ..role }).into_iter().collect()
}

/// The number of pods that run at once, and the minimum. `None` if it runs none.
pub(crate) fn size(spec: &Json<'_>) -> Option<(u32, Option<u32>)> {
    let parallelism = spec.count("parallelism").unwrap_or(1);
    let completions = spec.count("completions");
    let count = completions.map_or(parallelism, |needed| parallelism.min(needed));
    let indexed = spec.text("completionMode") == Some("Indexed");
    let together = indexed && completions.is_none_or(|needed| needed <= parallelism);
    let gang = spec.at(&["scheduling", "schedulingPolicy"]).and_then(|policy| policy.get("gang"));
    let min = match gang {
        // Kubernetes 1.37: the Job declares that it is a gang, of all its pods unless it gives a number.
        Some(gang) => gang.count("minCount"),
        None if together || count <= 1 => None,
        None => Some(1),
    };
    (count > 0).then_some((count, min.filter(|min| *min < count)))
}
