//! Converts a request body to the manifest text that the host reads.
//!
//! JSON is YAML but for two things: a list of objects is not a list of documents, and characters beyond the basic plane
//! may be written as surrogate pairs. Both are rewritten here; everything else reaches the host unchanged, so that the
//! lines in its findings are those of the client.

use axum::http::{HeaderMap, header};
use muster_api::count_values;
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};

/// Content types that are read as YAML.
const YAML: [&str; 4] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];
const JSON: &str = "application/json";

/// The content type of a body, without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or("?");
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// The manifest text of a body, if it has no more than `most` values. Without a content type the body is read as YAML.
pub(crate) fn manifests(headers: &HeaderMap, body: &[u8], most: usize) -> Result<String, ApiError> {
    let text = || match std::str::from_utf8(body) {
        Ok(text) if count_values(text, most) > most => Err(ApiError::new(
            ErrorCode::TooLarge,
            format!("the manifests hold more than {most} values: send them in parts"),
        )),
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(ApiError::bad_request("the body is not UTF-8 text")),
    };
    match content_type(headers) {
        None => text(),
        Some(kind) if YAML.contains(&kind.as_str()) => text(),
        Some(kind) if kind == JSON => from_json(text()?),
        Some(kind) => Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            format!("manifests are read as application/yaml or application/json, not as {kind}"),
        )),
    }
}

fn from_json(text: String) -> Result<String, ApiError> {
    let read: Value = serde_json::from_str(&text)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    let in_halves = text.contains("\\ud") || text.contains("\\uD");
    match read {
        Value::Array(items) => Ok(documents(&items)),
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
            match list.remove("items") {
                Some(Value::Array(items)) => Ok(documents(&items)),
                _ => Err(ApiError::bad_request("a List needs `items`, which is a list")),
            }
        }
        single if in_halves => Ok(documents(&[single])),
        _ => Ok(text),
    }
}

/// One document per line, so that a finding's line is the number of the item.
fn documents(items: &[Value]) -> String {
    items.iter().map(|item| format!("--- {item}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, body: &str) -> Result<String, ApiError> {
        let headers = [(header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect();
        manifests(&headers, body.as_bytes(), 100)
    }

    #[test]
    fn json_list_becomes_documents_with_the_item_number_as_line() {
        let queue =
            |name| format!(r#"{{"kind":"Queue","metadata":{{"name":"{name}"}},"spec":{{}}}}"#);
        let list = format!("[{},\n\n{}, {}]", queue("a"), queue("b"), r#"{"kind":"Quoue"}"#);
        let text = read("application/json; charset=utf-8", &list).unwrap();
        let findings = muster_api::read_texts(&[("body", &text)]).unwrap_err();
        assert_eq!(findings[0].line, 3, "{findings:?}");
        let good = format!(r#"{{"kind":"List","items":[{},{}]}}"#, queue("a"), queue("b"));
        let text = read("application/json", &good).unwrap();
        // The default queue always exists.
        assert_eq!(muster_api::read_texts(&[("body", &text)]).unwrap().queues.len(), 3);
    }

    #[test]
    fn surrogate_pairs_become_characters() {
        let text = read("application/json", r#"{"a": "\ud83d\ude00"}"#).unwrap();
        assert_eq!(text, "--- {\"a\":\"\u{1f600}\"}\n");
    }

    #[test]
    fn too_many_values_are_refused_in_yaml_and_json() {
        for (kind, item) in [("text/yaml", "{a: b},"), ("application/json", "{\"a\":[]},")] {
            let list = |times: usize| format!("[{}{{}}]", item.repeat(times));
            assert!(read(kind, &list(32)).is_ok(), "{kind}: 98 values");
            assert_eq!(read(kind, &list(33)).unwrap_err().code, ErrorCode::TooLarge, "{kind}: 101");
        }
        let documents = "--- {}\n".repeat(101);
        assert_eq!(read("text/yaml", &documents).unwrap_err().code, ErrorCode::TooLarge);
    }

    #[test]
    fn unsupported_content_types_are_refused() {
        let refused = |kind, body| read(kind, body).unwrap_err().code;
        assert_eq!(
            refused("application/x-www-form-urlencoded", "a"),
            ErrorCode::UnsupportedMediaType
        );
        assert_eq!(refused("application/json", "a: 1"), ErrorCode::BadRequest);
        assert_eq!(refused("application/json", r#"{"kind": "List"}"#), ErrorCode::BadRequest);
        assert_eq!(
            manifests(&HeaderMap::new(), b"\xff", 100).unwrap_err().code,
            ErrorCode::BadRequest
        );
        assert_eq!(read("text/yaml", "a: 1").unwrap(), "a: 1");
    }
}
