//! PersistentVolumes and what a claim requires of one.
//!
//! The matching rules are those of Kubernetes: the same storage class, enough capacity, every requested access mode,
//! the same volume mode and attributes class, and labels that the claim's selector matches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_api::pod::LabelSelector;
use muster_core::constraint::{Requirement, Term, Test};
use muster_core::quantity::Quantity;
use muster_core::topology::HOSTNAME;
use serde_json::Value;

use crate::constraints::selector::describe;
use crate::constraints::volumes::claims::{
    BETA_STORAGE_CLASS, TOPOLOGY_LABELS, VALUE_SEPARATOR, annotation, terms, text,
};
use crate::objects::node::Node;

/// The default volume mode of volumes and claims.
const FILESYSTEM: &str = "Filesystem";

/// What a claim requires of its volume.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ClaimRequirements {
    class: String,
    bytes: u64,
    modes: BTreeSet<String>,
    mode: String,
    attributes: String,
    selector: Option<LabelSelector>,
}

impl ClaimRequirements {
    /// The requirements of a claim; `None` if they are invalid.
    pub(crate) fn of(claim: &DynamicObject) -> Option<Self> {
        let data = &claim.data;
        let selector = data.pointer("/spec/selector").cloned();
        Some(Self {
            class: text(data, "/spec/storageClassName")
                .or(annotation(claim, BETA_STORAGE_CLASS))
                .unwrap_or_default()
                .to_owned(),
            bytes: bytes(data, "/spec/resources/requests/storage")?,
            modes: words(data, "/spec/accessModes"),
            mode: text(data, "/spec/volumeMode").unwrap_or(FILESYSTEM).to_owned(),
            attributes: attributes(data),
            selector: selector.map(serde_json::from_value).transpose().ok()?,
        })
    }

    pub(crate) fn class(&self) -> &str {
        &self.class
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether every volume that matches this matches the other too, and they are not the same.
    pub(crate) fn is_stricter_than(&self, other: &Self) -> bool {
        self != other
            && self.bytes >= other.bytes
            && self.modes.is_superset(&other.modes)
            && (other.selector.is_none() || self.selector == other.selector)
            && (&self.class, &self.mode, &self.attributes)
                == (&other.class, &other.mode, &other.attributes)
    }
}

impl fmt::Display for ClaimRequirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = Quantity::bytes(i64::try_from(self.bytes).unwrap_or(i64::MAX));
        write!(f, "a free volume of class {} with {size}", self.class)?;
        match &self.selector {
            Some(selector) => write!(f, " and {}", describe(selector)),
            None => Ok(()),
        }
    }
}

/// The claim that a volume's claim ref names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClaimRef {
    /// `namespace/name`.
    pub(crate) claim: String,
    /// Absent where the claim ref was written before the claim existed.
    uid: Option<String>,
}

/// A PersistentVolume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PersistentVolume {
    class: String,
    pub(crate) bytes: u64,
    modes: BTreeSet<String>,
    mode: String,
    attributes: String,
    labels: BTreeMap<String, String>,
    /// Requirements on nodes that reach it, by its topology labels.
    all: Term,
    /// Terms of its node affinity, of which one must hold, if there are any.
    any: Option<Vec<Term>>,
    /// The hostname label of the only node that reaches it, if it is node-local.
    pub(crate) only_hostname: Option<Arc<str>>,
    pub(crate) claim_ref: Option<ClaimRef>,
    /// Whether its phase is `Available` and it is not being deleted.
    pub(crate) is_available: bool,
}

impl PersistentVolume {
    /// Reads a volume; `None` if it is invalid.
    pub(crate) fn read(volume: &DynamicObject) -> Option<Self> {
        let data = &volume.data;
        let labels = volume.metadata.labels.clone().unwrap_or_default();
        let nodes = data.pointer("/spec/nodeAffinity/required");
        let any = nodes.map(terms).transpose().ok()?;
        let claim_ref = data.pointer("/spec/claimRef").and_then(|claim_ref| {
            let (namespace, name) = (text(claim_ref, "/namespace")?, text(claim_ref, "/name")?);
            let uid = text(claim_ref, "/uid").map(str::to_owned);
            Some(ClaimRef { claim: format!("{namespace}/{name}"), uid })
        });
        let places = labels.iter().filter_map(|(label, values)| {
            let (_, key) = TOPOLOGY_LABELS.iter().find(|(known, _)| known == label)?;
            let values = values.split(VALUE_SEPARATOR).map(Arc::from).collect();
            Some(Requirement { key: (*key).into(), test: Test::In(values) })
        });
        Some(Self {
            class: text(data, "/spec/storageClassName")
                .or(annotation(volume, BETA_STORAGE_CLASS))
                .unwrap_or_default()
                .to_owned(),
            bytes: bytes(data, "/spec/capacity/storage")?,
            modes: words(data, "/spec/accessModes"),
            mode: text(data, "/spec/volumeMode").unwrap_or(FILESYSTEM).to_owned(),
            attributes: attributes(data),
            all: places.collect(),
            only_hostname: any.as_deref().and_then(only_hostname),
            any,
            labels,
            claim_ref,
            is_available: volume.metadata.deletion_timestamp.is_none()
                && text(data, "/status/phase") == Some("Available"),
        })
    }

    pub(crate) fn class(&self) -> &str {
        &self.class
    }

    /// Whether it meets a claim's requirements.
    pub(crate) fn matches(&self, requirements: &ClaimRequirements) -> bool {
        self.class == requirements.class
            && self.mode == requirements.mode
            && self.attributes == requirements.attributes
            && self.bytes >= requirements.bytes
            && self.modes.is_superset(&requirements.modes)
            && requirements.selector.as_ref().is_none_or(|selector| selector.matches(&self.labels))
    }

    /// Whether a node reaches it.
    pub(crate) fn is_reachable_from(&self, node: &Node) -> bool {
        let label = |key: &str| {
            let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
            let name = node.metadata.name.as_deref().filter(|_| key == HOSTNAME);
            label.map(String::as_str).or(name)
        };
        let holds = |term: &Term| term.iter().all(|one| one.holds(label(&one.key)));
        holds(&self.all) && self.any.as_ref().is_none_or(|any| any.iter().any(holds))
    }

    /// Whether its claim ref names this claim, by UID or, where that is absent, by name.
    pub(crate) fn is_claimed_by(&self, claim: &str, uid: Option<&str>) -> bool {
        self.claim_ref.as_ref().is_some_and(|claim_ref| {
            claim_ref.claim == claim && claim_ref.uid.as_deref().is_none_or(|of| Some(of) == uid)
        })
    }
}

/// The hostname label of the only node that terms allow, if there is only one.
fn only_hostname(terms: &[Term]) -> Option<Arc<str>> {
    let one = |term: &Term| {
        let at = |one: &Requirement| match &one.test {
            Test::In(values) if &*one.key == HOSTNAME && values.len() == 1 => {
                Some(values[0].clone())
            }
            _ => None,
        };
        term.iter().find_map(at)
    };
    match terms {
        [term] => one(term),
        _ => None,
    }
}

fn bytes(data: &Value, pointer: &str) -> Option<u64> {
    text(data, pointer)?.parse::<Quantity>().ok()?.ceil_units()
}

fn attributes(data: &Value) -> String {
    text(data, "/spec/volumeAttributesClassName").unwrap_or_default().to_owned()
}

fn words(data: &Value, pointer: &str) -> BTreeSet<String> {
    let all = data.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Volumes and claims for tests, in short notation.
#[cfg(test)]
pub(crate) mod fixtures {
    use serde_json::json;

    use crate::constraints::volumes::volume::*;

    /// An available volume of a class: `local 10Gi on a`, `local 10Gi in zone-a`, `local 10Gi`.
    pub(crate) fn static_volume(text: &str) -> DynamicObject {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut volume = json!({
            "metadata": {},
            "spec": {
                "storageClassName": words[0], "capacity": {"storage": words[1]},
                "accessModes": ["ReadWriteOnce"],
            },
            "status": {"phase": "Available"},
        });
        let key = match words.get(2) {
            Some(&"on") => HOSTNAME,
            Some(&"in") => "zone",
            _ => return serde_json::from_value(volume).expect("a volume"),
        };
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": "In", "values": [words[3]]}]},
        ]}});
        serde_json::from_value(volume).expect("a volume")
    }

    /// A claim of a class, with more fields of its spec.
    pub(crate) fn claim(class: &str, size: &str, more: &Value) -> DynamicObject {
        let mut spec = json!({
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        });
        spec.as_object_mut().expect("a spec").extend(more.as_object().expect("fields").clone());
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).expect("a claim")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixtures::{claim, static_volume};
    use crate::constraints::cluster_view::fixtures::node;
    use crate::constraints::volumes::volume::*;

    #[test]
    fn a_volume_matches_a_claim_by_class_capacity_modes_and_labels() {
        let mut volume = static_volume("local 10Gi on a");
        volume.metadata.labels = Some([("kind".to_owned(), "nvme".to_owned())].into());
        let volume = PersistentVolume::read(&volume).expect("a volume");
        for (class, size, more, suits) in [
            ("local", "10Gi", json!({}), true),
            ("local", "1Gi", json!({}), true),
            ("local", "10.5Gi", json!({}), false),
            ("other", "1Gi", json!({}), false),
            ("local", "1Gi", json!({"volumeMode": "Filesystem"}), true),
            ("local", "1Gi", json!({"volumeMode": "Block"}), false),
            ("local", "1Gi", json!({"accessModes": ["ReadWriteMany"]}), false),
            ("local", "1Gi", json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}), false),
            ("local", "1Gi", json!({"selector": {"matchLabels": {"kind": "nvme"}}}), true),
            ("local", "1Gi", json!({"selector": {"matchLabels": {"kind": "disk"}}}), false),
            ("local", "1Gi", json!({"volumeAttributesClassName": "fast"}), false),
        ] {
            let requirements = ClaimRequirements::of(&claim(class, size, &more)).expect("a claim");
            assert_eq!(volume.matches(&requirements), suits, "{requirements:?}");
        }
    }

    #[test]
    fn a_volume_is_reachable_from_nodes_of_its_node_affinity() {
        let mut other = node("a-by-name", "1");
        other.metadata.labels.get_or_insert_default().insert(HOSTNAME.to_owned(), "a".to_owned());
        let nodes = [node("a", "1"), other, node("b", "1"), node("c", "2")];
        for (volume, only_hostname, reached) in [
            ("local 1Gi on a", Some("a"), "a a-by-name"),
            ("local 1Gi in 1", None, "a a-by-name b"),
            ("local 1Gi", None, "a a-by-name b c"),
        ] {
            let disk = PersistentVolume::read(&static_volume(volume)).expect("a volume");
            assert_eq!(disk.only_hostname.as_deref(), only_hostname, "{volume}");
            let from = nodes.iter().filter(|node| disk.is_reachable_from(node));
            let from: Vec<&str> = from.filter_map(|node| node.metadata.name.as_deref()).collect();
            assert_eq!(from.join(" "), reached, "{volume}");
        }
    }

    #[test]
    fn requirements_that_ask_for_more_are_stricter() {
        let requirements = |size: &str, more: Value| {
            ClaimRequirements::of(&claim("local", size, &more)).expect("one")
        };
        let (small, large) = (requirements("1Gi", json!({})), requirements("2Gi", json!({})));
        assert!(large.is_stricter_than(&small) && !small.is_stricter_than(&large));
        assert!(!small.is_stricter_than(&small));
        let picky = requirements("1Gi", json!({"selector": {"matchLabels": {"a": "b"}}}));
        assert!(picky.is_stricter_than(&small) && !picky.is_stricter_than(&large));
        assert!(!large.is_stricter_than(&picky));
    }
}
