//! The progress of an elastic gang: what it has left to do, and whether its pauses have paid so far.

use muster_core::gang::{Gang, Phase};
use muster_core::time::{Span, Time};

/// What a gang has left to do with every role at its `max`, if its estimate is right.
pub(crate) fn left(gang: &Gang, now: Time) -> Span {
    let done = match gang.phase {
        Phase::Running { .. } => gang.work.done_by(now, gang.speed()),
        _ => gang.work.done,
    };
    let said = gang.spec.estimated_duration();
    // A gang that has outlived its estimate is taken to have a tenth of it left.
    Span(said.0.saturating_sub(done.0).max(said.0 / 10))
}

/// How much later a gang that runs will be done than with its minimum and no pause since it started: a gang that has
/// grown lately has not made up for that yet.
pub(crate) fn behind(gang: &Gang, now: Time) -> Span {
    let Phase::Running { at } = gang.phase else { return Span::ZERO };
    let did = gang.work.done_by(now, gang.speed()).0.saturating_sub(gang.work.kept.0);
    let took = now.max(gang.work.since).since(at + gang.pause_at_start());
    Span(took.0.saturating_sub(gang.with_least(Span(did)).0))
}
