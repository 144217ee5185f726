//! Where GPU time went: work, waits at the barrier, idle and half-used nodes; from facts alone, so that Muster and
//! the others are measured by the same code. Money and waits are the accounts' business.

use muster_core::Fact;
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef};
use muster_core::pool::PoolSpec;
use muster_core::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// A member that has started while its gang has not.
#[derive(Clone, Copy, Debug)]
struct Early {
    node: NodeIdx,
    since: Time,
    gpu_milli: u64,
}

/// A node that is ready.
#[derive(Clone, Copy, Debug)]
struct Ready {
    gpu_milli: u64,
    /// What members use of it.
    used_milli: u64,
    members: u32,
    /// Since when that is so.
    since: Time,
}

/// Reads facts and keeps the sums.
#[derive(Clone, Debug)]
pub struct Meter {
    pools: Vec<PoolSpec>,
    /// GPU thousandths of one member, by role.
    each: FxHashMap<GangId, Vec<u64>>,
    early: FxHashMap<GangId, Vec<Early>>,
    /// Since when a gang works, and with how much.
    working: FxHashMap<GangId, (Time, u64)>,
    offering_of: FxHashMap<ClaimId, OfferingRef>,
    node_of: FxHashMap<ClaimId, NodeIdx>,
    ready: FxHashMap<NodeIdx, Ready>,
    partly: FxHashSet<GangId>,
    /// GPU time of members that waited for the rest of their gang, in milliseconds.
    pub wasted_gpu_ms: u64,
    /// GPU time in which gangs worked, in milliseconds; work that was lost later is part of it.
    pub busy_gpu_ms: u64,
    /// GPU time of work that was lost because a gang had to start over, in milliseconds.
    pub lost_gpu_ms: u64,
    /// Time of ready nodes with nothing running on them, in milliseconds.
    pub idle_node_ms: u64,
    /// GPU time of such nodes.
    pub idle_gpu_ms: u64,
    /// GPU time nobody uses on nodes that others keep: a small member on a large machine.
    pub stranded_gpu_ms: u64,
}

impl Meter {
    /// Nothing measured yet; `pools` in order of declaration, to know what a complete node is.
    pub fn new(pools: Vec<PoolSpec>) -> Self {
        Self {
            pools,
            each: FxHashMap::default(),
            early: FxHashMap::default(),
            working: FxHashMap::default(),
            offering_of: FxHashMap::default(),
            node_of: FxHashMap::default(),
            ready: FxHashMap::default(),
            partly: FxHashSet::default(),
            wasted_gpu_ms: 0,
            busy_gpu_ms: 0,
            lost_gpu_ms: 0,
            idle_node_ms: 0,
            idle_gpu_ms: 0,
            stranded_gpu_ms: 0,
        }
    }
    /// Gangs of which some member started before another.
    pub fn partial_starts(&self) -> usize {
        self.partly.len()
    }

    /// Takes a fact in.
    pub fn note(&mut self, now: Time, fact: &Fact) {
        match fact {
            Fact::GangSubmitted { gang, spec } => {
                self.each.insert(*gang, each_of(spec));
            }
            Fact::MembersStarted { gang, role, node, members, .. } => {
                let gpu_milli = self.gpus_of(*gang, *role, *members);
                let early = Early { node: *node, since: now, gpu_milli };
                self.early.entry(*gang).or_default().push(early);
                self.change(now, *node, |ready| {
                    ready.members += u32::from(*members);
                    ready.used_milli += gpu_milli;
                });
            }
            Fact::MembersStopped { gang, role, node, members, .. } => {
                self.leaves_early(now, *gang, *node);
                let gpu_milli = self.gpus_of(*gang, *role, *members);
                self.change(now, *node, |ready| {
                    ready.members = ready.members.saturating_sub(u32::from(*members));
                    ready.used_milli = ready.used_milli.saturating_sub(gpu_milli);
                });
            }
            Fact::GangStarted { gang } => self.started(now, *gang),
            Fact::GangEnded { gang } => {
                self.worked(now, *gang);
                self.each.remove(gang);
            }
            Fact::GangStopped { gang, .. } => self.lost_gpu_ms += self.worked(now, *gang),
            Fact::ClaimRequested { claim, offering } => {
                self.offering_of.insert(*claim, *offering);
            }
            Fact::NodeSeen { node, claim: Some(claim), gpus, ready: true, .. } => {
                self.seen(now, *claim, *node, *gpus);
            }
            Fact::ClaimReleased { claim } => {
                self.offering_of.remove(claim);
                if let Some(node) = self.node_of.remove(claim) {
                    self.gone(now, node);
                }
            }
            Fact::NodeLost { node, .. } => self.gone(now, *node),
            _ => {}
        }
    }

    fn started(&mut self, now: Time, gang: GangId) {
        let members = self.early.remove(&gang).unwrap_or_default();
        let gpu_milli = members.iter().map(|early| early.gpu_milli).sum();
        self.working.insert(gang, (now, gpu_milli));
        for early in members {
            if early.since < now {
                self.partly.insert(gang);
                self.wasted_gpu_ms += early.gpu_milli * now.since(early.since).0 / 1_000;
            }
        }
    }

    /// Counts what a gang has worked since it started; how much that was.
    fn worked(&mut self, now: Time, gang: GangId) -> u64 {
        let Some((since, gpu_milli)) = self.working.remove(&gang) else { return 0 };
        let gpu_ms = gpu_milli * now.since(since).0 / 1_000;
        self.busy_gpu_ms += gpu_ms;
        gpu_ms
    }

    /// A member that stops before its gang has started: all its time was waste.
    fn leaves_early(&mut self, now: Time, gang: GangId, node: NodeIdx) {
        let Some(waiting) = self.early.get_mut(&gang) else { return };
        let Some(at) = waiting.iter().position(|early| early.node == node) else { return };
        let early = waiting.swap_remove(at);
        self.partly.insert(gang);
        self.wasted_gpu_ms += early.gpu_milli * now.since(early.since).0 / 1_000;
    }

    fn seen(&mut self, now: Time, claim: ClaimId, node: NodeIdx, gpus: u16) {
        let Some(at) = self.offering_of.get(&claim) else { return };
        let spec = &self.pools[usize::from(at.pool.0)].offerings[usize::from(at.slot)];
        if gpus >= spec.gpus {
            let gpu_milli = u64::from(spec.gpus) * 1_000;
            self.node_of.insert(claim, node);
            let fresh = Ready { gpu_milli, used_milli: 0, members: 0, since: now };
            self.ready.entry(node).or_insert(fresh);
        }
    }

    fn gpus_of(&self, gang: GangId, role: u16, members: u16) -> u64 {
        let each = self.each.get(&gang).and_then(|each| each.get(usize::from(role)));
        each.copied().unwrap_or(0) * u64::from(members)
    }

    /// Counts what a node was until now, and changes it.
    fn change(&mut self, now: Time, node: NodeIdx, change: impl FnOnce(&mut Ready)) {
        let Some(ready) = self.ready.get_mut(&node) else { return };
        let span = now.since(ready.since).0;
        if ready.members == 0 {
            self.idle_node_ms += span;
            self.idle_gpu_ms += ready.gpu_milli * span / 1_000;
        } else {
            self.stranded_gpu_ms += (ready.gpu_milli - ready.used_milli) * span / 1_000;
        }
        ready.since = now;
        change(ready);
    }

    fn gone(&mut self, now: Time, node: NodeIdx) {
        self.change(now, node, |_| {});
        self.ready.remove(&node);
    }
}

fn each_of(spec: &GangSpec) -> Vec<u64> {
    spec.roles.iter().map(|role| role.request.gpu_milli()).collect()
}
