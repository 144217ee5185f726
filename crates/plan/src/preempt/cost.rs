//! What preempting a gang costs it: work lost, restart, or the pause of a resize.

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::progress::stretched;
use muster_core::time::{Span, Time};

use crate::grow::{behind, left};

/// A member without GPUs counts as much as a tenth of one.
const NO_GPU: u64 = 100;
/// The time left at which a pause weighs exactly what it costs.
const LONG: Span = Span::hours(1);

/// The size of some seats of a gang, in thousandths of a GPU.
pub(super) fn size(world: &World, gang: &Gang, seats: &[Seat]) -> u64 {
    let each = |seat: &Seat| {
        let gpus = world.signature(gang.sigs[usize::from(seat.role)]).gpu_milli();
        gpus.max(NO_GPU) * u64::from(seat.members)
    };
    seats.iter().map(each).sum()
}

/// The size of the gang's minimum, in thousandths of a GPU.
pub(crate) fn minimum_size(world: &World, gang: &Gang) -> u64 {
    let roles = gang.spec.roles.iter().zip(&gang.sigs);
    let each = |sig| world.signature(sig).gpu_milli().max(NO_GPU);
    roles.map(|(role, sig)| each(*sig) * u64::from(role.min)).sum()
}

/// How long a gang has run since it last started.
pub(super) fn run_time(gang: &Gang, now: Time) -> Span {
    match gang.phase {
        Phase::Running { at } => now.since(at),
        Phase::Waiting | Phase::Assembling(_) | Phase::Admitted { .. } | Phase::Stopping => {
            Span::ZERO
        }
    }
}

/// The time a gang loses if it is told to stop now: the work that it cannot save, and starting again.
pub(crate) fn lost_time(gang: &Gang, now: Time) -> Span {
    if !matches!(gang.phase, Phase::Running { .. }) {
        return Span::ZERO;
    }
    let speed = gang.speed();
    let did = Span(gang.work.done_by(now, speed).0.saturating_sub(gang.work.kept.0));
    let saved = gang.spec.disruption.saved(did, true);
    stretched(Span(did.0 - saved.0), speed) + gang.spec.disruption.restart()
}

/// The same on all its seats, in milliseconds of a GPU.
pub(super) fn stop_cost(world: &World, gang: &Gang, now: Time) -> u64 {
    gpu_ms(size(world, gang, &gang.seats), lost_time(gang, now))
}

/// How long the pause of a resize weighs when candidates are compared: more for a gang that has not made up for an
/// earlier pause, and less for one that has long to make up for this one.
pub(super) fn pause_weight(gang: &Gang, now: Time) -> Span {
    let behind = gang.spec.scaling.resize + behind(gang, now);
    let left = stretched(left(gang, now), gang.speed()).max(Span::mins(1));
    let weighs = u128::from(behind.0) * u128::from(LONG.0) / u128::from(left.0);
    Span(u64::try_from(weighs).unwrap_or(u64::MAX))
}

/// So many thousandths of a GPU for so long, in milliseconds of a GPU.
pub(super) fn gpu_ms(milli: u64, span: Span) -> u64 {
    u64::try_from(u128::from(milli) * u128::from(span.0) / 1_000).unwrap_or(u64::MAX)
}
