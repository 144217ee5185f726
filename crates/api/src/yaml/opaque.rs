//! Values that are stored without being interpreted, such as pod templates.
//!
//! Scalars get the types of YAML's core schema, so that `8` is a number to the final reader.

use serde_json::{Map, Number, Value as Json};

use crate::yaml::fields::Fields;
use crate::yaml::tree::{Content, Node};
use crate::yaml::value::kind_of;

/// A mapping as written. Keys that are given twice are reported.
pub(crate) fn mapping(fields: Fields<'_>) -> Map<String, Json> {
    let pairs = fields.into_pairs();
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.opaque())).collect()
}

/// Any value as written. Of a nested key that is given twice, the last counts.
pub(crate) fn json(node: &Node<'_>) -> Json {
    match &node.content {
        Content::Null => Json::Null,
        Content::Quoted(text) => Json::String(text.to_string()),
        Content::Plain(text) => scalar(text),
        Content::List(items) => items.iter().map(json).collect(),
        Content::Map(entries) => {
            entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect()
        }
    }
}

/// The value of an unquoted scalar; the text itself where JSON has no such value, such as infinity.
fn scalar(text: &str) -> Json {
    let number = || {
        let whole = text.strip_prefix('+').unwrap_or(text).parse::<i64>().map(Number::from);
        whole.ok().or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
    };
    match kind_of(text) {
        "boolean" => Json::Bool(text.eq_ignore_ascii_case("true")),
        "number" => number().map_or_else(|| Json::String(text.into()), Json::Number),
        _ => Json::String(text.into()),
    }
}
