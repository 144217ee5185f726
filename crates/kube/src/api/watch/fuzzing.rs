//! Entry points for fuzzing lists and watches with arbitrary bodies.
//!
//! Public only for the targets of `crates/fuzz`; the host does not use it.

use serde_json::Value;

use crate::api::watch::decode::{Decode, ObjectId};
use crate::api::watch::list_page::Items;
use crate::api::watch::list_watch::Line;
use crate::api::watch::watches::Bounds;
use crate::objects::fields::kept_of;
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;

/// Reads bytes as a page of a list. The items must be the same however the bytes are chunked, and the same that a JSON parser
/// finds; each is decoded or omitted by itself. `look` is called with every decoded pod.
///
/// # Panics
/// When one of these properties does not hold.
pub fn check_page(body: &[u8], mut look: impl FnMut(&mut Pod)) {
    let items = split(body, body.len().max(1));
    for chunk in [1, 7, 1_000] {
        assert_eq!(split(body, chunk), items, "read {chunk} bytes at a time");
    }
    let Ok(items) = items else { return };
    if let Some(expected) = plain_items(body) {
        let read: Result<Vec<Value>, _> =
            items.iter().map(|item| serde_json::from_slice(item)).collect();
        assert_eq!(read.ok().as_ref(), Some(&expected), "an item is lost or hides another");
    }
    let bounds = Bounds::default();
    for item in items {
        let json = String::from_utf8_lossy(&item);
        if let Some(mut pod) = check_item::<Pod>(&json, &bounds) {
            look(&mut pod);
        }
        check_item::<Node>(&json, &bounds);
        check_item::<NodeClaim>(&json, &bounds);
        if let Ok((_, cost)) = kept_of("muster.sh/v1alpha1", "Gang", &json, &bounds) {
            assert!(cost < 64 * bounds.object, "{cost} bytes are kept of {}", item.len());
        }
    }
}

/// Reads a line of a watch: a change, nothing where the line is cut off, or an error.
pub fn check_line(line: &str, mut look: impl FnMut(&mut Pod)) {
    let Ok(Some(line)) = Line::of(line) else { return };
    if let Some(mut pod) = check_item::<Pod>(line.object.get(), &Bounds::default()) {
        look(&mut pod);
    }
}

/// A decoded object is within its bound; an omitted one has a short reason.
fn check_item<K: Decode<Fields = ()>>(json: &str, bounds: &Bounds) -> Option<K> {
    match K::read(json, &(), bounds.object) {
        Ok(decoded) => Some(decoded.object),
        Err(why) => {
            let why = ObjectId::of(json).omitted(why, json.len()).why;
            assert!(!why.is_empty() && why.len() < 4_096, "{} bytes", why.len());
            None
        }
    }
}

fn split(body: &[u8], chunk: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut items = Items::new();
    let mut all = Vec::new();
    for bytes in body.chunks(chunk) {
        all.extend(items.feed(bytes).map_err(|error| error.to_string())?);
    }
    items.end().map_err(|error| error.to_string())?;
    Ok(all)
}

/// The items of a body that is plainly a list: JSON with one field `items`, without escapes.
fn plain_items(body: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(body).ok()?;
    if text.matches("items").count() != 1 || text.contains("\\u") {
        return None;
    }
    match serde_json::from_str::<Value>(text).ok()?.get_mut("items")?.take() {
        Value::Array(items) if items.iter().all(Value::is_object) => Some(items),
        _ => None,
    }
}
