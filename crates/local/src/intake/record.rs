//! The stored record of a submitted gang.

use std::sync::Arc;

use muster_api::{GangManifest, RunPolicy, RunSpec, workloads};
use muster_core::gang::GangSpec;
use muster_core::time::Span;
use muster_server::weight;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intake::containers;
use crate::intake::object_text::ObjectText;

/// Simulated run time of a gang that declares none.
const PLAYED: Span = Span::mins(10);

/// A gang as submitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The spec for the planner.
    pub(crate) spec: GangSpec,
    /// The tasks of each role's members.
    pub(crate) tasks: Vec<Task>,
    /// Retries, time limit and resize signal.
    #[serde(rename = "care")]
    pub(crate) run_policy: RunPolicy,
    /// The role whose end is the end of the gang; all members when absent.
    pub(crate) ends_with: Option<Arc<str>>,
    /// MPI settings, for an MPI job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mpi: Option<Mpi>,
    /// The submitted object.
    pub(crate) object: ObjectText,
    /// Delay between apply and submission.
    pub(crate) submit_after: Span,
    /// Whether it is held.
    pub(crate) held: bool,
    /// Retries so far, after failed members.
    pub(crate) retried: u32,
    /// Whether it was cancelled. Stored, so that a crash does not lose the command.
    #[serde(default)]
    pub(crate) cancelled: bool,
    /// Whether it is to be deleted when it has finished.
    #[serde(default)]
    pub(crate) forget: bool,
    /// The Unix user of its members; that of the control plane when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_as: Option<Arc<str>>,
    /// Bytes of memory it takes, about: the object and the commands as text, and the published object.
    #[serde(default)]
    pub(crate) bytes: usize,
    /// Warnings for its owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

/// MPI settings of a job; each worker is a host for `mpirun`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Mpi {
    /// Ranks per host.
    pub(crate) slots: u32,
    /// Whether the launcher is a host too.
    pub(crate) with_launcher: bool,
}

/// What the members of a role do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// They run a command.
    Run(RunSpec),
    /// They only sleep: no command is declared.
    Pass(Span),
}

impl Record {
    /// A gang of Muster's own kind.
    pub(crate) fn of_gang(manifest: GangManifest, object: &Value) -> Self {
        let GangManifest { spec, submit_after, run_time, runs, templates, run_policy } = manifest;
        let passes = run_time.or(spec.expected_duration).unwrap_or(PLAYED);
        let mut warnings = Vec::new();
        let mut tasks = Vec::with_capacity(runs.len());
        for ((run, template), role) in runs.into_iter().zip(templates).zip(&spec.roles) {
            let pod = template.and_then(|template| template.get("spec").cloned());
            let by_template = || {
                let pod = pod.as_ref()?;
                warnings.extend(containers::warnings(pod));
                let run = workloads::run_of(pod);
                if run.is_none() {
                    let what = "its template says no command, and its members only pass the time";
                    warnings.push(format!("role {}: {what}", role.name));
                }
                run
            };
            tasks.push(run.or_else(by_template).map_or(Task::Pass(passes), Task::Run));
        }
        let text = ObjectText::from(object);
        let bytes = 2 * text.bytes() + weight(object);
        Self {
            spec,
            tasks,
            run_policy,
            ends_with: None,
            mpi: None,
            object: text,
            submit_after,
            held: false,
            retried: 0,
            cancelled: false,
            forget: false,
            run_as: None,
            bytes,
            warnings,
        }
    }

    /// Whether it was made from another system's object.
    pub(crate) fn is_workload(&self) -> bool {
        !self.object.is_gang()
    }
}
