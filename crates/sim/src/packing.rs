//! Packing: the share of a cluster's GPUs that is allocated when pods arrive one by one until nothing more fits.
//!
//! The protocol is that of FGD's published figures (USENIX ATC 2023): the pods come in random order, random ones of
//! them come again until their requests reach a multiple of the cluster's GPUs, no pod ever leaves, and a pod that does
//! not fit is dropped. A list that asks for more than that from the start is cut there. Placement is the planner's own:
//! every pod is a gang of one, and ordinary cycles in order of arrival admit what fits.
//!
//! Arrivals are not known in advance. The planner learns the mix as it always does, from submitted gangs.

use muster_core::device::WHOLE;
use muster_core::event::Refusal;
use muster_core::gang::GangSpec;
use muster_core::node::NodeSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::{Event, World};
use muster_plan::{Policy, QueueOrder, plan};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::trace::openb::{Pod, gang};

/// Pods that are submitted before the planner runs. It serves them in order and one at a time; they come together
/// for speed, since memoized node states are kept for one cycle. So the mix counts up to this many pods that wait behind
/// the one that is placed.
const BATCH: usize = 256;

/// The result of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    /// GPUs of the cluster, in thousandths.
    pub capacity_milli: u64,
    /// GPUs requested by all pods that arrived.
    pub asked_milli: u64,
    /// GPUs of pods that were placed.
    pub allocated_milli: u64,
    /// Pods that arrived.
    pub pods: usize,
    /// Pods that were placed.
    pub placed: usize,
}

impl Packed {
    /// GPUs of pods that were placed, in percent of all.
    pub fn allocated_percent(&self) -> f64 {
        100.0 * self.allocated_milli as f64 / self.capacity_milli.max(1) as f64
    }
}

/// A run that goes on batch by batch.
#[derive(Debug)]
pub struct Packing {
    world: World,
    policy: Policy,
    coming: Vec<GangSpec>,
    packed: Packed,
}

impl Packing {
    /// An empty cluster, and the pods that will come on this seed.
    ///
    /// # Errors
    /// When the World refuses a node or a pod; the readers of lists accept none that it would refuse.
    pub fn new(nodes: &[NodeSpec], pods: &[Pod], inflate: f64, seed: u64) -> Result<Self, Refusal> {
        let mut world = World::new(Levels::default());
        for node in nodes {
            world.apply(Time::ZERO, &Event::NodeSeen(node.clone()))?;
        }
        world.apply(Time::ZERO, &Event::Synced)?;
        let gpus: u64 = nodes.iter().map(|node| u64::from(node.gpus)).sum();
        let capacity_milli = gpus * u64::from(WHOLE);
        let coming = arrivals(pods, (capacity_milli as f64 * inflate).ceil() as u64, seed);
        let mut packed = Packed { capacity_milli, pods: coming.len(), ..Packed::default() };
        packed.asked_milli = coming.iter().map(|pod| pod.request.gpu_milli()).sum();
        let named = |(i, pod): (usize, &&Pod)| gang(format!("{}-{i}", pod.name).into(), pod);
        let coming = coming.iter().enumerate().map(named).rev().collect();
        let policy = Policy {
            order: QueueOrder::FifoOvertake,
            explain: false,
            trials: u32::MAX,
            ..Policy::default()
        };
        Ok(Self { world, policy, coming, packed })
    }

    /// Pods that have not arrived yet.
    pub fn left(&self) -> usize {
        self.coming.len()
    }
    /// The result so far.
    pub fn packed(&self) -> Packed {
        self.packed
    }
    /// The World as it is now.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The next batch arrives; pods that fit are placed, the others are dropped.
    ///
    /// # Errors
    /// When the World refuses what its own planner decided, which is a fault in either.
    pub fn step(&mut self) -> Result<(), Refusal> {
        let keep = self.coming.len().saturating_sub(BATCH);
        for pod in self.coming.split_off(keep).into_iter().rev() {
            self.world.apply(Time::ZERO, &Event::GangSubmitted(pod))?;
        }
        let decided = plan(&self.world, Time::ZERO, &self.policy);
        for action in decided.actions() {
            self.world.apply(Time::ZERO, &Event::Decided(action.clone()))?;
        }
        let dropped: Vec<_> = self.world.pending().iter().copied().collect();
        for gang in dropped {
            self.world.apply(Time::ZERO, &Event::GangCancelled(gang))?;
        }
        self.packed.placed = self.world.gangs().count();
        self.packed.allocated_milli =
            self.world.gangs().map(|(_, gang)| gang.wants.gpu_milli).sum();
        Ok(())
    }
}

/// The pods in random order, and random ones of them again until they ask for so much. Pods without GPUs come along.
fn arrivals(pods: &[Pod], until_milli: u64, seed: u64) -> Vec<&Pod> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<&Pod> = pods.iter().collect();
    order.shuffle(&mut rng);
    let mut asked = 0;
    let mut coming = Vec::with_capacity(order.len());
    // Without a pod that requests GPUs the target would never be reached.
    let endless = pods.iter().all(|pod| pod.request.gpu_milli() == 0);
    while asked < until_milli {
        let pod = match order.get(coming.len()) {
            Some(pod) => *pod,
            None if endless => break,
            None => order[rng.random_range(0..order.len())],
        };
        asked += pod.request.gpu_milli();
        coming.push(pod);
    }
    coming
}
