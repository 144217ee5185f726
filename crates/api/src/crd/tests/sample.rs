//! Sample objects in which every field of a schema is set.

use regex::Regex;
use serde_json::{Value, json};

/// The number of sample objects per kind: of exclusive fields, each is set in at least one of them.
pub(crate) const VARIANTS: usize = 4;

/// Sample texts; a field gets the first that its pattern accepts: a level, a duration, a GPU, an instant, an offering.
const TEXTS: [&str; 5] = ["rack", "2h", "nvidia.com/gpu", "2026-12-01T08:00:00Z", "a/b/c"];

/// Fields whose schema is too weak to choose a text, or whose value must refer to something.
const NAMED: [(&str, &str); 3] =
    [("cron", "0 8 * * 1-5"), ("parent", "default"), ("label", "example.com/rack")];

/// Fields that exclude each other by a CEL rule: one of them is omitted.
const EXCLUSIVE: [[&str; 2]; 2] = [["priority", "priorityClassName"], ["node", "claim"]];

/// An object with every field of `properties`, or with one of them where only one is allowed.
pub(crate) fn object(schema: &Value, variant: usize) -> Value {
    let Some(properties) = schema["properties"].as_object() else { return json!({}) };
    let only_one = schema["maxProperties"] == 1;
    let one = properties.keys().nth(variant % properties.len());
    let pairs =
        EXCLUSIVE.iter().filter(|pair| pair.iter().all(|name| properties.contains_key(*name)));
    let left_out: Vec<&str> = pairs.map(|pair| pair[variant % 2]).collect();
    properties
        .iter()
        .filter(|(name, _)| !only_one || one == Some(*name))
        .filter(|(name, _)| !left_out.contains(&name.as_str()))
        .map(|(name, schema)| (name.clone(), field(name, schema, variant)))
        .collect()
}

fn field(name: &str, schema: &Value, variant: usize) -> Value {
    match NAMED.iter().find(|(named, _)| *named == name) {
        Some((_, text)) => json!(text),
        None => value(schema, variant),
    }
}

fn value(schema: &Value, variant: usize) -> Value {
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("1");
    }
    match schema["type"].as_str().expect("a type") {
        "object" if schema["x-kubernetes-preserve-unknown-fields"] == true => json!({"spec": {}}),
        "object" if schema.get("additionalProperties").is_some() => {
            let inner = value(&schema["additionalProperties"], variant);
            json!({ "cpu": inner, "nvidia.com/gpu": inner })
        }
        "object" => object(schema, variant),
        "array" => json!([value(&schema["items"], variant)]),
        "integer" => json!(1),
        "number" => json!(1.0),
        "boolean" => json!(true),
        _ if schema["format"] == "date-time" => json!("2026-12-01T08:00:00Z"),
        _ => {
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            let pattern = Regex::new(pattern).expect("a pattern");
            json!(TEXTS.iter().find(|text| pattern.is_match(text)).expect("a text that fits"))
        }
    }
}
