//! The columns of each kind of object.

use muster_core::time::Time;
use muster_server::Kind;
use serde_json::Value;

use crate::client::output::age;

/// One column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Whether it is shown only with `-o wide`.
    pub(crate) wide: bool,
    pub(crate) cell: fn(&Value, Time) -> String,
}

const fn always(title: &'static str, cell: fn(&Value, Time) -> String) -> Column {
    Column { title, wide: false, cell }
}

const fn wide(title: &'static str, cell: fn(&Value, Time) -> String) -> Column {
    Column { title, wide: true, cell }
}

/// The namespace of a gang, shown where gangs of several namespaces are listed.
pub(crate) const NAMESPACE: Column =
    always("NAMESPACE", |gang, _| text(gang, "/metadata/namespace"));

/// The columns of a kind.
pub(crate) fn of(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Gang => GANG,
        Kind::Queue => QUEUE,
        Kind::Pool => POOL,
        Kind::Node => NODE,
        Kind::Order => ORDER,
    }
}

const GANG: &[Column] = &[
    always("NAME", |gang, _| text(gang, "/metadata/name")),
    always("PHASE", |gang, _| phase(gang)),
    always("READY", |gang, _| text(gang, "/status/progress")),
    always("QUEUE", |gang, _| text(gang, "/spec/queue")),
    always("USER", |gang, _| text(gang, "/spec/user")),
    always("STARTS", starts),
    always("AGE", |gang, now| age::since(gang, "/metadata/creationTimestamp", now)),
    wide("PRIORITY", |gang, _| text(gang, "/spec/priority")),
    wide("NODES", |gang, _| text(gang, "/status/nodes")),
    wide("RESTARTS", |gang, _| text(gang, "/status/restarts")),
    wide("MESSAGE", |gang, _| text(gang, "/status/message")),
];

const QUEUE: &[Column] = &[
    always("NAME", |queue, _| text(queue, "/metadata/name")),
    always("PARENT", |queue, _| text(queue, "/spec/parent")),
    always("WEIGHT", |queue, _| text(queue, "/spec/weight")),
    always("GUARANTEED", |queue, _| gpus(queue, "/spec/guaranteed")),
    always("LIMIT", |queue, _| gpus(queue, "/spec/limit")),
    always("GPUS", |queue, _| text(queue, "/status/gpus")),
    always("WAITING", |queue, _| text(queue, "/status/waiting")),
    always("RUNNING", |queue, _| text(queue, "/status/running")),
    wide("TIERS", |queue, _| words(queue, "/spec/tiers")),
    wide("TIME SLICE", |queue, _| text(queue, "/spec/timeSlice")),
];

const POOL: &[Column] = &[
    always("NAME", |pool, _| text(pool, "/metadata/name")),
    always("TIER", |pool, _| text(pool, "/spec/tier")),
    always("NODES", |pool, _| text(pool, "/status/nodes")),
    always("READY", |pool, _| text(pool, "/status/ready")),
    always("GPUS", |pool, _| text(pool, "/status/gpus")),
    always("HOURLY", |pool, _| money(pool, "/status/hourlySpend")),
    always("WANTED FREE", |pool, _| text(pool, "/status/target/free")),
    wide("MAX NODES", |pool, _| text(pool, "/spec/limits/nodes")),
    wide("MAX GPUS", |pool, _| text(pool, "/spec/limits/gpus")),
    wide("OFFERINGS", |pool, _| offerings(pool)),
];

const NODE: &[Column] = &[
    always("NAME", |node, _| text(node, "/metadata/name")),
    always("POOL", |node, _| text(node, "/spec/pool")),
    always("READY", |node, _| ready(node).to_owned()),
    always("GPUS", |node, _| node_gpus(node)),
    always("GANGS", |node, _| words(node, "/status/gangs")),
    wide("HOURLY", |node, _| money(node, "/spec/hourlyPrice")),
];

const ORDER: &[Column] = &[
    always("NAME", |order, _| text(order, "/metadata/name")),
    always("GANG", |order, _| gang_of(order)),
    always("PHASE", |order, _| text(order, "/status/phase")),
    always("READY", |order, _| order_progress(order)),
    always("DEADLINE", |order, now| {
        age::instant(order, "/spec/deadline").map_or_else(String::new, |at| age::until(at, now))
    }),
    wide("MESSAGE", |order, _| text(order, "/status/message")),
];

/// A field as text; empty when it is missing.
pub(crate) fn text(object: &Value, field: &str) -> String {
    match object.pointer(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            whole.map_or_else(|| number.to_string(), |whole| format!("{whole:.0}"))
        }
        Some(other) => other.to_string(),
    }
}

/// A list of texts, joined with commas.
pub(crate) fn words(object: &Value, field: &str) -> String {
    let items = object.pointer(field).and_then(Value::as_array);
    let words = items.into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(",")
}

/// The phase of a gang, or `Held` or `Cancelled`, which are no phases.
pub(crate) fn phase(gang: &Value) -> String {
    let held = gang.pointer("/spec/held").and_then(Value::as_bool).unwrap_or(false);
    let phase = text(gang, "/status/phase");
    match (held, &*phase) {
        (true, "Waiting") => "Held".to_owned(),
        (_, "") => "New".to_owned(),
        _ => match &*text(gang, "/status/reason") {
            "Cancelled" => "Cancelled".to_owned(),
            _ => phase,
        },
    }
}

fn starts(gang: &Value, now: Time) -> String {
    age::instant(gang, "/status/expectedStart").map_or_else(String::new, |at| age::until(at, now))
}

fn money(object: &Value, field: &str) -> String {
    let amount = object.pointer(field).and_then(Value::as_f64);
    amount.map_or_else(String::new, |amount| format!("{amount:.2}"))
}

/// The GPUs among resources.
fn gpus(object: &Value, field: &str) -> String {
    let amounts = object.pointer(field).and_then(Value::as_object);
    let gpus = amounts.and_then(|amounts| amounts.iter().find(|(name, _)| name.ends_with("/gpu")));
    gpus.map_or_else(String::new, |(_, amount)| text(amount, ""))
}

fn offerings(pool: &Value) -> String {
    let all = pool.pointer("/spec/offerings").and_then(Value::as_array);
    let kinds = all.into_iter().flatten().map(|offering| text(offering, "/instanceType"));
    let mut kinds: Vec<_> = kinds.collect();
    kinds.dedup();
    kinds.join(",")
}

/// Whether a node is ready.
pub(crate) fn ready(node: &Value) -> &'static str {
    match node.pointer("/status/ready").and_then(Value::as_bool) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// `8 x H100`.
pub(crate) fn node_gpus(node: &Value) -> String {
    let (count, model) = (text(node, "/status/gpus"), text(node, "/spec/gpu"));
    if model.is_empty() { count } else { format!("{count} x {model}") }
}

/// The gang of an order, in both of the forms that hosts write.
pub(crate) fn gang_of(order: &Value) -> String {
    match order.pointer("/spec/gang") {
        Some(gang @ Value::Object(_)) => {
            format!("{}/{}", text(gang, "/namespace"), text(gang, "/name"))
        }
        _ => text(order, "/spec/gang"),
    }
}

fn order_progress(order: &Value) -> String {
    let progress = text(order, "/status/progress");
    if !progress.is_empty() {
        return progress;
    }
    let (ready, nodes) = (text(order, "/status/ready"), text(order, "/spec/nodes"));
    if nodes.is_empty() { ready } else { format!("{ready}/{nodes}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_fields_are_empty_and_whole_numbers_have_no_fraction() {
        let object = json!({"a": 3.0, "b": 0.5, "c": null, "d": "x", "e": ["y", "z"]});
        let all = ["/a", "/b", "/c", "/d", "/f"].map(|field| text(&object, field));
        assert_eq!(all, ["3", "0.5", "", "x", ""]);
        assert_eq!(words(&object, "/e"), "y,z");
    }

    #[test]
    fn held_and_cancelled_gangs_show_it_as_phase() {
        let gang = |held: bool, at: &str, reason: &str| {
            phase(&json!({"spec": {"held": held}, "status": {"phase": at, "reason": reason}}))
        };
        assert_eq!(gang(true, "Waiting", "Held"), "Held");
        assert_eq!(gang(true, "Running", ""), "Running");
        assert_eq!(gang(false, "Failed", "Cancelled"), "Cancelled");
        assert_eq!(phase(&json!({})), "New");
    }

    #[test]
    fn gpus_are_found_for_any_vendor() {
        let queue = json!({"spec": {"limit": {"cpu": 4, "amd.com/gpu": 8}}});
        assert_eq!(gpus(&queue, "/spec/limit"), "8");
        assert_eq!(gpus(&queue, "/spec/guaranteed"), "");
    }
}
