//! Disruption rules of a gang: whether it is preemptible, its grace, and how it checkpoints.

use serde::{Deserialize, Serialize};

use crate::units::time::Span;

/// The signal that tells a gang to checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGUSR1.
    SigUsr1,
    /// SIGUSR2.
    SigUsr2,
    /// SIGTERM.
    SigTerm,
    /// SIGINT.
    SigInt,
    /// SIGHUP.
    SigHup,
    /// SIGQUIT.
    SigQuit,
    /// SIGALRM.
    SigAlrm,
    /// SIGCONT.
    SigCont,
    /// SIGWINCH.
    SigWinch,
}

/// How a gang checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The signal to save everything; it does so within its grace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// How often it checkpoints by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// How long it takes to restore a checkpoint at start.
    #[serde(default)]
    pub restart: Span,
}

/// Whether a running gang may be disrupted, and whether it may preempt others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Disruption {
    /// Whether it may be stopped for another gang, or to save nodes.
    pub preemptible: bool,
    /// Not before it has run for so long.
    #[serde(default)]
    pub min_runtime: Span,
    /// Time between the notice to stop and being stopped.
    #[serde(default)]
    pub grace: Span,
    /// How it checkpoints, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// Whether it never preempts by priority (`preemptionPolicy: Never`): its priority gives it a place in the queue
    /// and nothing else. Its queue's guarantee and time slices still apply, because they belong to the queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_preempts: bool,
}

impl Disruption {
    /// How much of this run's progress is saved if it is stopped now: all of it where it is notified and checkpoints
    /// on a signal, else what it saved by itself.
    pub fn saved(&self, did: Span, told: bool) -> Span {
        let Some(checkpoint) = self.checkpoint else { return Span::ZERO };
        if told && checkpoint.signal.is_some() {
            return did;
        }
        match checkpoint.every {
            Some(every) if every > Span::ZERO => Span(did.0 / every.0 * every.0),
            Some(_) => did,
            None => Span::ZERO,
        }
    }
    /// How long it takes to restore a checkpoint at start.
    pub fn restart(&self) -> Span {
        self.checkpoint.map_or(Span::ZERO, |checkpoint| checkpoint.restart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_saved_by_signal_and_by_interval() {
        let of = |signal, every| {
            let checkpoint = Checkpoint { signal, every, restart: Span::ZERO };
            Disruption { checkpoint: Some(checkpoint), ..Disruption::default() }
        };
        let did = Span::mins(25);
        let cases = [
            ("saves nothing", Disruption::default(), true, Span::ZERO),
            ("saves when told", of(Some(Signal::SigUsr1), None), true, did),
            ("was not told", of(Some(Signal::SigUsr1), None), false, Span::ZERO),
            ("saves by itself", of(None, Some(Span::mins(10))), true, Span::mins(20)),
            ("saves by itself, lost", of(None, Some(Span::mins(10))), false, Span::mins(20)),
            ("both, told", of(Some(Signal::SigTerm), Some(Span::mins(10))), true, did),
            ("both, lost", of(Some(Signal::SigTerm), Some(Span::mins(10))), false, Span::mins(20)),
            ("saves all the time", of(None, Some(Span::ZERO)), false, did),
        ];
        for (case, disruption, told, saved) in cases {
            assert_eq!(disruption.saved(did, told), saved, "{case}");
        }
    }
}
