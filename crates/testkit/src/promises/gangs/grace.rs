//! A gang that is told to stop has its grace, and no more than that.
//!
//! Whether a gang has checkpointed is its own affair: it may stop as soon as it likes. The check is that a gang that
//! checkpoints on a signal was told, and that no gang runs past its grace.

use muster_core::Fact;
use muster_core::gang::GangSpec;
use muster_core::time::Span;

use crate::promises::books::Books;
use crate::promises::{Promise, Violation};

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::GangStopping { gang, .. } | Fact::GangResizing { gang, .. } => {
            books.leaving.insert(*gang, books.now);
        }
        Fact::GangResized { gang } | Fact::ResizeDeclined { gang } | Fact::GangEnded { gang } => {
            books.leaving.remove(gang);
        }
        Fact::GangStopped { gang, reason } => {
            let told = books.leaving.remove(gang).is_some();
            let Some(entry) = books.gangs.get(gang) else { return };
            let can_save = entry.started.is_some() && !entry.lost_node && saves(&entry.spec);
            if can_save && reason.is_told() && !told {
                let what =
                    format!("{} was stopped ({reason:?}) without its grace", books.name(*gang));
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
        }
        _ => {}
    }
}

pub(crate) fn check(books: &Books, found: &mut Vec<Violation>) {
    for (gang, told) in &books.leaving {
        let Some(entry) = books.gangs.get(gang) else { continue };
        let grace = entry.spec.disruption.grace;
        if books.now.since(*told) > grace {
            let what = format!("{} has not left {grace} after it was told to", entry.spec.name);
            found.push(books.violation(Promise::WholeGangDisruption, what));
        }
    }
}

/// Whether a gang uses its grace.
fn saves(spec: &GangSpec) -> bool {
    let disruption = &spec.disruption;
    disruption.grace > Span::ZERO && disruption.checkpoint.is_some_and(|c| c.signal.is_some())
}

#[cfg(test)]
mod tests {
    use muster_core::plan::StopReason;

    use crate::promises::fixture::{Fixture, saving};

    fn stopped_after(told: bool, mins: u64) -> Vec<String> {
        let mut fixture = Fixture::new(&[]);
        let gang = fixture.submit(saving("a", 5));
        fixture.start(gang, 2);
        fixture.cancel(gang);
        if told {
            fixture.stopping(gang, StopReason::Cancelled);
        }
        fixture.pass(mins);
        fixture.stop(gang, StopReason::Cancelled);
        fixture.broken()
    }

    #[test]
    fn gang_that_checkpoints_on_a_signal_is_told() {
        assert_eq!(stopped_after(true, 3), [""; 0]);
        assert_eq!(stopped_after(true, 0), [""; 0], "it may be quick");
        assert_eq!(stopped_after(false, 0), ["a was stopped (Cancelled) without its grace"]);
    }

    #[test]
    fn no_gang_runs_past_its_grace() {
        assert_eq!(stopped_after(true, 5), [""; 0]);
        assert_eq!(stopped_after(true, 6), ["a has not left 5m after it was told to"]);
    }
}
