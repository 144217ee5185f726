//! Estimates the size of a value: as JSON, and in memory.

use serde_json::Value;

/// Bytes of a value as JSON, about.
pub(crate) fn text_bytes(value: &Value) -> usize {
    const SIGNS: usize = 8;
    SIGNS
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(text_bytes).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum()
            }
        }
}

/// Bytes of memory of a value, about. A map allocates room for eleven fields at a time, however few it has.
pub fn weight(value: &Value) -> usize {
    const NODE: usize = 32;
    const FIELDS: usize = 640;
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            let room = fields.len().div_ceil(8) * FIELDS;
            fields.iter().fold(room, |sum, (name, value)| sum + name.len() + weight(value) - NODE)
        }
    }
}
