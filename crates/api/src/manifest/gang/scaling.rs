//! How a gang's speed depends on the number of its members, and what a resize costs.

use muster_core::gang::RoleSpec;
use muster_core::progress::Scaling;

use crate::yaml::fields::Fields;
use crate::yaml::value::Value;

/// Reads `spec.scaling`, which applies only to elastic gangs.
pub(crate) fn scaling(spec: &Fields<'_>, roles: &[RoleSpec]) -> Scaling {
    let default = Scaling::default();
    let Some(value) = spec.get("scaling") else { return default };
    if !roles.is_empty() && roles.iter().all(|role| role.min == role.max) {
        value.warn("says what more members bring, but no role has `max` above `min`");
    }
    let Some(fields) = value.fields() else { return default };
    let read = Scaling {
        efficiency: fields
            .get("efficiency")
            .and_then(|value| efficiency(&value))
            .unwrap_or(default.efficiency),
        resize: fields.span("resizeCost").unwrap_or(default.resize),
    };
    fields.done();
    read
}

/// The fraction of twice the speed that twice the members reach, in thousandths. At one half, more members bring
/// nothing.
fn efficiency(value: &Value<'_>) -> Option<u16> {
    let part = value.number(f64::MIN..=f64::MAX)?;
    if part <= 0.5 || part > 1.0 {
        value.error(format!("must be above 0.5 and at most 1, not {part}"));
        return None;
    }
    Some(((part * 1e3).round() as u16).max(501))
}
