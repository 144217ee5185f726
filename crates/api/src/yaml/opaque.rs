//! Values that are kept and not looked into, such as pod templates.
//!
//! They become what YAML's core schema says they are, so that `8` is a number to whoever reads them in the end.

use serde_json::{Map, Number, Value as Json};

use crate::yaml::fields::Fields;
use crate::yaml::tree::{Content, Node};
use crate::yaml::value::kind_of;

/// A mapping as it was written. Keys that are given twice are complained about where they are.
pub(crate) fn mapping(fields: Fields<'_>) -> Map<String, Json> {
    let pairs = fields.into_pairs();
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.opaque())).collect()
}

/// Any value as it was written. Of a key that is given twice further down, the last counts.
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

/// What a text without quotes stands for; itself where no JSON can say what it stands for, such as infinity.
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
