//! Writes the state of a gang into the status of its group object, in the form that the group's own controllers expect.
//!
//! A status is a JSON merge patch against the current object: conditions of other controllers stay, transition times
//! change only with the condition, and there is no patch when nothing would change.
//!
//! Two rules hold for every dialect: "unschedulable" is reported only where another node would help, because
//! autoscalers then buy nodes (volcano#4710), and it is withdrawn as soon as it no longer holds (KAI#1888).

use jiff::Timestamp;
use muster_core::time::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::dialects::dialect::Dialect;

/// The state of a gang, as far as other systems can represent it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum State {
    /// The gang waits in its queue.
    Waiting {
        /// What the gang waits for.
        why: String,
        /// Whether another node would let it start; not so when a quota holds it, or Muster orders nodes itself.
        node_would_help: bool,
    },
    /// The nodes of the gang are being provisioned.
    Provisioning {
        /// Nodes that are ready.
        ready: u32,
        /// Nodes that the gang needs.
        total: u32,
    },
    /// Every member has a seat; members may be created and started.
    Admitted,
    /// The members of the gang run.
    Running {
        /// Members that run.
        running: u32,
        /// Members that have succeeded.
        succeeded: u32,
        /// Members that have failed.
        failed: u32,
    },
    /// No member is left to run.
    Finished {
        /// Members that have succeeded.
        succeeded: u32,
        /// Members that have failed.
        failed: u32,
    },
    /// The gang can never start as it is.
    Infeasible {
        /// The reason.
        why: String,
    },
}

impl State {
    /// The message for people.
    fn message(&self) -> String {
        match self {
            Self::Waiting { why, .. } | Self::Infeasible { why } => why.clone(),
            Self::Provisioning { ready, total } => format!("{ready} of {total} nodes are ready"),
            Self::Admitted => "every member has a seat".into(),
            Self::Running { running, .. } => format!("{running} members run"),
            Self::Finished { .. } => "no member is left to run".into(),
        }
    }
    /// Whether every member has, or had, a seat.
    fn is_placed(&self) -> bool {
        matches!(self, Self::Admitted | Self::Running { .. } | Self::Finished { .. })
    }
    /// The reason in one word; `Unschedulable` only where another node would help.
    fn reason(&self) -> &'static str {
        match self {
            Self::Waiting { node_would_help: true, .. } => "Unschedulable",
            Self::Waiting { .. } => "Waiting",
            Self::Provisioning { .. } => "Provisioning",
            Self::Admitted | Self::Running { .. } | Self::Finished { .. } => "Scheduled",
            Self::Infeasible { .. } => "Infeasible",
        }
    }
    /// Members that run, have succeeded and have failed; `None` before any was started.
    fn counts(&self) -> Option<[(&'static str, u32); 3]> {
        let (running, succeeded, failed) = match self {
            Self::Running { running, succeeded, failed } => (*running, *succeeded, *failed),
            Self::Finished { succeeded, failed } => (0, *succeeded, *failed),
            _ => return None,
        };
        Some([("running", running), ("succeeded", succeeded), ("failed", failed)])
    }
}

/// A JSON merge patch and its target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusPatch {
    /// Whether it is for the status subresource; otherwise for the object itself.
    pub subresource: bool,
    /// The patch.
    pub patch: Value,
}

/// The patch that writes the gang's state into its group object; `None` if the object has that state already, or cannot
/// represent it.
pub fn status(dialect: Dialect, object: &Value, state: &State, now: Time) -> Option<StatusPatch> {
    let before = object.get("status").unwrap_or(&Value::Null);
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let (subresource, after) = match dialect {
        Dialect::Native => (true, native(before, version, state, now)),
        // The status of a Gang is written apart from this, and in 1.35 a Workload has none.
        Dialect::Muster | Dialect::Workload => return None,
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

/// Whether a field would change; an absent field equals `null`.
fn differs(before: Option<&Value>, after: &Value) -> bool {
    before.unwrap_or(&Value::Null) != after
}

/// One condition, renamed in 1.37. From then on it reports whether the group was ever scheduled, and stays true.
fn native(before: &Value, version: &str, state: &State, now: Time) -> Map<String, Value> {
    let once = !version.ends_with("/v1alpha2");
    let kind = if once { "PodGroupInitiallyScheduled" } else { "PodGroupScheduled" };
    let is_true = |condition: &Value| condition.get("status") == Some(&json!("True"));
    if once && condition(before, kind).is_some_and(is_true) {
        return Map::new();
    }
    let news = WantedCondition {
        kind,
        holds: state.is_placed(),
        always_written: true,
        reason: state.reason(),
        state,
    };
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

/// A group leaves `Pending` only when its nodes are ready: operators create no pods before that, so this is where they
/// wait for capacity. It does not return to `Pending` while it waits for its pods.
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

/// kube-batch, from which Volcano was forked, has fewer phases: a finished group is still `Running`.
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
    // While the gang waits the condition gives the reason, also when it is false.
    let unschedulable = WantedCondition {
        kind: "Unschedulable",
        holds: helps,
        always_written: !placed,
        reason,
        state,
    };
    let scheduled =
        WantedCondition { kind: "Scheduled", holds: placed, always_written: false, reason, state };
    conditions(with(before, &[unschedulable, scheduled], now))
}

/// KAI has one condition per node pool, and removes it when the group is scheduled.
fn kai(before: &Value, state: &State, now: Time) -> Map<String, Value> {
    let kind = "UnschedulableOnNodePool";
    let name = "schedulingConditions";
    if state.is_placed() {
        let none = before.get(name).and_then(Value::as_array).is_none_or(Vec::is_empty);
        return if none { Map::new() } else { Map::from_iter([(name.into(), json!([]))]) };
    }
    let listed = before.get(name).and_then(Value::as_array);
    let old = listed.into_iter().flatten().find(|one| one.get("type") == Some(&json!(kind)));
    let news =
        WantedCondition { kind, holds: true, always_written: true, reason: state.reason(), state };
    let mut condition = news.condition(old, now);
    if let Some(fields) = condition.as_object_mut() {
        fields.insert("nodePool".into(), "default".into());
    }
    Map::from_iter([(name.into(), json!([condition]))])
}

fn ended(failed: u32) -> &'static str {
    if failed > 0 { "Failed" } else { "Finished" }
}

/// The phase, and the numbers of members that run, have succeeded and have failed.
fn fields(phase: &str, state: &State) -> Map<String, Value> {
    let mut status = Map::from_iter([("phase".into(), phase.into())]);
    for (name, count) in state.counts().into_iter().flatten() {
        status.insert(name.into(), count.into());
    }
    status
}

/// Sets the time when the members were first started.
fn started(status: &mut Map<String, Value>, before: &Value, state: &State, now: Time) {
    if state.is_placed() && before.get("scheduleStartTime").is_none_or(Value::is_null) {
        status.insert("scheduleStartTime".into(), stamp(now).into());
    }
}

/// The wanted state of a condition.
struct WantedCondition<'a> {
    kind: &'static str,
    holds: bool,
    /// Whether it is written even if it is false and was never true.
    always_written: bool,
    reason: &'a str,
    state: &'a State,
}

impl WantedCondition<'_> {
    /// The condition to write in place of the old one, whose transition time stays while its status does not change.
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

/// All conditions; those of other controllers are unchanged.
fn with(before: &Value, news: &[WantedCondition<'_>], now: Time) -> Vec<Value> {
    let listed = before.get("conditions").and_then(Value::as_array);
    let kind_of = |one: &Value| one.get("type").and_then(Value::as_str).map(str::to_owned);
    let ours = |one: &&Value| news.iter().any(|new| kind_of(one).as_deref() == Some(new.kind));
    let mut all: Vec<Value> =
        listed.into_iter().flatten().filter(|one| !ours(one)).cloned().collect();
    for new in news {
        let old = condition(before, new.kind);
        if new.holds || new.always_written || old.is_some() {
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
