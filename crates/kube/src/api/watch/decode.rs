//! Reads one object of a kind, or says why it is left out.

use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::objects::field_mask::Mask;
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;
use crate::objects::projection::Taken;
use crate::objects::projection::project;

/// An object that is left out, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Omission {
    pub(crate) name: String,
    /// Empty when the kind has none.
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) reason: Reason,
    /// The field, and what is wrong with it.
    pub(crate) why: String,
    /// Bytes that the server has of it, if it was looked at.
    pub(crate) stored: Option<usize>,
}

/// Why an object is left out, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// It cannot be read, or is larger than one object may be.
    Invalid,
    /// Its namespace has as much as one namespace may have.
    NamespaceFull,
}

impl Omission {
    /// What the object is called among its kind.
    pub(crate) fn key(&self) -> String {
        match &*self.namespace {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }
}

/// What every object says of itself, however odd the rest is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) metadata: NamedMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NamedMeta {
    name: String,
    namespace: String,
    uid: String,
    pub(crate) resource_version: String,
}

impl Named {
    /// What an object says of itself. Nothing, if not even that can be read.
    pub(crate) fn of(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn left_out(self, why: String, stored: usize) -> Omission {
        let NamedMeta { name, namespace, uid, .. } = self.metadata;
        Omission { name, namespace, uid, reason: Reason::Invalid, why, stored: Some(stored) }
    }

    /// An object of which nothing but this is known, for those who look for it by name.
    pub(crate) fn as_object<K: serde::de::DeserializeOwned>(&self) -> Option<K> {
        let NamedMeta { name, namespace, uid, resource_version } = &self.metadata;
        let mut metadata = json!({"name": name, "uid": uid, "resourceVersion": resource_version});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        serde_json::from_value(json!({"metadata": metadata})).ok()
    }
}

/// How objects of a kind are read and kept.
pub(crate) trait Kept: Sized {
    /// What the reading needs to know besides the object.
    type Fields: Send + Sync + 'static;

    /// Reads an object, and keeps so many bytes of it at most.
    ///
    /// # Errors
    /// With the field and what is wrong with it.
    fn read(json: &str, fields: &Self::Fields, bytes: usize) -> Result<Taken<Self>, String>;

    /// The least that must be kept, for objects that count even where there is no room for more.
    fn outline(&self) -> Option<Self> {
        None
    }
}

impl Kept for DynamicObject {
    type Fields = Mask;

    fn read(json: &str, mask: &Mask, bytes: usize) -> Result<Taken<Self>, String> {
        project(json, mask, bytes)
    }
}

impl Kept for Pod {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Taken<Self>, String> {
        let pod: Self = typed(json)?;
        let size = size_of(&pod);
        if size <= bytes {
            return Ok(Taken { object: pod, cost: cost(size) });
        }
        match pod.outline() {
            Some(outline) => Ok(Taken { cost: cost(size_of(&outline)), object: outline }),
            None => Err(too_large(size, bytes)),
        }
    }

    /// A pod on a node takes of that node, whatever else is odd about it.
    fn outline(&self) -> Option<Self> {
        (self.node().is_some() && !self.is_over()).then(|| self.without_wishes())
    }
}

impl Kept for Node {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Taken<Self>, String> {
        bounded(typed(json)?, bytes)
    }
}

impl Kept for NodeClaim {
    type Fields = ();

    fn read(json: &str, (): &(), bytes: usize) -> Result<Taken<Self>, String> {
        bounded(typed(json)?, bytes)
    }
}

fn typed<K: serde::de::DeserializeOwned>(json: &str) -> Result<K, String> {
    serde_json::from_str(json).map_err(|error| format!("cannot be read: {error}"))
}

fn bounded<K: Serialize>(object: K, bytes: usize) -> Result<Taken<K>, String> {
    match size_of(&object) {
        size if size > bytes => Err(too_large(size, bytes)),
        size => Ok(Taken { object, cost: cost(size) }),
    }
}

fn too_large(size: usize, bytes: usize) -> String {
    format!(
        "the fields that are read have {size} bytes, and {bytes} is the most that is kept of one object"
    )
}

/// Memory of an object that has so many bytes as JSON: names of fields cost nothing, and texts an allocation each.
fn cost(size: usize) -> usize {
    1_024 + 3 * size
}

/// Bytes of an object as JSON, without writing them anywhere.
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
