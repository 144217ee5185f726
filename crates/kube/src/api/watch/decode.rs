//! Decodes one object of a kind, or says why it is omitted.

use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::objects::field_mask::Mask;
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;
use crate::objects::projection::Decoded;
use crate::objects::projection::project;

/// An object that is not delivered, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Omission {
    pub(crate) name: String,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) reason: OmissionReason,
    /// The field, and what is wrong with it.
    pub(crate) why: String,
    /// The size of the whole object in bytes, if it was read.
    pub(crate) stored: Option<usize>,
}

/// The kind of reason for which an object is omitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OmissionReason {
    /// The object cannot be decoded, or is larger than the limit of one object.
    Invalid,
    /// The namespace has used up its memory budget.
    NamespaceFull,
}

impl Omission {
    /// The key of the object: `namespace/name`, or its name.
    pub(crate) fn key(&self) -> String {
        match &*self.namespace {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }
}

/// The identity of an object, which can be read even if the rest cannot.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ObjectId {
    pub(crate) metadata: ObjectIdMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectIdMeta {
    name: String,
    namespace: String,
    uid: String,
    pub(crate) resource_version: String,
}

impl ObjectId {
    /// Reads the identity of an object; empty if not even that can be read.
    pub(crate) fn of(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn omitted(self, why: String, stored: usize) -> Omission {
        let ObjectIdMeta { name, namespace, uid, .. } = self.metadata;
        Omission {
            name,
            namespace,
            uid,
            reason: OmissionReason::Invalid,
            why,
            stored: Some(stored),
        }
    }

    /// An object with nothing but this identity, for lookups by name.
    pub(crate) fn as_object<K: serde::de::DeserializeOwned>(&self) -> Option<K> {
        let ObjectIdMeta { name, namespace, uid, resource_version } = &self.metadata;
        let mut metadata = json!({"name": name, "uid": uid, "resourceVersion": resource_version});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        serde_json::from_value(json!({"metadata": metadata})).ok()
    }
}

/// How objects of a kind are decoded.
pub(crate) trait Decode: Sized {
    /// The fields to keep, where the type does not determine them.
    type Fields: Send + Sync + 'static;

    /// Decodes an object, and keeps at most this many bytes of it.
    ///
    /// # Errors
    /// With the field and what is wrong with it.
    fn read(json: &str, fields: &Self::Fields, bytes: usize) -> Result<Decoded<Self>, String>;

    /// The least that must be kept, for objects that count even in a namespace whose budget is used up.
    fn outline(&self) -> Option<Self> {
        None
    }
}

impl Decode for DynamicObject {
    type Fields = Mask;

    fn read(json: &str, mask: &Mask, bytes: usize) -> Result<Decoded<Self>, String> {
        project(json, mask, bytes)
    }
}

impl Decode for Pod {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Decoded<Self>, String> {
        let pod: Self = typed(json)?;
        let size = size_of(&pod);
        if size <= bytes {
            return Ok(Decoded { object: pod, cost: cost(size) });
        }
        match pod.outline() {
            Some(outline) => Ok(Decoded { cost: cost(size_of(&outline)), object: outline }),
            None => Err(too_large(size, bytes)),
        }
    }

    /// A pod on a node uses resources of that node, whatever else is wrong with it.
    fn outline(&self) -> Option<Self> {
        (self.node().is_some() && !self.is_finished()).then(|| self.requests_only())
    }
}

impl Decode for Node {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Decoded<Self>, String> {
        bounded(typed(json)?, bytes)
    }
}

impl Decode for NodeClaim {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Decoded<Self>, String> {
        bounded(typed(json)?, bytes)
    }
}

fn typed<K: serde::de::DeserializeOwned>(json: &str) -> Result<K, String> {
    serde_json::from_str(json).map_err(|error| format!("cannot be read: {error}"))
}

fn bounded<K: Serialize>(object: K, bytes: usize) -> Result<Decoded<K>, String> {
    match size_of(&object) {
        size if size > bytes => Err(too_large(size, bytes)),
        size => Ok(Decoded { object, cost: cost(size) }),
    }
}

fn too_large(size: usize, bytes: usize) -> String {
    format!(
        "the fields that are read have {size} bytes, and {bytes} is the most that is kept of one object"
    )
}

/// The estimated memory of an object of this size as JSON: field names cost nothing, and strings an allocation each.
fn cost(size: usize) -> usize {
    1_024 + 3 * size
}

/// The size of an object as JSON, without writing it.
fn size_of(object: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, object) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
