//! Decodes the metadata of an object and keeps the fields that are used.
//!
//! Managed fields repeat every field of an object, and annotations hold up to 256 KiB of arbitrary text. Managed fields are
//! skipped, and so are annotations that Muster does not read.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The prefixes of annotations that are read: Muster's own, those of the dialects, of volumes and of autoscalers.
const READ_PREFIXES: [&str; 18] = [
    "muster.sh/",
    "scheduling.k8s.io/",
    "scheduling.volcano.sh/",
    "volcano.sh/",
    "gang.scheduling.koordinator.sh/",
    "pod-group.scheduling.sigs.k8s.io",
    "quota.scheduling.koordinator.sh/",
    "kai.scheduler/",
    "pod-group-name",
    "gpu-fraction",
    "spark-role",
    "autoscaling.x-k8s.io/",
    "cluster-autoscaler.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "kubernetes.io/config.mirror",
    "karpenter.sh/",
];

/// Whether an annotation is read.
pub(crate) fn is_read(annotation: &str) -> bool {
    READ_PREFIXES.iter().any(|prefix| annotation.starts_with(prefix))
}

/// The fields of metadata that are read. Of annotations only those that are read are kept.
pub(crate) const FIELDS: [&str; 12] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "ownerReferences",
    "finalizers",
    "annotations",
];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    annotations: Annotations,
}

/// The annotations that are read.
#[derive(Default)]
struct Annotations(Option<BTreeMap<String, String>>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnnotationsVisitor)
    }
}

struct AnnotationsVisitor;

impl<'de> Visitor<'de> for AnnotationsVisitor {
    type Value = Annotations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("annotations")
    }
    fn visit_unit<E>(self) -> Result<Annotations, E> {
        Ok(Annotations(None))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
        let mut kept = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if is_read(&name) {
                kept.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Annotations((!kept.is_empty()).then_some(kept)))
    }
}

/// Decodes metadata without the fields that are not used.
pub(crate) fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let kept = Kept::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        uid: kept.uid,
        resource_version: kept.resource_version,
        generation: kept.generation,
        creation_timestamp: kept.creation_timestamp,
        deletion_timestamp: kept.deletion_timestamp,
        deletion_grace_period_seconds: kept.deletion_grace_period_seconds,
        labels: kept.labels,
        owner_references: kept.owner_references,
        finalizers: kept.finalizers,
        annotations: kept.annotations.0,
        ..ObjectMeta::default()
    })
}
