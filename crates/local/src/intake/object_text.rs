//! An object as submitted, kept as text.
//!
//! Parsed, it takes ten to a hundred times as much memory, and it is parsed only when its gang is published.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One object as JSON. Its fields are sorted, so that equal objects have equal texts.
#[derive(Clone, Debug)]
pub(crate) struct ObjectText {
    json: Arc<RawValue>,
    /// Known without parsing the text again.
    kind: Option<Arc<str>>,
}

impl ObjectText {
    /// The length of the text.
    pub(crate) fn bytes(&self) -> usize {
        self.json.get().len()
    }

    /// Whether it is a Gang.
    pub(crate) fn is_gang(&self) -> bool {
        self.kind() == Some("Gang")
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// The parsed object.
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
        // Parsed and written anew: a text from an older version may have another order of fields.
        Value::deserialize(deserializer).map(|object| Self::from(&object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_object_is_equal_whatever_the_order_of_its_fields() {
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
