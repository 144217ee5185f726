//! Foreign manifests as JSON values, for hosts that read them from files: on a cluster the API server does this.

use serde_json::{Map, Number, Value as Json};

use crate::read::finding::{Finding, Position, Sink, sort};
use crate::yaml::tree::{Content, Documents, Node};
use crate::yaml::value::kind_of;

/// The objects of a text of YAML documents, of any kind, or where it is not YAML.
pub fn foreign(file: &str, text: &str) -> Result<Vec<Json>, Vec<Finding>> {
    let sink = Sink::new(file);
    let mut objects = Vec::new();
    for document in Documents::new(text) {
        match document {
            Ok(node) if matches!(node.content, Content::Null) => {}
            Ok(node) => objects.push(data(node, &sink)),
            Err((at, error)) => sink.file_error(at, error.to_string()),
        }
    }
    let mut findings = sink.into_findings();
    sort(&mut findings);
    if findings.is_empty() { Ok(objects) } else { Err(findings) }
}

/// A tree without its positions. The reader bounds its depth, so recursion is safe.
fn data(node: Node<'_>, sink: &Sink) -> Json {
    match node.content {
        Content::Null => Json::Null,
        Content::Quoted(text) => Json::String(text.into_owned()),
        Content::Plain(text) => scalar(&text),
        Content::List(items) => items.into_iter().map(|item| data(item, sink)).collect(),
        Content::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                let (key, at) = (entry.key.into_owned(), entry.at);
                if map.contains_key(&key) {
                    twice(sink, at, &key);
                }
                map.insert(key, data(entry.value, sink));
            }
            Json::Object(map)
        }
    }
}

fn twice(sink: &Sink, at: Position, key: &str) {
    sink.push(sink.mark(at, key.to_owned()).error("is given twice"));
}

/// An unquoted scalar: a number or a boolean where YAML reads one, else text.
fn scalar(text: &str) -> Json {
    let number = || {
        let whole = text.parse::<i64>().ok().map(Number::from);
        whole.or_else(|| text.parse::<u64>().ok().map(Number::from))
    };
    match kind_of(text) {
        "boolean" => Json::Bool(text.eq_ignore_ascii_case("true")),
        "number" => number()
            .or_else(|| text.parse().ok().and_then(Number::from_f64))
            .map_or_else(|| Json::String(text.to_owned()), Json::Number),
        _ => Json::String(text.to_owned()),
    }
}
