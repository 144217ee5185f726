//! Pod templates, which every operator embeds.

use super::WorkloadRole;
use crate::json::Json;
use crate::pod::PodSpec;

/// A role of so many pods of the template in this field.
pub(super) fn role(name: &str, count: u32, holder: &Json<'_>, field: &str) -> Option<WorkloadRole> {
    let template = holder.need(field)?;
    let spec = template.need("spec")?;
    let (labels, annotations) = template.marks();
    let path = spec.path();
    let template = PodSpec::read(spec.value(), path).map_err(|found| spec.findings().extend(found));
    Some(WorkloadRole {
        name: name.to_owned(),
        count,
        min: None,
        max: None,
        template: template.ok()?,
        labels,
        annotations,
    })
}
