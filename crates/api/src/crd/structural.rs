//! Rewrites derived JSON Schema into the structural subset that Kubernetes accepts.
//!
//! In a structural schema every value has one type, nothing is nullable because it may be absent instead, and
//! alternatives of shape (`anyOf`, `oneOf`) do not exist.

use serde_json::{Map, Value};

/// Rewrites a schema and all schemas in it.
pub(crate) fn structural(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for noise in ["$schema", "title", "examples"] {
        fields.remove(noise);
    }
    absent_not_null(fields);
    one_of_words(fields);
    widths(fields);
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(structural);
    }
    for inner in ["items", "additionalProperties"] {
        fields.get_mut(inner).into_iter().for_each(structural);
    }
}

/// Makes nullable values optional ones.
fn absent_not_null(fields: &mut Map<String, Value>) {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(mut shapes)) = fields.remove("anyOf") {
        shapes.retain(|shape| !is_null(shape));
        let [Value::Object(shape)] = shapes.as_mut_slice() else {
            panic!("a value has several shapes, and none can be spoken of: {shapes:?}");
        };
        for (key, value) in std::mem::take(shape) {
            fields.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        let kind = types.swap_remove(0);
        fields.insert("type".into(), kind);
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
}

/// Turns alternatives of described constants into an `enum`, with their descriptions appended to that of the field.
fn one_of_words(fields: &mut Map<String, Value>) {
    let Some(Value::Array(words)) = fields.remove("oneOf") else { return };
    let mut meanings = String::new();
    for word in &words {
        if let (Some(name), Some(meaning)) = (word["const"].as_str(), word["description"].as_str())
        {
            meanings.push_str(&format!(" `{name}`: {meaning}"));
        }
    }
    let words: Vec<Value> = words.iter().map(|word| word["const"].clone()).collect();
    assert!(words.iter().all(Value::is_string), "words are texts: {words:?}");
    fields.insert("type".into(), "string".into());
    fields.insert("enum".into(), words.into());
    if let Some(Value::String(text)) = fields.get_mut("description") {
        text.push_str(&meanings);
    }
}

/// API servers have no unsigned integers: a field that is never negative gets a minimum and the next wider signed
/// format.
fn widths(fields: &mut Map<String, Value>) {
    let wider = match fields.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "int8" | "int16") => "int32",
        Some("uint32") => {
            fields.entry("maximum").or_insert(u32::MAX.into());
            "int64"
        }
        _ => return,
    };
    fields.insert("format".into(), wider.into());
}
