//! Pod templates, which every operator embeds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::RunSpec;
use crate::foreign::json::Json;
use crate::pod::spec::PodSpec;
use crate::workloads::kind::WorkloadRole;

/// A role of `count` pods of the template in this field.
pub(crate) fn role(name: &str, count: u32, holder: &Json<'_>, field: &str) -> Option<WorkloadRole> {
    let template = holder.need(field)?;
    let spec = template.need("spec")?;
    let (labels, annotations) = template.labels_and_annotations();
    let (path, run) = (spec.path(), run_of(spec.value()));
    let template = PodSpec::read(spec.value(), path).map_err(|found| spec.findings().extend(found));
    Some(WorkloadRole {
        name: name.to_owned(),
        count,
        min: None,
        max: None,
        template: template.ok()?,
        labels,
        annotations,
        run,
    })
}

/// The process of a pod's first container, for hosts that start processes instead of containers. Of its environment
/// variables only those given by value are read. Arguments without a command belong to the image's entrypoint, which is
/// unknown here.
pub fn run_of(pod: &Value) -> Option<RunSpec> {
    let container = pod.get("containers")?.as_array()?.first()?;
    let words = |field: &str| -> Vec<String> {
        let words = container.get(field).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut command = words("command");
    if command.is_empty() {
        return None;
    }
    command.extend(words("args"));
    let variable = |one: &Value| -> Option<(String, String)> {
        Some((one.get("name")?.as_str()?.to_owned(), one.get("value")?.as_str()?.to_owned()))
    };
    let env = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let env: BTreeMap<String, String> = env.filter_map(variable).collect();
    let directory = container.get("workingDir").and_then(Value::as_str).map(str::to_owned);
    Some(RunSpec { command, env, directory })
}
