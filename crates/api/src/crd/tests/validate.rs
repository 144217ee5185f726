//! Validates an object against its schema as an API server does, except CEL rules: enough for the examples.

use std::collections::HashSet;

use regex::Regex;
use serde_json::{Value, json};

use crate::crd::tests::schema_of;
use crate::crd::values::amount::Amount;
use crate::crd::values::duration::Duration;
use crate::crd::values::text::Name;

/// All violations of a value, each with its path.
pub(crate) fn wrong(schema: &Value, value: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    check(schema, value, "", &mut findings);
    findings
}

fn check(schema: &Value, value: &Value, path: &str, findings: &mut Vec<String>) {
    let mut wrong = |what: &str| findings.push(format!("{path}: {what}"));
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let right = match schema["type"].as_str() {
        None => int_or_string && (value.is_string() || value.is_i64() || value.is_u64()),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some(other) => panic!("{path}: no type of JSON: {other}"),
    };
    if !right {
        return wrong(&format!("is of another type: {value}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        wrong(&format!("is none of the words: {value}"));
    }
    if let Some(number) = value.as_f64() {
        let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        let open = schema["exclusiveMinimum"] == true;
        let low = least.is_some_and(|least| number < least || (open && number <= least));
        if low || most.is_some_and(|most| number > most) {
            wrong(&format!("is out of range: {number}"));
        }
    }
    let size = match value {
        Value::String(text) => Some(("Length", text.chars().count())),
        Value::Array(items) => Some(("Items", items.len())),
        Value::Object(fields) => Some(("Properties", fields.len())),
        _ => None,
    };
    if let Some((what, size)) = size {
        let bound = |side: &str| schema[format!("{side}{what}")].as_u64();
        let size = size as u64;
        if bound("min").is_some_and(|min| size < min) || bound("max").is_some_and(|max| size > max)
        {
            wrong(&format!("has a size of {size}"));
        }
    }
    match value {
        Value::String(text) => {
            let pattern = schema["pattern"].as_str().map(|pattern| Regex::new(pattern).unwrap());
            if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
                wrong(&format!("does not match: {text}"));
            }
        }
        Value::Array(items) => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let key = |item: &Value| {
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                keys.map(|key| item[key].to_string()).collect::<Vec<_>>()
            };
            let distinct: HashSet<_> = items.iter().map(key).collect();
            if keys.is_some() && distinct.len() < items.len() {
                wrong("has the same key twice");
            }
            for (index, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{index}]"), findings);
            }
        }
        Value::Object(_) => fields(schema, value, path, findings),
        _ => {}
    }
}

fn fields(schema: &Value, value: &Value, path: &str, findings: &mut Vec<String>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            findings.push(format!("{path}.{name}: is missing"));
        }
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let known = schema["properties"].get(name).or(schema.get("additionalProperties"));
        match known {
            Some(inner) => check(inner, value, &path, findings),
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
            None => findings.push(format!("{path}: is unknown")),
        }
    }
}

#[test]
fn violations_are_found() {
    let name = schema_of::<Name>();
    assert_eq!(wrong(&name, &json!("gpu-1.eu")), [""; 0]);
    for bad in [json!(5), json!("Bad"), json!("a".repeat(254))] {
        assert_eq!(wrong(&name, &bad).len(), 1, "{bad}");
    }
    let (amount, duration) = (schema_of::<Amount>(), schema_of::<Duration>());
    assert_eq!(wrong(&amount, &json!(8)), [""; 0]);
    assert_eq!(wrong(&amount, &json!(-8)), [": is out of range: -8"]);
    assert_eq!(wrong(&amount, &json!(0.5)), [": is of another type: 0.5"]);
    assert_eq!(wrong(&duration, &json!("0.5h")), [": does not match: 0.5h"]);
}
