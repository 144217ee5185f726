//! An object as it was written, kept as text.
//!
//! Read into maps it takes ten to a hundred times as much memory, and it is read only when its gang is shown.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One object as JSON. Fields are in order, so that equal objects are equal texts.
#[derive(Clone, Debug)]
pub(crate) struct ObjectText {
    json: Arc<RawValue>,
    /// Known without reading all of it again.
    kind: Option<Arc<str>>,
}

impl ObjectText {
    /// The length of the text.
    pub(crate) fn bytes(&self) -> usize {
        self.json.get().len()
    }

    /// Whether it is of Muster's own kind.
    pub(crate) fn is_gang(&self) -> bool {
        self.kind() == Some("Gang")
    }

    /// What it says that it is.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// The object, read.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.json.get()).unwrap_or_default()
    }
}

impl From<&Value> for ObjectText {
    fn from(object: &Value) -> Self {
        let kind = object.get("kind").and_then(Value::as_str).map(Arc::from);
        let json = serde_json::value::to_raw_value(object).unwrap_or_default();
        Self { json: json.into(), kind }
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        self.json.get() == other.json.get()
    }
}

impl Serialize for ObjectText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObjectText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Read whole and written anew: what an older version stored may have its fields in another order.
        Value::deserialize(deserializer).map(|object| Self::from(&object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_object_is_the_same_whatever_the_order_of_its_fields() {
        let object = json!({"kind": "Gang", "spec": {"b": [1, 2.5, null], "a": "\u{1f600}"}});
        let text = ObjectText::from(&object);
        assert_eq!((text.value(), text.is_gang()), (object, true));
        let stored = serde_json::to_string(&text).unwrap();
        assert_eq!(stored.len(), text.bytes());
        assert_eq!(serde_json::from_str::<ObjectText>(&stored).unwrap(), text);
        let other = r#"{"spec": {"a": "😀", "b": [1, 2.5, null]}, "kind": "Gang"}"#;
        assert_eq!(serde_json::from_str::<ObjectText>(other).unwrap(), text);
        assert_ne!(ObjectText::from(&json!({"kind": "Job"})), text);
        assert!(!ObjectText::from(&json!({"kind": "Job"})).is_gang());
    }
}
