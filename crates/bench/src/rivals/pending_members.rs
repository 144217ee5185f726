//! Members that are scheduled one by one: they wait for a machine, start on the first that has room, and wait there at the
//! barrier for the rest of their gang.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use muster_core::id::ClaimId;

use crate::rivals::simulation::RivalSim;

/// Members that wait for a machine. The larger go first, then the older: in favour of the rivals, because no
/// small member takes the machine that was bought for a large one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingMembers {
    waiting: BTreeMap<(Reverse<u16>, usize), u32>,
}

/// Members of one gang without room on ready or booting machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unplaced {
    pub(crate) gang: usize,
    pub(crate) gpus: u16,
    pub(crate) count: u32,
}

impl PendingMembers {
    /// Adds members of a gang.
    pub(crate) fn want(&mut self, sim: &RivalSim<'_>, gang: usize, count: u32) {
        *self.waiting.entry((Reverse(sim.gangs[gang].gpus), gang)).or_default() += count;
    }

    /// Survivors of a lost machine stay where they are and wait at the barrier again; the lost members need another.
    pub(crate) fn broken(
        &mut self,
        sim: &mut RivalSim<'_>,
        gang: usize,
        lost: u32,
        survivors: &[ClaimId],
    ) {
        for claim in survivors {
            sim.seat(gang, *claim);
        }
        self.want(sim, gang, lost);
    }

    /// Starts members on ready machines with room, each on the one with least room to spare.
    pub(crate) fn bind(&mut self, sim: &mut RivalSim<'_>) {
        self.waiting.retain(|(Reverse(gpus), gang), count| {
            while *count > 0 {
                let Some((_, claim)) = sim.open.range((*gpus, ClaimId(0))..).next().copied() else {
                    break;
                };
                sim.seat(*gang, claim);
                *count -= 1;
            }
            *count > 0
        });
    }

    /// Members that are left when the others are assigned to booting machines. Machines that will never be ready count as
    /// booting until the strategy gives up on them.
    pub(crate) fn short(&self, sim: &RivalSim<'_>) -> Vec<Unplaced> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let room = |claim: &ClaimId| (sim.machine(*claim).gpus, *claim);
        let mut coming: BTreeSet<(u16, ClaimId)> = sim.coming.iter().map(room).collect();
        let mut short = Vec::new();
        for ((Reverse(gpus), gang), count) in &self.waiting {
            let mut left = *count;
            while left > 0 {
                let Some(best) = coming.range((*gpus, ClaimId(0))..).next().copied() else { break };
                coming.remove(&best);
                if best.0 > *gpus {
                    coming.insert((best.0 - gpus, best.1));
                }
                left -= 1;
            }
            if left > 0 {
                short.push(Unplaced { gang: *gang, gpus: *gpus, count: left });
            }
        }
        short
    }
}
