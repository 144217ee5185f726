//! A pod without owners, or whose owners declare no gang: a gang of one.

use crate::foreign::json::Json;
use crate::pod::spec::PodSpec;
use crate::workloads::kind::WorkloadRole;

pub(crate) const ROLE: &str = "pod";

pub(crate) fn roles(pod: &Json<'_>, spec: &Json<'_>) -> Vec<WorkloadRole> {
    let (labels, annotations) = pod.labels_and_annotations();
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
                run: crate::workloads::template::run_of(spec.value()),
            }]
        }
        Err(found) => {
            spec.findings().extend(found);
            Vec::new()
        }
    }
}
