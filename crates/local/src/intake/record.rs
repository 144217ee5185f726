//! What is kept of a gang that was submitted.

use std::sync::Arc;

use muster_api::{Care, GangManifest, RunSpec, workloads};
use muster_core::gang::GangSpec;
use muster_core::time::Span;
use muster_server::weight;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intake::containers;
use crate::intake::object_text::ObjectText;

/// What a gang that says nothing about it is played for.
const PLAYED: Span = Span::mins(10);

/// A gang as submitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What the planner sees.
    pub(crate) spec: GangSpec,
    /// What the members of each role do.
    pub(crate) tasks: Vec<Task>,
    /// What is done with its processes.
    pub(crate) care: Care,
    /// The role whose end is the end of the gang; all members when absent.
    pub(crate) ends_with: Option<Arc<str>>,
    /// Its members as hosts of MPI, where it is a job of MPI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mpi: Option<Mpi>,
    /// The object it was made of, as it was written.
    pub(crate) object: ObjectText,
    /// How long after it was applied it is submitted.
    pub(crate) submit_after: Span,
    /// Whether it must not start.
    pub(crate) held: bool,
    /// Times it was started again after a member failed.
    pub(crate) retried: u32,
    /// Somebody does not want it any more. Written down, so that nobody forgets it who is killed meanwhile.
    #[serde(default)]
    pub(crate) cancelled: bool,
    /// Nothing of it is to be shown when it is over.
    #[serde(default)]
    pub(crate) forget: bool,
    /// The Unix user its members run as; that of the control plane when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_as: Option<Arc<str>>,
    /// Bytes of memory that are kept of it, about: the object and the commands as text, and what is shown of the object.
    #[serde(default)]
    pub(crate) bytes: usize,
    /// What its owner should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

/// What a job of MPI says of its workers, each of which is a host to `mpirun`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Mpi {
    /// How many ranks each has room for.
    pub(crate) slots: u32,
    /// Whether the launcher is a host like the workers.
    pub(crate) with_launcher: bool,
}

/// What the members of a role do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// They run a command.
    Run(RunSpec),
    /// They only pass the time: nobody said what to run.
    Pass(Span),
}

impl Record {
    /// A gang of Muster's own kind.
    pub(crate) fn of_gang(manifest: GangManifest, object: &Value) -> Self {
        let GangManifest { spec, submit_after, run_time, runs, templates, care } = manifest;
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
            care,
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

    /// Whether it was made of another system's object.
    pub(crate) fn is_workload(&self) -> bool {
        !self.object.is_gang()
    }
}
