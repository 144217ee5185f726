//! An order that is not needed any more: its gang fits on what is free.
//!
//! Nodes become free while a gang's own are still booting. Whoever then still waits for his own waits for
//! nothing. He starts at once, and what was coming for him is for whoever comes next.

use muster_core::order::{Order, RollbackReason};
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::topology::ROOT;
use muster_core::verdict::Verdict;

use crate::backfill::Holes;
use crate::cycle::Cycle;
use crate::place::{Want, asks, place};

/// Starts gangs whose orders still assemble and that fit on what nobody in the queue has taken, oldest order first.
/// Where somebody holds a start time, what is free may be his, and nothing is done.
pub(crate) fn start_sooner<'w>(cycle: &mut Cycle<'w>, holes: &Holes<'w>, plan: &mut Plan) {
    if !holes.is_empty() {
        return;
    }
    let world = cycle.scratch.world;
    let settled = |plan: &Plan, order: &Order| {
        plan.groups.iter().any(|group| group.gang == Some(order.spec.gang))
    };
    for order in world.orders().values() {
        let id = order.spec.gang;
        let gang = world.gang(id).expect("it has an order");
        if settled(plan, order) || !may_fit(cycle, order) {
            continue;
        }
        let mut trial = cycle.scratch.trial();
        trial.rise(gang, &order.held);
        let Ok(seats) = place(&mut trial, &mut cycle.fits, gang) else { continue };
        trial.keep();
        let order = order.spec.id;
        let actions = vec![
            Action::RollBack { order, reason: RollbackReason::NotNeeded },
            Action::Admit { gang: id, seats },
        ];
        plan.groups.push(ActionGroup { gang: Some(id), actions });
        if let Some((_, verdict)) = plan.verdicts.iter_mut().find(|(of, _)| *of == id) {
            *verdict = Verdict::Admitted;
        }
    }
}

/// Whether a look at the numbers leaves hope: every role has places for those that do not sit yet.
fn may_fit(cycle: &mut Cycle<'_>, order: &Order) -> bool {
    let world = cycle.scratch.world;
    let gang = world.gang(order.spec.gang).expect("it has an order");
    asks(&cycle.scratch, gang).iter().all(|ask| {
        let held = order.held.iter().filter(|seat| seat.role == ask.role);
        let held: u32 = held.map(|seat| u32::from(seat.members)).sum();
        let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(ask.sig));
        free + u64::from(held) >= u64::from(ask.count)
    })
}
