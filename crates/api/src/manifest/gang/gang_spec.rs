//! Reads `kind: Gang`.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::gang::{Closeness, GangSpec, Provisioning, ProvisioningMode, Signal};
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::manifest::gang::disruption::{SIGNALS, disruption};
use crate::manifest::gang::role;
use crate::manifest::gang::role::Roles;
use crate::manifest::gang::scaling::scaling;
use crate::read::finding::Mark;
use crate::read::object::Metadata;
use crate::yaml::fields::Fields;
use crate::yaml::instant::instant;
use crate::yaml::names::{NAME_RULE, is_name};

/// The queue of a gang that names none.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// A gang as written, with the fields that only some hosts use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GangManifest {
    /// The spec that the planner uses.
    pub spec: GangSpec,
    /// How long after the start of a simulation it is submitted.
    pub submit_after: Span,
    /// How long it runs in a simulation; chosen by the host when absent.
    pub run_time: Option<Span>,
    /// The process of the members of each role on the embedded host, in the order of `spec.roles`.
    pub runs: Vec<Option<RunSpec>>,
    /// The pod template of the members of each role on Kubernetes, in the order of `spec.roles`.
    pub templates: Vec<Option<Template>>,
    /// How its processes are supervised on the embedded host.
    pub run_policy: RunPolicy,
}

/// How a gang's processes are supervised where Muster itself starts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunPolicy {
    /// How often the whole gang is restarted after a member has failed.
    pub retries: u32,
    /// The longest time that one run may take.
    pub time_limit: Option<Span>,
    /// The signal by which members are told their new number; without one a resized gang is restarted.
    pub resize_signal: Option<Signal>,
}

/// A pod template as written: Kubernetes defines what belongs in a pod.
pub type Template = serde_json::Map<String, serde_json::Value>;

/// The process of each member of a role.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunSpec {
    /// The program and its arguments; at least the program.
    pub command: Vec<String>,
    /// Environment variables of the process, in addition to those that Muster sets.
    pub env: BTreeMap<String, String>,
    /// The working directory; that of the control plane when absent.
    pub directory: Option<String>,
}

/// A gang and the fields that are checked against other objects.
#[derive(Debug)]
pub(crate) struct DeclaredGang {
    pub(crate) gang: GangManifest,
    pub(crate) name: Mark,
    /// Where it names its queue, if it does.
    pub(crate) queue: Option<Mark>,
    /// Where it names a topology level, if it does.
    pub(crate) level: Option<Mark>,
}

/// Reads a gang's spec.
pub(crate) fn read(metadata: Metadata<'_>, spec: &Fields<'_>) -> DeclaredGang {
    let queue = spec.get("queue");
    let queue_name = queue.as_ref().and_then(|value| value.text_with(is_name, NAME_RULE));
    let (closeness, level) = closeness(spec);
    let Roles { specs: roles, runs, templates } = role::read_all(spec);
    let scaling = scaling(spec, &roles);
    let core = GangSpec {
        name: format!("{}/{}", metadata.namespace, metadata.name).into(),
        queue: queue_name.unwrap_or(DEFAULT_QUEUE).into(),
        user: spec.text("user").unwrap_or_default().into(),
        priority: priority(spec),
        priority_is_declared: false,
        roles,
        closeness,
        provisioning: provisioning(spec),
        expected_duration: spec.span_above_zero("expectedDuration"),
        deadline: deadline(spec),
        cost_of_waiting: spec.get("costOfWaiting").and_then(|value| value.money()),
        disruption: disruption(spec),
        scaling,
    };
    let gang = GangManifest {
        spec: core,
        submit_after: metadata.submit_after.unwrap_or_default(),
        run_time: metadata.run_time,
        runs,
        templates,
        run_policy: run_policy(spec),
    };
    // A malformed queue name is already a finding; that it is not declared would be a second one for the same mistake.
    let queue = queue.filter(|_| queue_name.is_some()).map(|value| value.mark());
    DeclaredGang { gang, name: metadata.mark, queue, level }
}

fn priority(spec: &Fields<'_>) -> i32 {
    spec.exclusive("priorityClassName", "priority");
    if let Some(class) = spec.get("priorityClassName") {
        class.text_with(is_name, NAME_RULE);
        class.not_acted_on();
    }
    let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let priority = spec.get("priority").and_then(|value| value.whole(range));
    priority.and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
}

fn closeness(spec: &Fields<'_>) -> (Option<Closeness>, Option<Mark>) {
    let Some(topology) = spec.get("topology") else { return (None, None) };
    let Some(fields) = topology.fields() else { return (None, None) };
    fields.exclusive("required", "preferred");
    let (required, preferred) = (fields.get("required"), fields.get("preferred"));
    fields.done();
    let level = |text: &str| -> Arc<str> { text.into() };
    match (required, preferred) {
        (Some(value), _) => match value.text() {
            Some(text) => (Some(Closeness::Required(level(text))), Some(value.mark())),
            None => (None, None),
        },
        (None, Some(value)) => match value.text() {
            Some(text) => (Some(Closeness::Preferred(level(text))), Some(value.mark())),
            None => (None, None),
        },
        (None, None) => {
            topology.error("must say `required` or `preferred`");
            (None, None)
        }
    }
}

fn provisioning(spec: &Fields<'_>) -> Provisioning {
    let default = Provisioning::default();
    let Some(fields) = spec.get("provisioning").and_then(|value| value.fields()) else {
        return default;
    };
    let modes = [
        ("Proactive", ProvisioningMode::Proactive),
        ("Reactive", ProvisioningMode::Reactive),
        ("Never", ProvisioningMode::Never),
    ];
    let mode = fields.get("mode").and_then(|value| value.one_of(&modes));
    let timeout = fields.span_above_zero("timeout");
    let attempts = fields.get("attempts").and_then(|value| value.count(1..=1_000_000));
    // Rolling back is the only choice so far, and the default.
    fields.get("onFailure").and_then(|value| value.one_of(&[("RollBack", ())]));
    fields.done();
    Provisioning {
        mode: mode.unwrap_or(default.mode),
        timeout: timeout.unwrap_or(default.timeout),
        attempts: attempts.unwrap_or(default.attempts),
    }
}

/// Reads how processes are supervised. On Kubernetes a pod's `restartPolicy` and `activeDeadlineSeconds` do this.
fn run_policy(spec: &Fields<'_>) -> RunPolicy {
    let retries = spec.get("retries").and_then(|value| value.count(0..=1_000_000));
    RunPolicy {
        retries: retries.unwrap_or_default(),
        time_limit: spec.span_above_zero("timeLimit"),
        resize_signal: spec.get("resizeSignal").and_then(|value| value.one_of(&SIGNALS)),
    }
}

/// When the gang should be finished, in Unix time.
fn deadline(spec: &Fields<'_>) -> Option<Time> {
    let value = spec.get("deadline")?;
    let deadline = instant(value.text()?).map_err(|error| value.error(error.to_string())).ok();
    if deadline.is_some() && spec.get("expectedDuration").is_none() {
        value.warn("without `expectedDuration` it is taken to run for one hour");
    }
    deadline
}
