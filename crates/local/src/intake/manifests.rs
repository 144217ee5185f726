//! Reads manifest files and texts: Muster's own kinds, and other systems' workloads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use muster_api::{Finding, PoolManifest, foreign, read_alone, workloads};
use muster_core::node::NodeSpec;
use muster_core::queue::QueueSpec;
use muster_core::topology::Levels;
use muster_plan::Policy;
use muster_testkit::promises::Terms;
use serde_json::Value;

use crate::intake::record::Record;
use crate::intake::workload;

/// The content of manifests.
#[derive(Debug)]
pub struct Intake {
    pub(crate) levels: Levels,
    pub(crate) queues: Vec<(QueueSpec, Value)>,
    pub(crate) pools: Vec<(PoolManifest, Value)>,
    pub(crate) nodes: Vec<(NodeSpec, Value)>,
    pub(crate) gangs: Vec<Record>,
}

impl Intake {
    /// The names of its gangs.
    pub fn gangs(&self) -> impl Iterator<Item = &str> {
        self.gangs.iter().map(|gang| &*gang.spec.name)
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { levels, queues, pools, nodes, gangs } = self;
        let others = queues.is_empty() && pools.is_empty() && nodes.is_empty();
        others && gangs.is_empty() && *levels == Levels::default()
    }

    /// What a checker of the promises must know beforehand.
    pub fn terms(&self, policy: &Policy) -> Terms {
        let mut queues: Vec<QueueSpec> = vec![QueueSpec::open("default")];
        queues.extend(self.queues.iter().map(|(queue, _)| queue.clone()));
        Terms {
            queues,
            pools: self.pools.iter().map(|(pool, _)| pool.spec.clone()).collect(),
            avoid_at_least: policy.avoid_base,
            first_come_first_served: false,
            starts_are_firm: false,
        }
    }

    /// Whether it has pools.
    pub fn has_pools(&self) -> bool {
        !self.pools.is_empty()
    }

    /// Whether it has nodes, or pools that can buy some.
    pub fn has_nodes(&self) -> bool {
        !self.nodes.is_empty() || self.has_pools()
    }

    fn and(&mut self, other: Self) {
        let Self { levels, queues, pools, nodes, gangs } = other;
        if levels != Levels::default() {
            self.levels = levels;
        }
        self.queues.extend(queues);
        self.pools.extend(pools);
        self.nodes.extend(nodes);
        self.gangs.extend(gangs);
    }
}

/// Reads manifests from files, all or none.
///
/// # Errors
/// With all findings in all files.
pub fn read_files(files: &[std::path::PathBuf]) -> Result<Intake, Vec<Finding>> {
    let (levels, queues) = (Levels::default(), Vec::new());
    let mut all =
        Intake { levels, queues, pools: Vec::new(), nodes: Vec::new(), gangs: Vec::new() };
    let mut findings = Vec::new();
    for path in files {
        let file = path.display().to_string();
        // The reader of Muster's own manifests reports what is wrong with the file.
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(_) => match muster_api::read_files(std::slice::from_ref(path)) {
                Ok(_) => continue,
                Err(found) => {
                    findings.extend(found);
                    continue;
                }
            },
        };
        match read(&file, &text) {
            Ok(intake) => all.and(intake),
            Err(found) => findings.extend(found),
        }
    }
    if findings.is_empty() { Ok(all) } else { Err(findings) }
}

/// Checks manifest files together: one may refer to an object in another. Also counts the workloads of other systems.
///
/// # Errors
/// With all findings in all files.
pub fn check_files(
    files: &[std::path::PathBuf],
) -> Result<(muster_api::Manifests, usize), Vec<Finding>> {
    let is_workload = |object: &Value| kind_of(object).is_some();
    let mut texts: Vec<(String, String)> = Vec::new();
    let (mut workloads, mut findings) = (0, Vec::new());
    for path in files {
        let file = path.display().to_string();
        let Ok(text) = std::fs::read_to_string(path) else {
            // The reader of Muster's own manifests reports what is wrong with the file.
            findings.extend(
                muster_api::read_files(std::slice::from_ref(path)).err().into_iter().flatten(),
            );
            continue;
        };
        let objects = foreign(&file, &text).unwrap_or_default();
        let own = objects.iter().filter(|object| !is_workload(object)).count();
        if own > 0 || objects.is_empty() {
            texts.push((file.clone(), without_documents(&file, &text, is_workload)));
        }
        for object in objects.iter().filter(|object| is_workload(object)) {
            workloads += 1;
            findings.extend(workload::record(&file, object).err());
        }
    }
    let read = match (workloads, texts.is_empty()) {
        (0, _) => muster_api::read_files(files),
        (_, true) => read_alone("nothing", NOTHING),
        (_, false) => muster_api::read_texts(&texts),
    };
    match read {
        Ok(manifests) if findings.is_empty() => Ok((manifests, workloads)),
        Ok(_) => Err(findings),
        Err(found) if workloads == 0 => Err(found),
        Err(found) => {
            findings.extend(found);
            Err(findings)
        }
    }
}

/// Reads manifests, all or none.
pub(crate) fn read(file: &str, text: &str) -> Result<Intake, Vec<Finding>> {
    read_objects(file, text, &foreign(file, text)?)
}

/// The same for a text whose objects are parsed already.
pub(crate) fn read_objects(
    file: &str,
    text: &str,
    objects: &[Value],
) -> Result<Intake, Vec<Finding>> {
    let is_workload = |object: &Value| kind_of(object).is_some();
    let own = match objects.iter().any(is_workload) {
        true => Cow::Owned(without_documents(file, text, is_workload)),
        false => Cow::Borrowed(text),
    };
    let nothing = objects.iter().all(is_workload) && !objects.is_empty();
    // A text with workloads only has nothing for Muster's own reader.
    let (manifests, first) = match nothing {
        true => (read_alone(file, NOTHING)?, None),
        false => (read_alone(file, &own)?, Some(())),
    };
    let written = Written::of(objects);
    let named = |kind: &str, name: &str| written.find(kind, name).cloned();
    let queues = manifests.queues.into_iter().filter(|_| first.is_some());
    let queues = queues.filter_map(|queue| Some((queue.clone(), named("Queue", &queue.name)?)));
    let queues = queues.collect();
    let pool = |pool: PoolManifest| {
        let object = named("Pool", &pool.spec.name).unwrap_or_default();
        (pool, object)
    };
    let pools = manifests.pools.into_iter().map(pool).collect();
    let node = |node: NodeSpec| {
        let object = named("Node", &node.name).unwrap_or_default();
        (node, object)
    };
    let nodes = manifests.nodes.into_iter().map(node).collect();
    let gang = |gang: muster_api::GangManifest| {
        let object = written.find("Gang", &gang.spec.name).unwrap_or(&Value::Null);
        Record::of_gang(gang, object)
    };
    let mut gangs: Vec<Record> = manifests.gangs.into_iter().map(gang).collect();
    let mut findings = Vec::new();
    for object in objects.iter().filter(|object| is_workload(object)) {
        match workload::record(file, object) {
            Ok(record) => gangs.push(record),
            Err(finding) => findings.push(finding),
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    for warning in manifests.warnings {
        if let Some(gang) = gangs.iter_mut().find(|gang| !gang.is_workload()) {
            gang.warnings.push(warning.to_string());
        }
    }
    Ok(Intake { levels: manifests.levels, queues, pools, nodes, gangs })
}

/// An object without effect, for a reader that requires one.
const NOTHING: &str = "kind: Queue\nmetadata: {name: default}\nspec: {}\n";

pub(super) fn kind_of(object: &Value) -> Option<workloads::WorkloadKind> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    workloads::kind_of(text("apiVersion")?, text("kind")?)
}

/// Objects as submitted, by kind and name.
struct Written<'o>(BTreeMap<(&'o str, String), &'o Value>);

impl<'o> Written<'o> {
    fn of(objects: &'o [Value]) -> Self {
        let entry = |object: &'o Value| {
            let kind = object.get("kind")?.as_str()?;
            let name = object.pointer("/metadata/name")?.as_str()?;
            let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
            let name = match kind {
                "Gang" => format!("{}/{name}", namespace.unwrap_or("default")),
                _ => name.to_owned(),
            };
            Some(((kind, name), object))
        };
        Self(objects.iter().filter_map(entry).collect())
    }

    fn find(&self, kind: &str, name: &str) -> Option<&'o Value> {
        self.0.get(&(kind, name.to_owned())).copied()
    }
}

/// The text with some documents blanked, so that all others keep their lines.
fn without_documents(file: &str, text: &str, unwanted: impl Fn(&Value) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut document: Vec<&str> = Vec::new();
    let mut flush = |document: &mut Vec<&str>| {
        let whole: String = document.concat();
        let read = foreign(file, &whole).unwrap_or_default();
        let blank = !read.is_empty() && read.iter().all(&unwanted);
        for line in document.drain(..) {
            kept.push_str(if blank { "\n" } else { line });
        }
    };
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            flush(&mut document);
        }
        document.push(line);
    }
    flush(&mut document);
    kept
}

/// The full name of a gang: `namespace/name`.
pub(crate) fn full_name(namespace: &str, name: &str) -> Arc<str> {
    format!("{namespace}/{name}").into()
}
