//! Gangs that may be overtaken without starving.

use std::collections::BTreeSet;

use muster_core::id::GangId;
use muster_core::plan::Plan;
use muster_core::verdict::{Blocker, Verdict};

/// Gangs that others may overtake: they can never run, their queue is at its limit, or they are right behind such a
/// gang of their own queue.
pub fn excused(plan: &Plan) -> BTreeSet<GangId> {
    let mut excused = BTreeSet::new();
    let limited = |blocker: &Blocker| {
        matches!(
            blocker,
            Blocker::QueueLimit { .. }
                | Blocker::UserLimit { .. }
                | Blocker::BeyondGuarantee { .. }
        )
    };
    loop {
        let known = excused.len();
        for (id, verdict) in &plan.verdicts {
            let may_pass = match verdict {
                Verdict::Impossible { .. } => true,
                Verdict::Waiting { blockers, .. } => match blockers.as_slice() {
                    [Blocker::Behind(ahead)] => excused.contains(ahead),
                    blockers => blockers.iter().any(limited),
                },
                _ => false,
            };
            if may_pass {
                excused.insert(*id);
            }
        }
        if excused.len() == known {
            return excused;
        }
    }
}
