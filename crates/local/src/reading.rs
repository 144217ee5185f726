//! Reads manifests of requests: beside the threads that answer, a few at a time, and one at a time for each caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use muster_api::foreign;
use muster_server::Refused;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::intake::{self, Intake};

/// Manifests that are read at once, of all callers.
const AT_ONCE: usize = 2;
/// Manifests of so many bytes are read on the spot.
const SMALL: usize = 4 << 10;
/// Bytes of one object, at most.
const OBJECT_BYTES: usize = 1 << 20;
/// Nodes in the manifests of one request, at most: one object may stand for many.
const NODES: u64 = 10_000;

/// Room to read manifests in.
#[derive(Debug)]
pub(crate) struct Readers {
    all: Arc<Semaphore>,
    /// There are as many callers as there are tokens, so this cannot grow without end.
    each: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

impl Default for Readers {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), each: Mutex::default() }
    }
}

impl Readers {
    /// Reads manifests, once there is room for that.
    pub(crate) fn read(
        &self,
        caller: &Arc<str>,
        text: String,
    ) -> impl Future<Output = Result<Intake, Refused>> + Send + use<> {
        let mine = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            each.entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        let all = self.all.clone();
        async move {
            if text.len() <= SMALL {
                return read(&text);
            }
            let busy = |_| Refused::Unavailable("no manifests are read any more".to_owned());
            let _mine = mine.acquire_owned().await.map_err(busy)?;
            let held = all.acquire_owned().await.map_err(busy)?;
            let task = tokio::task::spawn_blocking(move || {
                let _held = held;
                read(&text)
            });
            let ended = |error: tokio::task::JoinError| Refused::Unavailable(error.to_string());
            task.await.map_err(ended)?
        }
    }
}

fn read(text: &str) -> Result<Intake, Refused> {
    let objects = foreign("manifests", text).map_err(Refused::Findings)?;
    check(&objects)?;
    drop(objects);
    let mut intake = intake::read("manifests", text).map_err(Refused::Findings)?;
    for gang in &mut intake.gangs {
        gang.bytes = bytes(&gang.object);
    }
    Ok(intake)
}

/// Whether manifests are not too large once they are read: before anything is made of them.
fn check(objects: &[Value]) -> Result<(), Refused> {
    let mut nodes = 0u64;
    for object in objects {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let size = bytes(object);
        if size > OBJECT_BYTES {
            let name: String = name.chars().filter(|sign| !sign.is_control()).take(80).collect();
            let kind: String = kind.chars().filter(|sign| !sign.is_control()).take(40).collect();
            return Err(Refused::Invalid(format!(
                "{kind} {name}: the object has {size} bytes, and {OBJECT_BYTES} are taken at most"
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
    fn objects_that_are_too_large_and_too_many_nodes_are_refused_before_they_are_made() {
        let why = |text: &str| read(text).expect_err("too much").to_string();
        let node = |name: &str, count: u32| {
            format!(
                "---\nkind: Node\nmetadata: {{name: {name}}}\nspec: {{count: {count}, allocatable: {{cpu: 1}}}}\n"
            )
        };
        let refused = why(&(node("a", 6_000) + &node("b", 6_000)));
        assert!(refused.contains("12000 nodes are too many"), "{refused}");
        assert_eq!(read(&node("a", 10)).expect("few").nodes.len(), 10);
        let gang = format!(
            "kind: Gang\nmetadata: {{name: g}}\nspec: {{roles: [{{name: w, min: 1, run: {{command: [a], env: {{X: '{}'}}}}}}]}}\n",
            "x".repeat(OBJECT_BYTES)
        );
        let refused = why(&gang);
        assert!(refused.starts_with("Gang g: the object has 1048"), "{refused}");
    }
}
