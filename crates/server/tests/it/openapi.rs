//! The committed OpenAPI document.

use std::path::Path;

use serde_json::Value;

use crate::client::start;

#[tokio::test]
async fn committed_openapi_document_is_the_served_one() {
    let server = start(|_| {}).await;
    let served = server.get("/openapi.json").await.text;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != served {
        std::fs::write(&path, &served).unwrap();
        panic!("docs/openapi.json was out of date, and is written anew: commit it");
    }
}

/// Every `$ref` in the document, and its position.
fn references(at: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(to) if name == "$ref" => found.push((at.to_owned(), to.to_owned())),
                    _ => references(&format!("{at}/{name}"), value, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                references(&format!("{at}/{index}"), value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_reference_resolves() {
    let document = muster_server::openapi();
    let mut found = Vec::new();
    references("", &document, &mut found);
    assert!(found.len() > 100);
    for (at, to) in found {
        let target = to.strip_prefix('#').and_then(|path| document.pointer(path));
        assert!(target.is_some(), "{at} points to {to}, which is not there");
    }
}

#[test]
fn every_parameter_is_described_and_schema_names_are_unique() {
    let document = muster_server::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().unwrap() {
                let told = parameter["in"] == "path" || parameter["description"].is_string();
                assert!(told, "{path}: {parameter}");
            }
        }
    }
    // Two types with one name get a number appended, which readers cannot interpret.
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(!name.ends_with(|last: char| last.is_ascii_digit()), "{name}");
    }
}
