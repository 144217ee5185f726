//! The control plane: one thread that owns the World and the database.
//!
//! It takes turns. A turn hears what has come in, lets time pass, decides, and writes all of it down in one transaction.
//! Only when that is on the disk does it act: machines are asked for, keepers started, questions answered (`deeds`).
//! Nothing it does takes long; what does is done by tasks, and what they find comes back as something to hear.

mod agenda;
mod answering;
mod apply;
mod attend;
mod change;
mod cloud;
mod decide;
mod deeds;
mod facts;
mod gang;
mod hear;
mod outbox;
mod output;
mod questions;
mod rehearse;
mod resize;
mod resume;
mod retain;
mod runs;
mod scale;
mod seats;
mod show;
mod turn;

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

use crate::clock::Clock;
use crate::disk::Disk;
use crate::keeper::Trees;
use crate::nodes::Machine;
use crate::store::{MachineRow, Store, StoreError};
use agenda::Agenda;
use deeds::Deed;
use gang::Gang;
pub(crate) use hear::Input;
use outbox::Outbox;
pub use retain::Keep;

/// Whoever wants to see everything as it happens. What it does takes the control plane's time.
pub trait Watch: Send {
    /// Something happened.
    fn fact(&mut self, now: Time, world: &World, fact: &Fact);
    /// This is where everything stands, after some of it has changed; with a verdict for every gang.
    fn stands(&mut self, now: Time, world: &World, plan: &Plan);
}

/// A watcher.
pub type Watcher = Box<dyn Watch>;

/// The control plane.
pub(crate) struct Daemon {
    world: World,
    /// A copy of it for questions, until it changes.
    snapshot: Option<Arc<World>>,
    pool: answering::Pool,
    policy: Policy,
    levels: Levels,
    clock: Clock,
    /// When this turn is, for the World.
    now: Time,
    store: Store,
    /// The first write of this turn that failed. Nothing is done then.
    unwritten: Option<StoreError>,
    directory: PathBuf,
    outbox: Outbox,
    disk: Disk,
    /// When the room on the disk was last looked at.
    disk_looked: Option<Instant>,
    /// Queues, pools and nodes as they were written.
    objects: BTreeMap<(Kind, Arc<str>), Value>,
    /// The latest gang of each name.
    gangs: BTreeMap<Arc<str>, Gang>,
    names: BTreeMap<GangId, Arc<str>>,
    /// Whose run is whose, while it is not over.
    runs: BTreeMap<u64, Arc<str>>,
    clouds: Vec<(PoolSpec, CloudModel)>,
    cloud: Cloud,
    machines: BTreeMap<ClaimId, MachineRow>,
    agenda: Agenda,
    forecaster: Forecaster,
    /// The latest plan, and when each pool's targets were last told.
    plan: Plan,
    targets: BTreeMap<PoolIdx, Target>,
    deeds: Vec<Deed>,
    /// What keepers and workers find in their environment of this process's.
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    watchers: Vec<Watcher>,
    /// When the board was last brought up to date, and whether it is not any more.
    shown: Option<Instant>,
    /// How long that took.
    showing: std::time::Duration,
    stale: bool,
    wake: Option<Time>,
    retain: Keep,
    /// This machine, if it is a node.
    machine: Option<Machine>,
    /// When it was last looked for gangs that are to be forgotten.
    looked: Option<Instant>,
    aging: retain::Aging,
    /// When it was last measured how much gangs have printed.
    measured: Option<Instant>,
    /// Where control groups can be made, and what those of this data directory are called by.
    trees: Trees,
    owner: String,
    /// Tasks that attend to keepers.
    attending: Vec<AbortHandle>,
    inputs: UnboundedSender<Input>,
    runtime: tokio::runtime::Handle,
    counts: Counts,
    /// The counts as others read them.
    metrics: Arc<RwLock<String>>,
}

/// What happened so far, for metrics. Begins anew with the process.
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

/// What others read while it takes turns, and while it cannot.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) board: Arc<Board>,
    pub(crate) metrics: Arc<RwLock<String>>,
    pub(crate) disk: Disk,
}

/// Why a control plane takes no more turns.
pub(crate) enum Ended {
    /// It was told to.
    Quit,
    /// Nothing could be written.
    Failed {
        error: StoreError,
        /// Whoever watched it.
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
        // Another one attends to the same keepers.
        self.attending.iter().for_each(AbortHandle::abort);
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").field("now", &self.now).finish_non_exhaustive()
    }
}
