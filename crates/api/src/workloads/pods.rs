//! A pod nobody owns, or whose owners say nothing about a gang: a gang of one.

use super::{Json, WorkloadRole};
use crate::pod::PodSpec;

pub(super) const ROLE: &str = "pod";

pub(super) fn roles(pod: &Json<'_>, spec: &Json<'_>) -> Vec<WorkloadRole> {
    let (labels, annotations) = pod.marks();
    match PodSpec::read(spec.value(), spec.path()) {
        Ok(template) => {
            let name = ROLE.to_owned();
            vec![WorkloadRole {
                name,
                count: 1,
                min: None,
                max: None,
                template,
                labels,
                annotations,
                run: super::run_of(spec.value()),
            }]
        }
        Err(found) => {
            spec.findings().extend(found);
            Vec::new()
        }
    }
}
