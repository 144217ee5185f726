//! How a running gang may be disrupted, and what a disruption costs it.

use muster_core::gang::{Checkpoint, Disruption, Signal};
use muster_core::time::Span;

use crate::yaml::fields::Fields;
use crate::yaml::value::Value;

/// Signals that can tell a worker to checkpoint: those that a process can catch.
pub(crate) const SIGNALS: [(&str, Signal); 9] = [
    ("SIGUSR1", Signal::SigUsr1),
    ("SIGUSR2", Signal::SigUsr2),
    ("SIGTERM", Signal::SigTerm),
    ("SIGINT", Signal::SigInt),
    ("SIGHUP", Signal::SigHup),
    ("SIGQUIT", Signal::SigQuit),
    ("SIGALRM", Signal::SigAlrm),
    ("SIGCONT", Signal::SigCont),
    ("SIGWINCH", Signal::SigWinch),
];

/// Reads `spec.disruption`. Gangs are preemptible by default, whatever their priority: a gang that must not be
/// preempted sets it.
pub(crate) fn disruption(spec: &Fields<'_>) -> Disruption {
    let mut read = Disruption { preemptible: true, ..Disruption::default() };
    let Some(fields) = spec.get("disruption").and_then(|value| value.fields()) else { return read };
    let preemptible = fields.get("preemptible").and_then(|value| value.flag());
    read.preemptible = preemptible.unwrap_or(read.preemptible);
    read.min_runtime = fields.span("minRuntime").unwrap_or_default();
    if let Some(value) = fields.get("minRuntime").filter(|_| !read.preemptible) {
        value.warn("has no effect: with `preemptible: false` the gang is never preempted");
    }
    let preempts = fields.get("preempts").and_then(|value| value.flag());
    read.never_preempts = preempts == Some(false);
    // The grace applies to gangs that cannot be preempted as well: when a node is about to be lost.
    read.grace = fields.span("grace").unwrap_or_default();
    read.checkpoint = fields.get("checkpoint").and_then(|value| checkpoint(&value, read.grace));
    fields.done();
    read
}

fn checkpoint(value: &Value<'_>, grace: Span) -> Option<Checkpoint> {
    let fields = value.fields()?;
    let signal = fields.get("signal");
    if signal.is_none() && fields.get("every").is_none() {
        value.error("must say `signal`, `every` or both");
    }
    if let Some(signal) = signal.as_ref().filter(|_| grace == Span::ZERO) {
        signal.warn("leaves no time to save: `disruption.grace` is 0");
    }
    let checkpoint = Checkpoint {
        signal: signal.and_then(|value| value.one_of(&SIGNALS)),
        every: fields.span_above_zero("every"),
        restart: fields.span("restart").unwrap_or_default(),
    };
    fields.done();
    Some(checkpoint)
}
