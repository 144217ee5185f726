//! Queues of Volcano and kube-batch, which their operators and users expect to exist; KAI's queues are recognized by
//! their fields.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::dialects::dialect::GroupKind;
use crate::dialects::kai_queue;
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;
use crate::pod::totals::Totals;

/// The supported kinds of queues.
pub const QUEUES: &[GroupKind] = &[
    cluster_queue("scheduling.volcano.sh", &["v1beta1"]),
    cluster_queue("scheduling.sigs.dev", &["v1alpha2"]),
    cluster_queue("scheduling.incubator.k8s.io", &["v1alpha1"]),
    cluster_queue("scheduling.run.ai", &["v2"]),
];

const fn cluster_queue(group: &'static str, versions: &'static [&'static str]) -> GroupKind {
    GroupKind { group, versions, kind: "Queue", plural: "queues", namespaced: false }
}

/// The terms of such a queue. `None` where it gives nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QueueTerms {
    /// Its parent.
    pub parent: Option<Arc<str>>,
    /// Its weight among its siblings.
    pub weight: Option<u32>,
    /// Resources that are reserved for it, used or not.
    pub guaranteed: Option<Totals>,
    /// Resources that it should have, and can reclaim.
    pub deserved: Option<Totals>,
    /// The most resources that it may have.
    pub limit: Option<Totals>,
    /// Whether others may reclaim what it holds above what it deserves.
    pub reclaimable: Option<bool>,
    /// Whether it admits no new gangs.
    pub closed: bool,
}

/// Reads a queue.
pub fn queue(object: &Value, gpus: &GpuNames) -> Result<QueueTerms, Vec<String>> {
    let findings = Findings::default();
    let object = Json::root(object, &findings);
    let Some(spec) = object.get("spec") else {
        // Kubernetes drops empty mappings: the queue gives nothing.
        return findings.settle(QueueTerms::default());
    };
    if kai_queue::has_kai_fields(&spec) {
        let queue = kai_queue::queue(&spec);
        return findings.settle(queue);
    }
    let amounts = |at: &Json<'_>, name: &str| crate::dialects::terms::resources(at, name, gpus);
    let state = object.at(&["status"]).and_then(|status| status.text("state"));
    let queue = QueueTerms {
        parent: spec.text("parent").map(Into::into),
        weight: spec.count("weight"),
        guaranteed: spec.get("guarantee").and_then(|at| amounts(&at, "resource")),
        deserved: amounts(&spec, "deserved"),
        limit: amounts(&spec, "capability"),
        reclaimable: spec.flag("reclaimable"),
        closed: matches!(state, Some("Closed" | "Closing")),
    };
    findings.settle(queue)
}
