//! Parses the manifests of requests: on separate threads, a few at a time, and one at a time per caller.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use muster_api::foreign;
use muster_server::{Caller, Refused};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use crate::intake::manifests;
use crate::intake::manifests::Intake;
use crate::system::threads::Threads;

/// Manifests parsed at once, of all callers.
const AT_ONCE: usize = 2;
/// Manifests up to this size are parsed in place.
const SMALL: usize = 4 << 10;
/// Maximum bytes of one object of an admin.
const OBJECT_BYTES: usize = 1 << 20;
/// Maximum bytes of one object of other callers: it is parsed, stored and sent whole whenever it changes.
const OBJECT_BYTES_USER: usize = 256 << 10;
/// Maximum nodes in the manifests of one request: one object may stand for many.
const NODES: u64 = 10_000;

/// The parser threads, and a lock per caller.
#[derive(Debug)]
pub(crate) struct Readers {
    threads: Threads,
    /// There are as many callers as tokens, so the map is bounded.
    each: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

impl Readers {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { threads: Threads::new("manifests", AT_ONCE)?, each: Mutex::default() })
    }

    /// Parses manifests, once a thread is free.
    pub(crate) fn read(
        &self,
        caller: &Caller,
        text: String,
    ) -> impl Future<Output = Result<Intake, Refused>> + Send + use<> {
        let mine = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            each.entry(caller.name.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        let threads = self.threads.clone();
        let most = if caller.is_admin() { OBJECT_BYTES } else { OBJECT_BYTES_USER };
        async move {
            if text.len() <= SMALL {
                return read(&text, most);
            }
            let ended = || Refused::Unavailable("the manifests cannot be read now".to_owned());
            let mine = mine.acquire_owned().await.map_err(|_| ended())?;
            let (told, heard) = oneshot::channel();
            threads.run(move || {
                let _mine = mine;
                // The client is gone.
                if !told.is_closed() {
                    let _ = told.send(read(&text, most));
                }
            });
            heard.await.map_err(|_| ended())?
        }
    }
}

/// Parses manifests whose objects are within the limit.
fn read(text: &str, most: usize) -> Result<Intake, Refused> {
    let objects = foreign("manifests", text).map_err(Refused::Findings)?;
    check(&objects, most)?;
    manifests::read_objects("manifests", text, &objects).map_err(Refused::Findings)
}

/// Checks the size of manifests, before anything is made of them.
fn check(objects: &[Value], most: usize) -> Result<(), Refused> {
    let mut nodes = 0u64;
    for object in objects {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let size = bytes(object);
        if size > most {
            let name: String = name.chars().filter(|sign| !sign.is_control()).take(80).collect();
            let kind: String = kind.chars().filter(|sign| !sign.is_control()).take(40).collect();
            return Err(Refused::Invalid(format!(
                "{kind} {name}: the object has {size} bytes, and {most} are taken at most"
            )));
        }
        if kind == "Node" {
            let count = object.pointer("/spec/count").and_then(Value::as_u64);
            nodes = nodes.saturating_add(count.unwrap_or(1));
        }
    }
    if nodes > NODES {
        let why = format!("{nodes} nodes are too many at once: {NODES} at most");
        return Err(Refused::Invalid(why));
    }
    Ok(())
}

/// Bytes of an object as JSON.
fn bytes(object: &Value) -> usize {
    serde_json::to_string(object).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_objects_and_too_many_nodes_are_refused_before_parsing() {
        let why = |text: &str| read(text, OBJECT_BYTES).expect_err("too much").to_string();
        let node = |name: &str, count: u32| {
            format!(
                "---\nkind: Node\nmetadata: {{name: {name}}}\nspec: {{count: {count}, allocatable: {{cpu: 1}}}}\n"
            )
        };
        let refused = why(&(node("a", 6_000) + &node("b", 6_000)));
        assert!(refused.contains("12000 nodes are too many"), "{refused}");
        assert_eq!(read(&node("a", 10), OBJECT_BYTES).expect("few").nodes.len(), 10);
        let gang = format!(
            "kind: Gang\nmetadata: {{name: g}}\nspec: {{roles: [{{name: w, min: 1, run: {{command: [a], env: {{X: '{}'}}}}}}]}}\n",
            "x".repeat(OBJECT_BYTES)
        );
        let refused = why(&gang);
        assert!(refused.starts_with("Gang g: the object has 1048"), "{refused}");
        let smaller = gang.replace(&"x".repeat(OBJECT_BYTES), &"x".repeat(OBJECT_BYTES_USER));
        assert!(read(&smaller, OBJECT_BYTES).is_ok() && read(&smaller, OBJECT_BYTES_USER).is_err());
    }
}
