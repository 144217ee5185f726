//! Kubeflow's TrainJob. Its templates are in the runtime it names, which is another object, and in the JobSet it
//! creates from that: once there is a JobSet, its roles are more exact. Before that, only the size and the trainer are
//! known.

use crate::foreign::json::Json;
use crate::pod::resources::Resources;
use crate::pod::spec::{Container, PodSpec};
use crate::workloads::kind::WorkloadRole;
use crate::workloads::template::run_of;
use serde::Deserialize;
use serde_json::json;

/// The name of the training job in the runtimes.
const NODE: &str = "node";

pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    let mut roles = Vec::new();
    for (field, name) in [("dataset", "dataset-initializer"), ("model", "model-initializer")] {
        if spec.at(&["initializer", field]).is_some() {
            roles.push(bare(name, 1, Resources::default()));
        }
    }
    let trainer = spec.get("trainer");
    // A trainer gives its command as a container does.
    let run = trainer.as_ref().and_then(|at| run_of(&json!({"containers": [at.value()]})));
    let count = trainer.as_ref().and_then(|at| at.count("numNodes")).unwrap_or(1);
    let resources = trainer.and_then(|at| at.get("resourcesPerNode")).and_then(|at| {
        let read = Resources::deserialize(at.value());
        read.map_err(|error| at.error(error)).ok()
    });
    if count > 0 {
        let node = bare(NODE, count, resources.unwrap_or_default());
        roles.push(WorkloadRole { run, ..node });
    }
    roles
}

/// A role of known size with the resources of the trainer itself.
fn bare(name: &str, count: u32, resources: Resources) -> WorkloadRole {
    let container = Container { name: name.into(), resources, ..Container::default() };
    WorkloadRole {
        name: name.into(),
        count,
        min: None,
        max: None,
        template: PodSpec { containers: vec![container], ..PodSpec::default() },
        labels: Default::default(),
        annotations: Default::default(),
        run: None,
    }
}
