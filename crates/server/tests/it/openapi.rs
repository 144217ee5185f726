//! The OpenAPI document, as it is committed.

use std::path::Path;

use serde_json::Value;

use crate::client::start;

#[tokio::test]
async fn the_committed_document_is_the_one_that_is_served() {
    let server = start(|_| {}).await;
    let served = server.get("/openapi.json").await.text;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != served {
        std::fs::write(&path, &served).unwrap();
        panic!("docs/openapi.json was out of date, and is written anew: commit it");
    }
}

/// Every reference in the document, and where it is.
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
fn every_reference_leads_somewhere() {
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
fn every_parameter_is_described_and_no_schema_has_a_number_for_a_name() {
    let document = muster_server::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().unwrap() {
                let told = parameter["in"] == "path" || parameter["description"].is_string();
                assert!(told, "{path}: {parameter}");
            }
        }
    }
    // Two types of one name are told apart by a number, which nobody understands.
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(!name.ends_with(|last: char| last.is_ascii_digit()), "{name}");
    }
}
