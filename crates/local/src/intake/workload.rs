//! Converts workloads of other systems to gangs.

use muster_api::assemble::assemble;
use muster_api::dialects::{self, Dialect, Terms};
use muster_api::pod::GpuNames;
use muster_api::workloads::{self, WorkloadKind, WorkloadRole};
use muster_api::{Finding, RunPolicy, RunSpec, Severity, label_fault, name_fault, role_fault};
use muster_core::time::Span;
use serde_json::Value;

use crate::intake::containers;
use crate::intake::manifests::{full_name, kind_of};
use crate::intake::object_text::ObjectText;
use crate::intake::record::{Mpi, Record, Task};

/// The resource by which Kubernetes counts pods on a node.
const PODS: &str = "pods";

/// The role whose end completes the workload, by the operator's own name for it.
fn ends_with(kind: WorkloadKind, roles: &[WorkloadRole]) -> Option<&str> {
    let leads: &[&str] = match kind {
        WorkloadKind::MpiJob | WorkloadKind::MpiJobV1 => &["Launcher", "launcher"],
        WorkloadKind::RayCluster => &["head"],
        _ => return None,
    };
    roles.iter().map(|role| role.name.as_str()).find(|name| leads.contains(name))
}

/// The gang of a workload.
pub(crate) fn record(file: &str, object: &Value) -> Result<Record, Finding> {
    let kind = kind_of(object).expect("a workload");
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let Some(name) = text("/metadata/name") else {
        let what = text("/kind").unwrap_or_default();
        return Err(finding(file, "metadata.name", format!("a {what} needs a name")));
    };
    let namespace = text("/metadata/namespace").unwrap_or("default");
    // The name becomes part of paths, of lines that other programs parse, and of terminal output.
    let fault = |field: &str, value: &str, fault: Option<&str>| match fault {
        Some(rule) => Err(finding(file, field, format!("{:?} {rule}", shortened(value)))),
        None => Ok(()),
    };
    fault("metadata.name", name, name_fault(name))?;
    fault("metadata.namespace", namespace, label_fault(namespace))?;
    let name = full_name(namespace, name);
    let wrong = |why: Vec<String>| finding(file, "spec", format!("{name}: {}", why.join("; ")));
    let roles = workloads::roles(object).map_err(wrong)?;
    for role in &roles {
        fault("spec", &role.name, role_fault(&role.name))?;
    }
    let mut terms = Terms::default();
    for role in &roles {
        let said = dialects::pod_terms(Dialect::Muster, &role.labels, &role.annotations);
        terms = terms.over(said.map_err(wrong)?);
    }
    let assembled = assemble(&name, &terms, &[], Some(&roles), &GpuNames::default());
    let mut spec = assembled.map_err(|why| wrong(vec![why.to_string()]))?.spec;
    // Processes need no pod slots.
    for role in &mut spec.roles {
        role.request.amounts.remove(PODS);
    }
    let mut tasks = Vec::with_capacity(spec.roles.len());
    for role in &spec.roles {
        let of = roles.iter().find(|of| *of.name == *role.name);
        let run = of.and_then(|of| of.run.clone());
        let leads = ends_with(kind, &roles).is_some_and(|leader| *leader == *role.name);
        let Some(run) = as_written(kind, leads, run) else {
            let why = format!(
                "role {} says no command: what its image would run is not known here",
                role.name
            );
            return Err(wrong(vec![why]));
        };
        tasks.push(Task::Run(run));
    }
    let mut warnings = containers::warnings(object);
    if warnings.is_empty() {
        warnings
            .push("images are not pulled: commands run as processes on this machine".to_owned());
    }
    let seconds = |path: &str| object.pointer(path).and_then(Value::as_u64);
    let deadline = seconds("/spec/activeDeadlineSeconds")
        .or_else(|| seconds("/spec/runPolicy/activeDeadlineSeconds"));
    let retries = seconds("/spec/backoffLimit").or_else(|| seconds("/spec/runPolicy/backoffLimit"));
    let run_policy = RunPolicy {
        retries: retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or_default(),
        time_limit: deadline.map(Span::secs),
        resize_signal: None,
    };
    let mpi = mpi(kind, object).map_err(wrong)?;
    let ends_with = ends_with(kind, &roles).map(Into::into);
    let text = ObjectText::from(object);
    // Only its roles are published.
    let bytes = 2 * text.bytes();
    Ok(Record {
        spec,
        tasks,
        run_policy,
        ends_with,
        mpi,
        object: text,
        submit_after: Span::ZERO,
        held: false,
        retried: 0,
        cancelled: false,
        forget: false,
        run_as: None,
        bytes,
        warnings,
    })
}

/// The command of a role. In a cluster MPI workers run an SSH server for the launcher, and the operator adds it when
/// they declare no command; here the keeper lets the launcher start ranks, and workers only sleep.
fn as_written(kind: WorkloadKind, leads: bool, run: Option<RunSpec>) -> Option<RunSpec> {
    let is_mpi = matches!(kind, WorkloadKind::MpiJob | WorkloadKind::MpiJobV1);
    let is_door = |run: &RunSpec| run.command.first().is_some_and(|word| word.ends_with("sshd"));
    if !is_mpi || leads || run.as_ref().is_some_and(|run| !is_door(run)) {
        return run;
    }
    let command = vec!["sleep".to_owned(), "infinity".to_owned()];
    Some(RunSpec { command, ..run.unwrap_or_default() })
}

/// The MPI settings of a job.
fn mpi(kind: WorkloadKind, object: &Value) -> Result<Option<Mpi>, Vec<String>> {
    if !matches!(kind, WorkloadKind::MpiJob | WorkloadKind::MpiJobV1) {
        return Ok(None);
    }
    let slots = match object.pointer("/spec/slotsPerWorker") {
        None | Some(Value::Null) => Some(1),
        Some(said) => said.as_u64().and_then(|slots| u32::try_from(slots).ok()),
    };
    let Some(slots) = slots.filter(|slots| *slots > 0) else {
        return Err(vec!["slotsPerWorker is no number of slots".to_owned()]);
    };
    let with_launcher = object.pointer("/spec/runLauncherAsWorker") == Some(&Value::Bool(true));
    Ok(Some(Mpi { slots, with_launcher }))
}

/// A text shortened to fit into a sentence.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn finding(file: &str, field: &str, reason: String) -> Finding {
    let (field, severity) = (field.to_owned(), Severity::Error);
    Finding { file: file.into(), line: 1, column: 1, field, reason, severity }
}
