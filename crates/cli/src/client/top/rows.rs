//! The texts of the live view.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use muster_api::figures::count;
use muster_core::time::Time;
use muster_server::Kind;
use serde_json::Value;

use crate::client::follow::view::View;
use crate::client::output::age;
use crate::client::output::columns::{node_gpus, of, phase, ready, text, words};

/// Everything that is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) heading: String,
    pub(crate) nodes: Vec<NodeRow>,
    pub(crate) queues: Vec<Vec<String>>,
    pub(crate) gangs: Vec<GangRow>,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NodeRow {
    pub(crate) name: String,
    pub(crate) pool: String,
    pub(crate) ready: bool,
    /// `8 x H100`.
    pub(crate) kind: String,
    /// A box for each GPU, full where the GPU is in use.
    pub(crate) boxes: String,
    pub(crate) gangs: String,
}

/// One gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GangRow {
    pub(crate) name: String,
    pub(crate) phase: String,
    pub(crate) ready: String,
    pub(crate) queue: String,
    /// How long it has run or waited, or how long ago it ended.
    pub(crate) time: String,
    pub(crate) message: String,
}

/// The columns of queues that fit beside the nodes.
pub(crate) const QUEUE_TITLES: [&str; 5] = ["NAME", "GUARANTEED", "GPUS", "WAITING", "RUNNING"];

impl Rows {
    /// The rows for the objects of a view at an instant.
    pub(crate) fn of(view: &View, now: Time) -> Self {
        let used = gpus_in_use(view);
        let node = |(name, node)| node_row(name, node, used.get(name).copied());
        let mut nodes: Vec<NodeRow> = view.all(Kind::Node).map(node).collect();
        // Nodes in use come first: a small screen has no room for all.
        nodes.sort_by_key(|node| node.gangs.is_empty());
        let mut gangs: Vec<_> = view.all(Kind::Gang).collect();
        gangs.sort_by_key(|(name, gang)| {
            let ended = age::instant(gang, "/status/endedAt").unwrap_or(Time::ZERO);
            (rank(gang), Reverse(ended), *name)
        });
        Self {
            heading: heading(view),
            nodes,
            queues: view.all(Kind::Queue).map(|(_, queue)| queue_row(queue, now)).collect(),
            gangs: gangs.into_iter().map(|(name, gang)| gang_row(name, gang, now)).collect(),
        }
    }
}

fn heading(view: &View) -> String {
    let phases = |wanted: &[&str]| {
        let phase = |gang: &Value| text(gang, "/status/phase");
        view.all(Kind::Gang).filter(|(_, gang)| wanted.contains(&&*phase(gang))).count()
    };
    let nodes: Vec<_> = view.all(Kind::Node).collect();
    let usable = nodes.iter().filter(|(_, node)| ready(node) == "yes").count();
    let gpus = nodes.iter().filter_map(|(_, node)| node.pointer("/status/gpus")?.as_u64());
    let gpus: u64 = gpus.sum();
    let spend = view.all(Kind::Pool);
    let spend: f64 =
        spend.filter_map(|(_, pool)| pool.pointer("/status/hourlySpend")?.as_f64()).sum();
    format!(
        "{usable} of {} ready, {}, {spend:.2} an hour; gangs: {} run, {} assemble, {} wait",
        count(nodes.len(), "node"),
        count(usize::try_from(gpus).unwrap_or(0), "GPU"),
        phases(&["Running", "Admitted", "Stopping"]),
        phases(&["Provisioning"]),
        phases(&["Waiting", "Infeasible"]),
    )
}

/// GPUs in use by node, where gangs report their devices.
fn gpus_in_use(view: &View) -> BTreeMap<&str, usize> {
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, gang) in view.all(Kind::Gang) {
        let places = gang.pointer("/status/placement").and_then(Value::as_array);
        for place in places.into_iter().flatten() {
            let devices = place.get("devices").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(node) = place.get("node").and_then(Value::as_str) {
                *used.entry(node).or_default() += devices;
            }
        }
    }
    used
}

fn node_row(name: &str, node: &Value, used: Option<usize>) -> NodeRow {
    let gpus = node.pointer("/status/gpus").and_then(Value::as_u64).unwrap_or(0);
    let gpus = usize::try_from(gpus).unwrap_or(0).min(16);
    let gangs = words(node, "/status/gangs");
    let boxes = match used {
        Some(used) => {
            let used = used.min(gpus);
            format!("{}{}", "■".repeat(used), "□".repeat(gpus - used))
        }
        // The node is in use, and the GPUs in use are not known.
        None if !gangs.is_empty() => "▨".repeat(gpus),
        None => "□".repeat(gpus),
    };
    NodeRow {
        name: name.to_owned(),
        pool: text(node, "/spec/pool"),
        ready: ready(node) == "yes",
        kind: node_gpus(node),
        boxes,
        gangs: gangs.replace(',', ", "),
    }
}

fn queue_row(queue: &Value, now: Time) -> Vec<String> {
    let cell = |title: &&str| {
        let column = of(Kind::Queue).iter().find(|column| column.title == *title);
        column.map(|column| (column.cell)(queue, now)).unwrap_or_default()
    };
    QUEUE_TITLES.iter().map(cell).collect()
}

/// The order of gangs: active ones first.
fn rank(gang: &Value) -> u8 {
    match &*text(gang, "/status/phase") {
        "Running" | "Stopping" => 0,
        "Admitted" => 1,
        "Provisioning" => 2,
        "Succeeded" | "Failed" => 4,
        _ => 3,
    }
}

fn gang_row(name: &str, gang: &Value, now: Time) -> GangRow {
    let since = |field| age::since(gang, field, now);
    let time = match rank(gang) {
        0 => since("/status/runningSince"),
        4 => format!("{} ago", since("/status/endedAt")),
        _ => since("/status/waitingSince"),
    };
    let starts = age::instant(gang, "/status/expectedStart");
    let message = text(gang, "/status/message");
    let message = message.lines().next().unwrap_or_default();
    let message = match starts {
        Some(at) => format!("starts {}; {message}", age::until(at, now)),
        None => message.to_owned(),
    };
    GangRow {
        name: name.to_owned(),
        phase: phase(gang),
        // A gang that is over has no ready members, whatever it reported.
        ready: if rank(gang) == 4 { String::new() } else { text(gang, "/status/progress") },
        queue: text(gang, "/spec/queue"),
        time,
        message,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Three nodes, four gangs and a queue.
    pub(crate) fn view() -> View {
        let mut view = View::default();
        let node = |name: &str, gangs: Value| {
            json!({"metadata": {"name": name}, "spec": {"pool": "gpus", "gpu": "H100"},
                   "status": {"ready": true, "gpus": 8, "gangs": gangs}})
        };
        let nodes =
            vec![node("n1", json!(["r/a"])), node("n2", json!(["r/b"])), node("n0", json!([]))];
        view.replace(Kind::Node, nodes, 1);
        let gang = |name: &str, status: Value| json!({"metadata": {"name": name, "namespace": "r"}, "spec": {"queue": "q"}, "status": status});
        let done = |at: &str| json!({"phase": "Succeeded", "endedAt": at});
        let gangs = vec![
            gang("z", done("1970-01-01T00:00:10Z")),
            gang("y", done("1970-01-01T00:00:20Z")),
            gang(
                "w",
                json!({"phase": "Waiting", "progress": "0/2", "expectedStart": "1970-01-01T00:03:00Z",
                             "waitingSince": "1970-01-01T00:00:00Z", "message": "behind a"}),
            ),
            gang(
                "a",
                json!({"phase": "Running", "progress": "1/1", "runningSince": "1970-01-01T00:00:00Z",
                             "placement": [{"node": "n1", "role": "x", "members": 1, "devices": [0, 1]}]}),
            ),
        ];
        view.replace(Kind::Gang, gangs, 1);
        let queue = json!({"metadata": {"name": "q"}, "spec": {}, "status": {"gpus": 2.0, "waiting": 1, "running": 1}});
        view.replace(Kind::Queue, vec![queue], 1);
        view
    }

    #[test]
    fn active_gangs_come_first_and_ended_ones_last_by_end_time() {
        let rows = Rows::of(&view(), Time(60_000));
        let names: Vec<_> = rows.gangs.iter().map(|gang| &*gang.name).collect();
        assert_eq!(names, ["r/a", "r/w", "r/y", "r/z"]);
        assert_eq!((&*rows.gangs[0].time, &*rows.gangs[2].time), ("1m00s", "40s ago"));
        assert_eq!(rows.gangs[1].message, "starts in 2m00s; behind a");
        assert!(rows.heading.starts_with("3 of 3 nodes ready, 24 GPUs"), "{}", rows.heading);
    }

    #[test]
    fn boxes_are_full_where_gpus_are_known_to_be_in_use() {
        let rows = Rows::of(&view(), Time(60_000));
        let boxes: Vec<_> = rows.nodes.iter().map(|node| &*node.boxes).collect();
        assert_eq!(boxes, ["■■□□□□□□", "▨▨▨▨▨▨▨▨", "□□□□□□□□"]);
    }
}
