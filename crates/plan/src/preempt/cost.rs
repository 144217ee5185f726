//! What a gang loses when it makes way.

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::time::{Span, Time};
use muster_core::work::stretched;

use crate::grow::{behind, left};

/// A member without GPUs counts as much as a tenth of one.
const NO_GPU: u64 = 100;
/// A pause weighs what it costs for who has so long left.
const LONG: Span = Span::hours(1);

/// What some seats of a gang come to, in thousandths of a GPU.
pub(crate) fn size(world: &World, gang: &Gang, seats: &[Seat]) -> u64 {
    let each = |seat: &Seat| {
        let gpus = world.signature(gang.sigs[usize::from(seat.role)]).gpu_milli();
        gpus.max(NO_GPU) * u64::from(seat.members)
    };
    seats.iter().map(each).sum()
}

/// What the gang's minimum comes to, in thousandths of a GPU.
pub(crate) fn minimum_size(world: &World, gang: &Gang) -> u64 {
    let roles = gang.spec.roles.iter().zip(&gang.sigs);
    let each = |sig| world.signature(sig).gpu_milli().max(NO_GPU);
    roles.map(|(role, sig)| each(*sig) * u64::from(role.min)).sum()
}

/// How long a gang has run since it last started.
pub(crate) fn run_time(gang: &Gang, now: Time) -> Span {
    match gang.phase {
        Phase::Running { at } => now.since(at),
        Phase::Waiting | Phase::Assembling(_) | Phase::Admitted { .. } | Phase::Stopping => {
            Span::ZERO
        }
    }
}

/// What is lost of a gang's own time if it is told to stop now: what it cannot save, and starting again.
pub(crate) fn lost_time(gang: &Gang, now: Time) -> Span {
    if !matches!(gang.phase, Phase::Running { .. }) {
        return Span::ZERO;
    }
    let speed = gang.speed();
    let did = Span(gang.work.done_by(now, speed).0.saturating_sub(gang.work.kept.0));
    let saved = gang.spec.disruption.saved(did, true);
    stretched(Span(did.0 - saved.0), speed) + gang.spec.disruption.restart()
}

/// The same on all it holds, in milliseconds of a GPU.
pub(crate) fn stop_cost(world: &World, gang: &Gang, now: Time) -> u64 {
    gpu_ms(size(world, gang, &gang.seats), lost_time(gang, now))
}

/// How long standing still weighs beside others who could do so instead, for a gang that would go on with fewer
/// members: longer for who has not made up for an earlier pause, and less for who has long to make up for this one.
pub(crate) fn pause_weight(gang: &Gang, now: Time) -> Span {
    let behind = gang.spec.scaling.resize + behind(gang, now);
    let left = stretched(left(gang, now), gang.speed()).max(Span::mins(1));
    let weighs = u128::from(behind.0) * u128::from(LONG.0) / u128::from(left.0);
    Span(u64::try_from(weighs).unwrap_or(u64::MAX))
}

/// So many thousandths of a GPU for so long, in milliseconds of a GPU.
pub(crate) fn gpu_ms(milli: u64, span: Span) -> u64 {
    u64::try_from(u128::from(milli) * u128::from(span.0) / 1_000).unwrap_or(u64::MAX)
}
