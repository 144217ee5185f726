//! The host: one task that holds the World against what is seen, asks the planner, and hands out what it decides.
//!
//! It never waits for a request. Whatever takes time is done by tasks of its own, and what comes of it is seen like
//! everything else, or told through a channel when there is nothing to see.

mod accepted;
mod admit;
mod away;
mod beyond;
mod bounds;
mod claims;
mod clock;
mod decide;
mod denied;
mod disabled;
mod errands;
mod events;
#[cfg(any(test, feature = "cluster"))]
mod faults;
mod gangs;
mod gates;
mod gather;
mod groups;
mod heirs;
mod idle;
mod indexes;
mod jobs;
mod joined;
mod lanes;
mod left_out;
mod makes;
mod memory;
mod nodes;
mod objects;
mod orders;
mod outside;
mod owner_size;
mod owners;
mod pace;
mod quarantine;
mod queue_access;
mod queues;
mod rebuild;
mod record;
#[cfg(test)]
mod rehearsal;
mod remembered;
mod requests;
mod requisitions;
mod reseat;
mod resize;
mod run;
mod seats;
mod since;
mod stages;
mod standing;
mod status;
mod stop;
mod survive;
mod tally;
mod ties;
mod told_pods;
mod trust;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::node::NodeSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::verdict::Verdict;
use muster_core::{Event, World};
use muster_forecast::Forecaster;
use muster_plan::Policy;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, mpsc};

use crate::hands::Hands;
use crate::mirror::Mirror;
use crate::shelf::Key;
use accepted::Refused;
use beyond::Beyond;
use bounds::Crowds;
use clock::Clock;
use errands::Errands;
use events::Crier;
#[cfg(any(test, feature = "cluster"))]
pub use faults::Fault;
use groups::Groups;
use idle::Idle;
pub(crate) use joined::GROUPS;
use lanes::Lanes;
use left_out::Omitted;
use memory::Memory;
use objects::{KnownPool, Sources};
use quarantine::{Quarantine, Subject};
use requests::Requests;
use requisitions::Requisitions;
pub use run::{Config, HostError, MAX_GANG_MEMBERS, MAX_GANGS_PER_NAMESPACE, run};
use status::Written;
use tally::Tally;
pub(crate) use ties::Tied;
use ties::Ties;

/// What a task has to say that nobody would see otherwise.
#[derive(Debug)]
pub(crate) enum Told {
    /// Where a gang's members go is written down.
    Recorded(Arc<str>),
    /// Where a gang's members go could not be written down, and what the server has against it if that is why.
    NotRecorded { gang: Arc<str>, why: Option<String> },
    /// The members that a gang's owner was asked for may have had time enough.
    Called(Arc<str>),
    /// A gang that nothing came of may be looked at again.
    Later(Arc<str>),
    /// What is said of a gang could not be written down.
    Unwritten(Arc<str>),
    /// A pod could not be bound as it was told, and what the server has against it if that is why.
    NotBound { gang: Arc<str>, pod: Key, uid: String, why: Option<String> },
    /// A volume could not be kept for a claim of a gang.
    NotKept { gang: Arc<str>, claim: String },
    /// A pod could not be told why it waits.
    PodUntold(Key),
    /// A member of a Gang with templates could not be made.
    NotMade { gang: Arc<str>, pod: Key, why: String },
    /// A pod could not be sent away.
    NotSentAway { gang: Arc<str>, pod: Key, uid: String },
    /// A Job could not be suspended, or let run.
    JobDeaf(Arc<str>),
    /// An order is written down: those who make way for it may be told.
    OrderWritten(OrderId),
    /// An order could not be written down, so these claims of it were not asked for.
    OrderNotWritten { order: OrderId, claims: Vec<ClaimId>, why: String },
    /// A claim was refused, or is gone already.
    ClaimRefused(ClaimId, String),
    /// There was nothing to release any more.
    ClaimGone(ClaimId),
    /// Whose a node is could not be written on it.
    NotMarked(Arc<str>),
    /// What became of a request could not be written down.
    RequestUntold(Arc<str>),
}

/// What must be looked at again.
#[derive(Debug, Default)]
struct Dirty {
    nodes: BTreeSet<Arc<str>>,
    gangs: BTreeSet<Arc<str>>,
}

pub(crate) struct Host {
    config: Config,
    clock: Clock,
    mirror: Mirror,
    sources: Sources,
    world: World,
    policy: Policy,
    pools: BTreeMap<Arc<str>, KnownPool>,
    refused: Refused,
    /// Objects that are left out.
    omitted: Omitted,
    groups: Groups,
    ties: Ties,
    requests: Requests,
    requisitions: Requisitions,
    /// The order that assembles for each gang.
    orders_of: BTreeMap<Arc<str>, OrderId>,
    /// Orders that others make way for and that are not written down yet.
    unwritten_orders: BTreeSet<OrderId>,
    errands: Errands,
    verdicts: Vec<(GangId, Verdict)>,
    /// When those that hold a start time are to start.
    expected: BTreeMap<GangId, Time>,
    written: Written,
    /// Gangs that were taken in since objects were last made: theirs are made when it is known where they go, if it is.
    unmade: BTreeSet<Arc<str>>,
    /// Whether something was not written because it changes too often.
    unwritten: bool,
    /// Nodes as the World knows them: most changes of a node are heartbeats.
    seen_nodes: FxHashMap<Arc<str>, NodeSpec>,
    /// Nodes on which more is taken than seats stand for.
    beyond: Beyond,
    /// Gangs that have pods on nodes beyond what their queues allow, and when it was last looked whether they do by now.
    outside: BTreeSet<Arc<str>>,
    outside_at: Option<Instant>,
    crowds: Crowds,
    dirty: Dirty,
    /// What is left out because it makes the host panic.
    quarantine: Quarantine,
    /// What is handled now: what a panic is blamed on.
    subject: Option<Subject>,
    /// Gangs that were looked at since the planner last returned.
    unplanned: BTreeSet<Arc<str>>,
    /// Gangs that were looked at too often, and are looked at again after a while.
    later: BTreeSet<Arc<str>>,
    hands: Hands,
    crier: Crier,
    lanes: Lanes,
    tally: Tally,
    idle: Idle,
    memory: Memory,
    forecaster: Forecaster,
    told: mpsc::UnboundedSender<Told>,
    /// Somebody needs a kind that is not watched yet.
    look_around: Arc<Notify>,
    /// Whether what everything is counted by has changed.
    anew: bool,
    /// Whether the World has changed since the planner was last asked.
    changed: bool,
    wake: Option<Time>,
}

impl Host {
    /// A host that has seen nothing yet.
    fn new(config: &Config, hands: Hands, told: mpsc::UnboundedSender<Told>) -> Self {
        let identity = config.lease.as_ref().map(|lease| lease.identity.clone());
        Self {
            config: config.clone(),
            clock: Clock::new(),
            mirror: Mirror::default(),
            sources: Sources::default(),
            world: World::new(Levels::default()),
            policy: config.policy.clone(),
            pools: BTreeMap::new(),
            refused: Refused::new(),
            omitted: Omitted::default(),
            groups: Groups::default(),
            ties: Ties::default(),
            requests: Requests::default(),
            requisitions: Requisitions::default(),
            orders_of: BTreeMap::new(),
            unwritten_orders: BTreeSet::new(),
            errands: Errands::default(),
            verdicts: Vec::new(),
            expected: BTreeMap::new(),
            written: Written::default(),
            unmade: BTreeSet::new(),
            unwritten: false,
            seen_nodes: FxHashMap::default(),
            beyond: Beyond::new(),
            outside: BTreeSet::new(),
            outside_at: None,
            crowds: Crowds::default(),
            dirty: Dirty::default(),
            quarantine: Quarantine::default(),
            subject: None,
            unplanned: BTreeSet::new(),
            later: BTreeSet::new(),
            crier: Crier::new(hands.client.clone(), identity),
            hands,
            lanes: Lanes::default(),
            tally: Tally::default(),
            idle: Idle::default(),
            memory: Memory::default(),
            forecaster: Forecaster::default(),
            told,
            look_around: Arc::default(),
            anew: false,
            changed: false,
            wake: None,
        }
    }

    /// Unix time.
    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Tells the World of something, and whether it took it.
    fn happened(&mut self, event: &Event) -> bool {
        match self.world.apply(self.now(), event) {
            Ok(()) => {
                self.changed = true;
                if event.tells_of_offerings() {
                    self.tally.is_news();
                }
                true
            }
            Err(refusal) => {
                tracing::warn!(%refusal, ?event, "the World refuses an event");
                false
            }
        }
    }
}
