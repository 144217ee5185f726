//! What a group's object is told of its gang, in the words its own controllers wait for.
//!
//! A status is a JSON merge patch. It is made against the object as it is, so that conditions of others stay,
//! times of transitions are kept while nothing turned, and no patch is made when nothing would change.
//!
//! Two promises of every dialect: "unschedulable" is said only where a node would help, because autoscalers buy
//! nodes on hearing it (volcano#4710), and it is taken back as soon as it is no longer so (KAI#1888).

use jiff::Timestamp;
use muster_core::time::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::dialects::dialect::Dialect;

/// Where a gang stands, as far as other systems have words for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum State {
    /// In the queue.
    Waiting {
        /// What it waits for.
        why: String,
        /// Whether one more node would start it; not so when a quota holds it, or Muster orders nodes itself.
        node_would_help: bool,
    },
    /// Its nodes are coming.
    Provisioning {
        /// Nodes that are there.
        ready: u32,
        /// Nodes it takes.
        total: u32,
    },
    /// Every member has its place; they may be made and started.
    Admitted,
    /// Its members run.
    Running {
        /// Members that run.
        running: u32,
        /// Members that are done.
        succeeded: u32,
        /// Members that failed.
        failed: u32,
    },
    /// No member is left to run.
    Finished {
        /// Members that are done.
        succeeded: u32,
        /// Members that failed.
        failed: u32,
    },
    /// It will not start as it is written.
    Infeasible {
        /// Why not.
        why: String,
    },
}

impl State {
    /// What a person reads.
    fn message(&self) -> String {
        match self {
            Self::Waiting { why, .. } | Self::Infeasible { why } => why.clone(),
            Self::Provisioning { ready, total } => format!("{ready} of {total} nodes are ready"),
            Self::Admitted => "every member has its place".into(),
            Self::Running { running, .. } => format!("{running} members run"),
            Self::Finished { .. } => "no member is left to run".into(),
        }
    }
    /// Whether every member has, or had, its place.
    fn is_placed(&self) -> bool {
        matches!(self, Self::Admitted | Self::Running { .. } | Self::Finished { .. })
    }
    /// One word for it; `Unschedulable` only where a node would help.
    fn reason(&self) -> &'static str {
        match self {
            Self::Waiting { node_would_help: true, .. } => "Unschedulable",
            Self::Waiting { .. } => "Waiting",
            Self::Provisioning { .. } => "Provisioning",
            Self::Admitted | Self::Running { .. } | Self::Finished { .. } => "Scheduled",
            Self::Infeasible { .. } => "Infeasible",
        }
    }
    /// Members that run, are done and failed; `None` before any was started.
    fn counts(&self) -> Option<[(&'static str, u32); 3]> {
        let (running, succeeded, failed) = match self {
            Self::Running { running, succeeded, failed } => (*running, *succeeded, *failed),
            Self::Finished { succeeded, failed } => (0, *succeeded, *failed),
            _ => return None,
        };
        Some([("running", running), ("succeeded", succeeded), ("failed", failed)])
    }
}

/// A JSON merge patch, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusPatch {
    /// Whether it goes to the status subresource; otherwise to the object itself.
    pub subresource: bool,
    /// The patch.
    pub patch: Value,
}

/// The patch that tells a group's object where its gang stands; `None` when the object says so already, or has
/// no words for it.
pub fn status(dialect: Dialect, object: &Value, state: &State, now: Time) -> Option<StatusPatch> {
    let before = object.get("status").unwrap_or(&Value::Null);
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let (subresource, after) = match dialect {
        Dialect::Muster => (true, muster(state)),
        Dialect::Native => (true, native(before, version, state, now)),
        // In 1.35 a Workload has no status.
        Dialect::Workload => return None,
        Dialect::SchedulerPlugins => (true, scheduler_plugins(before, state, now)),
        // Its CRD declares no status subresource, nor does Volcano's.
        Dialect::Koordinator => (false, koordinator(before, state, now)),
        Dialect::Volcano => (false, volcano(before, state, now)),
        // Of its two API groups only the younger one has a status subresource.
        Dialect::KubeBatch => {
            (version.starts_with("scheduling.sigs.dev/"), kube_batch(before, state, now))
        }
        Dialect::Kai => (true, kai(before, state, now)),
    };
    let news: Map<String, Value> =
        after.into_iter().filter(|(name, value)| differs(before.get(name), value)).collect();
    (!news.is_empty()).then(|| StatusPatch { subresource, patch: json!({ "status": news }) })
}

/// Whether a field would change; an absent one is as good as `null`.
fn differs(before: Option<&Value>, after: &Value) -> bool {
    before.unwrap_or(&Value::Null) != after
}

fn muster(state: &State) -> Map<String, Value> {
    let phase = match state {
        State::Waiting { .. } => "Waiting",
        State::Provisioning { .. } => "Provisioning",
        State::Admitted => "Admitted",
        State::Running { .. } => "Running",
        State::Finished { .. } => "Finished",
        State::Infeasible { .. } => "Infeasible",
    };
    let mut status = fields(phase, state);
    status.insert("message".into(), state.message().into());
    status
}

/// One condition, renamed in 1.37. There it says whether the group was ever placed, and stays true.
fn native(before: &Value, version: &str, state: &State, now: Time) -> Map<String, Value> {
    let once = !version.ends_with("/v1alpha2");
    let kind = if once { "PodGroupInitiallyScheduled" } else { "PodGroupScheduled" };
    let is_true = |condition: &Value| condition.get("status") == Some(&json!("True"));
    if once && condition(before, kind).is_some_and(is_true) {
        return Map::new();
    }
    let news = News { kind, holds: state.is_placed(), tells: true, reason: state.reason(), state };
    conditions(with(before, &[news], now))
}

fn scheduler_plugins(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let phase = match state {
        State::Waiting { .. } | State::Provisioning { .. } | State::Infeasible { .. } => "Pending",
        State::Admitted => "Scheduling",
        State::Running { .. } => "Running",
        State::Finished { failed, .. } => ended(*failed),
    };
    let mut status = fields(phase, state);
    started(&mut status, before, state, now);
    status
}

fn koordinator(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let phase = match state {
        State::Waiting { .. } | State::Infeasible { .. } => "Pending",
        State::Provisioning { .. } => "PreScheduling",
        State::Admitted => "Scheduled",
        State::Running { .. } => "Running",
        State::Finished { failed, .. } => ended(*failed),
    };
    let mut status = fields(phase, state);
    started(&mut status, before, state, now);
    status
}

/// A group leaves `Pending` only when its nodes are there: operators make no pods before that, so this is where
/// they wait for capacity. Once out, it does not go back while it waits for its pods.
fn volcano(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let phase = match state {
        State::Waiting { .. } | State::Provisioning { .. } | State::Infeasible { .. } => {
            if before.get("phase") == Some(&json!("Inqueue")) { "Inqueue" } else { "Pending" }
        }
        State::Admitted => "Inqueue",
        State::Running { .. } => "Running",
        State::Finished { .. } => "Completed",
    };
    let mut status = fields(phase, state);
    status.append(&mut batch_conditions(before, state, now));
    status
}

/// Volcano's grandparent has fewer words: what is over is still called running.
fn kube_batch(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let phase = match state {
        State::Running { .. } | State::Finished { .. } => "Running",
        _ => "Pending",
    };
    let mut status = fields(phase, state);
    status.append(&mut batch_conditions(before, state, now));
    status
}

fn batch_conditions(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let placed = state.is_placed();
    let helps = matches!(state, State::Waiting { node_would_help: true, .. });
    let reason = if helps { "NotEnoughResources" } else { state.reason() };
    // While it waits the condition says why, also where it does not hold.
    let unschedulable = News { kind: "Unschedulable", holds: helps, tells: !placed, reason, state };
    let scheduled = News { kind: "Scheduled", holds: placed, tells: false, reason, state };
    conditions(with(before, &[unschedulable, scheduled], now))
}

/// KAI keeps one condition per pool of nodes and takes it away when the group is placed.
fn kai(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let kind = "UnschedulableOnNodePool";
    let name = "schedulingConditions";
    if state.is_placed() {
        let none = before.get(name).and_then(Value::as_array).is_none_or(Vec::is_empty);
        return if none { Map::new() } else { Map::from_iter([(name.into(), json!([]))]) };
    }
    let listed = before.get(name).and_then(Value::as_array);
    let old = listed.into_iter().flatten().find(|one| one.get("type") == Some(&json!(kind)));
    let news = News { kind, holds: true, tells: true, reason: state.reason(), state };
    let mut condition = news.condition(old, now);
    if let Some(fields) = condition.as_object_mut() {
        fields.insert("nodePool".into(), "default".into());
    }
    Map::from_iter([(name.into(), json!([condition]))])
}

fn ended(failed: u32) -> &'static str {
    if failed > 0 { "Failed" } else { "Finished" }
}

/// The phase, and how many members run, are done and failed.
fn fields(phase: &str, state: &State) -> Map<String, Value> {
    let mut status = Map::from_iter([("phase".into(), phase.into())]);
    for (name, count) in state.counts().into_iter().flatten() {
        status.insert(name.into(), count.into());
    }
    status
}

/// When its members were first let go.
fn started(status: &mut Map<String, Value>, before: &Value, state: &State, now: Time) {
    if state.is_placed() && before.get("scheduleStartTime").is_none_or(Value::is_null) {
        status.insert("scheduleStartTime".into(), stamp(now).into());
    }
}

/// A condition as it should be.
struct News<'a> {
    kind: &'static str,
    holds: bool,
    /// Whether it is written even if it neither holds nor ever did.
    tells: bool,
    reason: &'a str,
    state: &'a State,
}

impl News<'_> {
    /// The condition to write in place of the old one, which keeps its time while it does not turn.
    fn condition(&self, old: Option<&Value>, now: Time) -> Value {
        let status = if self.holds { "True" } else { "False" };
        let same = old.filter(|old| old.get("status") == Some(&json!(status)));
        let since = same.and_then(|old| old.get("lastTransitionTime")).and_then(Value::as_str);
        json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason,
            "message": self.state.message(),
            "lastTransitionTime": since.map_or_else(|| stamp(now), str::to_owned),
        })
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let listed = status.get("conditions").and_then(Value::as_array);
    listed.into_iter().flatten().find(|one| one.get("type").and_then(Value::as_str) == Some(kind))
}

/// All conditions, those of others as they were.
fn with(before: &Value, news: &[News<'_>], now: Time) -> Vec<Value> {
    let listed = before.get("conditions").and_then(Value::as_array);
    let kind_of = |one: &Value| one.get("type").and_then(Value::as_str).map(str::to_owned);
    let ours = |one: &&Value| news.iter().any(|new| kind_of(one).as_deref() == Some(new.kind));
    let mut all: Vec<Value> =
        listed.into_iter().flatten().filter(|one| !ours(one)).cloned().collect();
    for new in news {
        let old = condition(before, new.kind);
        if new.holds || new.tells || old.is_some() {
            all.push(new.condition(old, now));
        }
    }
    all
}

fn conditions(all: Vec<Value>) -> Map<String, Value> {
    if all.is_empty() { Map::new() } else { Map::from_iter([("conditions".into(), all.into())]) }
}

/// An instant as Kubernetes writes it, to the second.
fn stamp(now: Time) -> String {
    let seconds = now.0.div_euclid(1_000);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
