//! The state of the control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::plan::{Plan, Target};
use muster_core::pool::PoolSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::{Fact, World};
use muster_forecast::Forecaster;
use muster_plan::Policy;
use muster_server::{Board, Kind};
use muster_sim::cloud::{Cloud, CloudModel};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::daemon::effects::Effect;
use crate::daemon::gangs::gang::Gang;
pub(crate) use crate::daemon::inputs::Input;
use crate::daemon::publish::outbox::Outbox;
use crate::daemon::queries::query_threads::QueryThreads;
use crate::daemon::retention::finished_gangs::{Aging, Keep};
use crate::daemon::timers::Timers;
use crate::keeper::processes::cgroup::CgroupTrees;
use crate::nodes::machine::Machine;
use crate::store::database::{Store, StoreError};
use crate::store::machines::MachineRow;
use crate::system::clock::Clock;
use crate::system::disk::Disk;

/// An observer of everything that happens. It runs on the control plane's thread.
pub trait Watch: Send {
    /// A fact.
    fn fact(&mut self, now: Time, world: &World, fact: &Fact);
    /// The state after a change, with a verdict for every gang.
    fn stands(&mut self, now: Time, world: &World, plan: &Plan);
}

/// A watcher.
pub type Watcher = Box<dyn Watch>;

/// The control plane.
pub(crate) struct Daemon {
    pub(super) world: World,
    /// A copy of the World for queries, until it changes.
    pub(super) snapshot: Option<Arc<World>>,
    pub(super) query_threads: QueryThreads,
    pub(super) policy: Policy,
    pub(super) levels: Levels,
    pub(super) clock: Clock,
    /// The World's time in this turn.
    pub(super) now: Time,
    pub(super) store: Store,
    /// The first failed write of this turn. No effect is executed then.
    pub(super) unwritten: Option<StoreError>,
    pub(super) directory: PathBuf,
    pub(super) outbox: Outbox,
    pub(super) disk: Disk,
    /// When disk space was last checked.
    pub(super) disk_checked: Option<Instant>,
    /// Queues, pools and nodes as submitted.
    pub(super) objects: BTreeMap<(Kind, Arc<str>), Value>,
    /// The latest gang of each name.
    pub(super) gangs: BTreeMap<Arc<str>, Gang>,
    pub(super) names: BTreeMap<GangId, Arc<str>>,
    /// The gang of each run that has not ended.
    pub(super) runs: BTreeMap<u64, Arc<str>>,
    pub(super) clouds: Vec<(PoolSpec, CloudModel)>,
    pub(super) cloud: Cloud,
    pub(super) machines: BTreeMap<ClaimId, MachineRow>,
    pub(super) timers: Timers,
    pub(super) forecaster: Forecaster,
    /// The latest plan, and the latest targets of each pool.
    pub(super) plan: Plan,
    pub(super) targets: BTreeMap<PoolIdx, Target>,
    pub(super) effects: Vec<Effect>,
    /// The variables of this process's environment that keepers and workers inherit.
    pub(super) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub(super) watchers: Vec<Watcher>,
    /// When the board was last refreshed.
    pub(super) refreshed: Option<Instant>,
    /// How long that took.
    pub(super) refresh_took: std::time::Duration,
    /// Whether the board is out of date.
    pub(super) stale: bool,
    pub(super) wake: Option<Time>,
    pub(super) retention: Keep,
    /// This machine, if it is a node.
    pub(super) machine: Option<Machine>,
    /// When retention was last checked.
    pub(super) retention_checked: Option<Instant>,
    pub(super) aging: Aging,
    /// When output was last measured.
    pub(super) output_measured: Option<Instant>,
    /// Where control groups can be made, and the identifier of this data directory in their names.
    pub(super) trees: CgroupTrees,
    pub(super) owner: String,
    /// Tasks that supervise keepers.
    pub(super) supervisors: Vec<AbortHandle>,
    pub(super) inputs: UnboundedSender<Input>,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) counts: Counts,
    /// The metrics as text, for readers on other threads.
    pub(super) metrics: Arc<RwLock<String>>,
}

/// Counters for metrics. They start at zero with the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) turns: u64,
    pub(crate) submitted: u64,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) failed: u64,
    pub(crate) stopped: u64,
    pub(crate) orders: u64,
    pub(crate) rolled_back: u64,
    pub(crate) plan_us: u64,
}

/// What other threads read, also while the control plane cannot run.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) board: Arc<Board>,
    pub(crate) metrics: Arc<RwLock<String>>,
    pub(crate) disk: Disk,
}

/// Why the control plane stopped taking turns.
pub(crate) enum Ended {
    /// It was told to quit.
    Quit,
    /// The database could not be written.
    Failed {
        error: StoreError,
        /// The watchers, for the next start.
        watchers: Vec<Watcher>,
    },
}

impl Daemon {
    pub(crate) fn watched_by(mut self, watchers: Vec<Watcher>) -> Self {
        self.watchers = watchers;
        self
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The next control plane supervises the same keepers.
        self.supervisors.iter().for_each(AbortHandle::abort);
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").field("now", &self.now).finish_non_exhaustive()
    }
}
