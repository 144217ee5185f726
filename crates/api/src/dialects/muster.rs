//! Muster's own annotations and labels: for pods that belong to a Gang object, and for pods without one, which declare
//! everything themselves.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Meta;
use crate::dialects::terms::{Level, Terms};
use crate::foreign::json::{Findings, Json};

const GANG: &str = "muster.sh/gang";
const ROLE: &str = "muster.sh/role";
const SIZE: &str = "muster.sh/gang-size";
const QUEUE: &str = "muster.sh/queue";
const REQUIRED: &str = "muster.sh/topology-required";
const PREFERRED: &str = "muster.sh/topology-preferred";
const PREEMPTIBLE: &str = "muster.sh/preemptible";

pub(crate) const KINDS: &[GroupKind] = &[GroupKind {
    group: "muster.sh",
    versions: &["v1alpha1"],
    kind: "Gang",
    plural: "gangs",
    namespaced: true,
}];

pub(crate) fn group(meta: Meta<'_>) -> Option<&str> {
    meta.either(GANG)
}

pub(crate) fn role(meta: Meta<'_>) -> Option<&str> {
    meta.either(ROLE)
}

/// The terms that pods without a Gang object declare.
pub(crate) fn pod_terms(meta: Meta<'_>, findings: &Findings) -> Terms {
    Terms {
        min: meta.count(SIZE, findings),
        queue: meta.either(QUEUE).map(Into::into),
        required: meta.either(REQUIRED).map(Level::key),
        preferred: meta.either(PREFERRED).map(Level::key),
        preemptible: meta.flag(PREEMPTIBLE, findings),
        ..Terms::default()
    }
}

/// The terms of a Gang object for pods that join it; the manifest reader reads the whole object.
pub(crate) fn terms(spec: &Json<'_>) -> Terms {
    let roles = spec.list("roles");
    let min_of = |role: &Json<'_>| Some((role.text("name")?.into(), role.count("min")?));
    Terms {
        min_by_role: roles.iter().filter_map(min_of).collect(),
        queue: spec.text("queue").map(Into::into),
        priority_class: spec.text("priorityClassName").map(Into::into),
        priority: spec.whole("priority"),
        required: spec.get("topology").and_then(|at| at.text("required")).map(Level::key),
        preferred: spec.get("topology").and_then(|at| at.text("preferred")).map(Level::key),
        preemptible: spec.get("disruption").and_then(|at| at.flag("preemptible")),
        ..Terms::default()
    }
}
