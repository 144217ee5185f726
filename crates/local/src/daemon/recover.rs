//! Starts and recovers the control plane: replays the log into the World, restores simulated machines, and reconnects
//! to every keeper that is still running.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::gang::{Phase, Seat};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::{Event, World};
use muster_forecast::Forecaster;
use muster_plan::world_for;
use muster_server::Kind;
use muster_sim::cloud::{Cloud, Remembered};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use crate::daemon::effects::Effect;
use crate::daemon::gangs::gang::{Gang, Over, Run};
use crate::daemon::gangs::runs::RUNS_SHOWN;
use crate::daemon::inputs::Input;
use crate::daemon::publish::outbox::Outbox;
use crate::daemon::queries::query_threads::QueryThreads;
use crate::daemon::state::{Counts, Daemon, Shared, Watcher};
use crate::daemon::supervise::is_locked;
use crate::daemon::timers::{Timer, Timers};
use crate::keeper::journal;
use crate::keeper::processes::cgroup::CgroupTrees;
use crate::keeper::processes::leftovers::{Leftovers, kill_keeper, kill_leftovers};
use crate::nodes::simulated_cloud::cloud_of;
use crate::store::database::{DATABASE, Store, StoreError};
use crate::store::runs::OpenRun;
use crate::system::clock::{Clock, wall_now};
use crate::system::environment;
use crate::{Options, StartError};

impl Daemon {
    /// Recovers the control plane of a data directory.
    pub(crate) fn recover(
        options: &Options,
        watchers: Vec<Watcher>,
        shared: Shared,
        inputs: UnboundedSender<Input>,
        runtime: tokio::runtime::Handle,
    ) -> Result<Self, StartError> {
        let store = Store::open(&options.data.join(DATABASE))?;
        // Before any other write: old answers may be what has filled the disk.
        if let Err(error) = store.forget_answers(wall_now() - muster_server::ANSWER_RETENTION_MS) {
            tracing::warn!(%error, "old answers cannot be removed");
        }
        let levels: Levels = match store.fact("levels")? {
            Some(text) => serde_json::from_str(&text).unwrap_or_default(),
            None => Levels::default(),
        };
        let policy = options.policy.clone();
        let Shared { board, metrics, disk } = shared;
        let world = world_for(&policy, levels.clone());
        let now = Time(wall_now());
        let query_threads = QueryThreads::new();
        let no_thread = |error| StartError::Directory { data: options.data.clone(), error };
        let (trees, lacking) = CgroupTrees::detect();
        for what in lacking {
            tracing::warn!("{what}");
        }
        let owner = owner(&store)?;
        let mut daemon = Self {
            trees,
            owner,
            supervisors: Vec::new(),
            world,
            snapshot: None,
            query_threads: query_threads.map_err(no_thread)?,
            environment: environment::allowed(&options.pass_env),
            policy,
            levels,
            clock: Clock::new(now.0, now.0, options.speed),
            now,
            store,
            unwritten: None,
            directory: options.data.clone(),
            outbox: Outbox::new(board),
            disk,
            disk_checked: None,
            objects: BTreeMap::new(),
            gangs: BTreeMap::new(),
            names: BTreeMap::new(),
            runs: BTreeMap::new(),
            clouds: Vec::new(),
            cloud: Cloud::new(Vec::new(), options.seed),
            machines: BTreeMap::new(),
            timers: Timers::default(),
            forecaster: Forecaster::default(),
            plan: Default::default(),
            targets: BTreeMap::new(),
            effects: Vec::new(),
            watchers,
            refreshed: None,
            refresh_took: Default::default(),
            stale: true,
            wake: None,
            machine: options.node.clone(),
            retention: options.keep,
            retention_checked: None,
            aging: Default::default(),
            output_measured: None,
            inputs,
            runtime,
            counts: Counts::default(),
            metrics,
        };
        daemon.world = daemon.replay_log()?;
        daemon.set_clock(options)?;
        daemon.store.begin()?;
        daemon.load_objects();
        daemon.register_defaults(options);
        daemon.restore_machines();
        daemon.load_gangs();
        daemon.recover_runs();
        daemon.expect_forecast();
        if let Some(error) = daemon.unwritten.take() {
            return Err(error.into());
        }
        daemon.store.commit()?;
        daemon.flush_outbox();
        daemon.remove_orphaned_runs();
        Ok(daemon)
    }

    /// The World, replayed from the log.
    pub(crate) fn replay_log(&self) -> Result<World, StoreError> {
        self.replay_log_with(self.levels.clone())
    }

    /// The same with another topology.
    pub(crate) fn replay_log_with(&self, levels: Levels) -> Result<World, StoreError> {
        let mut world = world_for(&self.policy, levels);
        self.store.replay(|at, event| {
            world.apply(at, &event).map_err(|refusal| format!("{refusal} ({event:?})"))
        })?;
        Ok(world)
    }

    /// Time continues from where it was, at the same speed unless another is configured.
    fn set_clock(&mut self, options: &Options) -> Result<(), StoreError> {
        let known = self.store.fact("clock")?;
        let known: Option<(i64, i64, f64)> =
            known.and_then(|text| serde_json::from_str(&text).ok());
        let latest = self.world.now().0;
        let wall = wall_now();
        let (from, world, speed) = match known {
            Some((from, world, speed)) if speed == options.speed => (from, world, speed),
            _ => (wall, latest.max(wall), options.speed),
        };
        self.clock = Clock::new(from, world, speed);
        self.now = self.clock.now().max(self.world.now());
        if wall < from || self.clock.now() < self.now {
            // The wall clock was set back.
            self.clock = Clock::new(wall, self.now.0, speed);
        }
        self.store.set_fact("clock", &json!(self.clock.parts()).to_string())
    }

    /// Initial events on first start, and this machine as a node.
    fn register_defaults(&mut self, options: &Options) {
        if !self.world.is_synced() {
            self.apply_or_log(&Event::Epoch(0));
            self.apply_or_log(&Event::QueueSet(QueueSpec::open("default")));
            self.apply_or_log(&Event::Synced);
        }
        // A node that is neither declared nor bought is this machine under an earlier name; it may have been renamed,
        // or no longer be offered.
        let is_this =
            |name: &Arc<str>| options.node.as_ref().is_some_and(|this| this.node.name == *name);
        let others: Vec<Arc<str>> = self
            .world
            .nodes()
            .filter(|(_, node)| node.claim.is_none() && !is_this(&node.name))
            .filter(|(_, node)| !self.objects.contains_key(&(Kind::Node, node.name.clone())))
            .map(|(_, node)| node.name.clone())
            .collect();
        for name in others {
            self.lose_node(&name);
        }
        if let Some(this) = &options.node {
            self.see_node(this.node.clone());
        }
    }

    fn load_objects(&mut self) {
        let objects = self.store.objects();
        for (kind, name, object) in self.check_store(objects).unwrap_or_default() {
            let kind = match kind.as_str() {
                "Queue" => Kind::Queue,
                "Pool" => Kind::Pool,
                _ => Kind::Node,
            };
            self.objects.insert((kind, name.as_str().into()), object);
        }
        // Clouds are in the order of the World's pools, including removed ones.
        let specs: Vec<_> = self.world.pools().values().map(|pool| pool.spec.clone()).collect();
        for spec in specs {
            let written = self.objects.get(&(Kind::Pool, spec.name.clone()));
            let read = written.and_then(|object| {
                let text = object.to_string();
                muster_api::read_alone("pool", &text).ok()?.pools.pop()
            });
            let model = read.map(|pool| cloud_of(pool).1).unwrap_or_default();
            self.clouds.push((spec, model));
        }
        self.cloud.set_pools(self.clouds.clone());
    }

    /// Machines went on while no control plane ran: missed stages happen in the first turn.
    fn restore_machines(&mut self) {
        let machines = self.store.machines();
        for row in self.check_store(machines).unwrap_or_default() {
            self.cloud.was_asked(row.offering);
            if row.gone || !self.world.claims().contains_key(&row.claim) {
                continue;
            }
            let remembered = Remembered {
                offering: row.offering,
                asked: row.asked,
                life: row.life.clone(),
                stopped: row.stopped,
                released: row.leaves.is_some(),
            };
            self.cloud.remember(row.claim, &remembered);
            let heard = self.world.now();
            match (row.leaves, row.stopped) {
                (Some(leaves), _) => self.timers.add(leaves, Timer::Gone(row.claim)),
                (None, Some(stopped)) if stopped > heard => {
                    self.timers.add(stopped, Timer::Stopped(row.claim));
                }
                (None, Some(_)) => {}
                (None, None) => {
                    let coming = row.life.iter().filter(|(at, _)| *at > heard);
                    let coming: Vec<_> = coming.copied().collect();
                    self.expect(row.claim, &coming);
                }
            }
            self.machines.insert(row.claim, row);
        }
        // Decisions that were committed and not executed are executed now; executed ones are not repeated.
        let claims = self.world.claims().iter();
        let (mut asked, mut released, mut parked) = (Vec::new(), Vec::new(), Vec::new());
        for (id, claim) in claims {
            let known = self.machines.get(id);
            match claim.state {
                _ if claim.releasing && known.is_none_or(|row| row.leaves.is_none()) => {
                    released.push(*id);
                }
                _ if claim.releasing => {}
                muster_core::order::ClaimState::Requested if known.is_none() => {
                    asked.push((*id, claim.offering));
                }
                muster_core::order::ClaimState::Stopping
                    if known.is_some_and(|row| row.stopped.is_none()) =>
                {
                    parked.push(*id);
                }
                _ => {}
            }
        }
        asked.into_iter().for_each(|(claim, offering)| self.request(claim, offering));
        parked.into_iter().for_each(|claim| self.park(claim));
        released.into_iter().for_each(|claim| self.release(claim));
    }

    fn load_gangs(&mut self) {
        let rows = self.store.gangs();
        for row in self.check_store(rows).unwrap_or_default() {
            let name: Arc<str> = row.name.as_str().into();
            let Ok(record) = serde_json::from_value(row.record) else {
                tracing::error!(gang = row.name, "cannot be read again and is left out");
                continue;
            };
            let submitted = self.clock.world_at(row.submitted);
            let mut gang = Gang::new(row.uid, record, submitted);
            let runs = self.store.runs_named(&name);
            gang.runs = self.check_store(runs).unwrap_or_default();
            gang.runs.drain(..gang.runs.len().saturating_sub(RUNS_SHOWN));
            if let Some(at) = row.over {
                let text = |field: &str| {
                    row.status.get(field).and_then(|text| text.as_str()).unwrap_or_default()
                };
                let good = text("phase") == "Succeeded";
                let reason = reason_of(text("reason"));
                let message = text("message").to_owned();
                gang.over = Some(Over { at, good, reason, message });
                let object = self.object_of(&gang, &row.status);
                self.outbox.set(self.clock.stamp(self.now), Kind::Gang, &name, object);
                gang.status = row.status;
            } else {
                let id = row.world.map(GangId).filter(|id| self.world.gang(*id).is_some());
                gang.id = id;
                // The World itself removes only cancelled gangs.
                let forgotten = row.world.is_some() && id.is_none() && !gang.record.held;
                let cancelled = id.is_some_and(|id| self.world.cancelled().contains(&id));
                gang.record.cancelled |= cancelled || forgotten;
                if let Some(id) = id {
                    self.names.insert(id, name.clone());
                }
            }
            self.gangs.insert(name, gang);
        }
        let names: Vec<Arc<str>> = self.gangs.keys().cloned().collect();
        names.iter().for_each(|name| self.finish_cancelled(name));
        // Gangs to be submitted later, and gangs whose submission was not committed.
        let late: Vec<(Arc<str>, i64, Time)> = self
            .gangs
            .iter()
            .filter(|(_, gang)| gang.id.is_none() && gang.over.is_none() && !gang.record.held)
            .map(|(name, gang)| (name.clone(), gang.uid, gang.submitted + gang.record.submit_after))
            .collect();
        for (name, uid, at) in late {
            self.timers.add(at, Timer::Submit(name, uid));
        }
    }

    /// Every gang with seats gets its keeper back, or a new one if none had begun.
    fn recover_runs(&mut self) {
        let open = self.store.open_runs();
        let mut latest: BTreeMap<i64, OpenRun> = BTreeMap::new();
        for run in self.check_store(open).unwrap_or_default() {
            latest.insert(run.gang, run);
        }
        let active: Vec<(Arc<str>, GangId, Vec<Seat>, Phase)> = self
            .names
            .iter()
            .filter_map(|(id, name)| {
                let gang = self.world.gang(*id)?;
                let active = !matches!(gang.phase, Phase::Waiting | Phase::Assembling(_));
                active.then(|| (name.clone(), *id, gang.seats.clone(), gang.phase.clone()))
            })
            .collect();
        for (name, id, seats, phase) in active {
            let Some(gang) = self.gangs.get_mut(&name) else { continue };
            let resize = self.world.gang(id).and_then(|gang| gang.resize.clone());
            match latest.remove(&gang.uid) {
                Some(OpenRun { run: number, started, changed, .. }) => {
                    // A started run that is being resized still has its old members. A run that has not started has the
                    // new members, or is just starting.
                    let opened = started.is_some();
                    let now = match &resize {
                        Some(resize) if !opened => resize.to.clone(),
                        Some(resize) => {
                            let mut all = seats.clone();
                            all.retain(|seat| !resize.added.contains(seat));
                            all
                        }
                        None => seats.clone(),
                    };
                    let mut run = Run::new(number, now);
                    // Recorded starts are not published again when the keeper repeats them.
                    (run.opened, run.start_published) = (opened, opened);
                    let directory = self.directory.join("runs").join(number.to_string());
                    let known = journal::read(&directory);
                    run.restore_from_journal(changed, known.as_deref().unwrap_or_default());
                    gang.run = Some(run);
                    gang.resizes = resize.as_ref().filter(|_| !opened).map(|one| one.to.clone());
                    gang.started = run_began(&phase).map(|at| (at, None));
                    self.runs.insert(number, name.clone());
                    match known {
                        Ok(known) if !opened && known.is_empty() && !is_locked(&directory) => {
                            self.keeper_gone(number, 0, None, false);
                        }
                        _ => self.effects.push(Effect::Supervise(number, directory)),
                    }
                }
                None if matches!(phase, Phase::Admitted { .. }) => self.start(id, &seats),
                None => {}
            }
            match phase {
                Phase::Stopping => {
                    let reason = self.world.gang(id).and_then(|gang| gang.stop);
                    self.stop(id, reason.unwrap_or(StopReason::Moved));
                }
                Phase::Running { .. } => {
                    if let Some(resize) = resize {
                        self.resize(id, &resize.to);
                    }
                }
                _ => {}
            }
        }
    }

    /// Removes directories of runs that are unknown or whose gang was deleted, with their keepers and processes. Done
    /// before the first run starts, so that every run begins in an empty directory.
    fn remove_orphaned_runs(&self) {
        self.trees.sweep(&self.owner, |run| self.runs.contains_key(&run));
        let Ok(runs) = std::fs::read_dir(self.directory.join("runs")) else { return };
        for entry in runs.flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            let Some(number) = number else { continue };
            // Runs that cannot be looked up are left alone.
            if self.runs.contains_key(&number) || self.store.knows_run(number).unwrap_or(true) {
                continue;
            }
            let path = entry.path();
            let group = self.trees.run(&self.owner, number);
            if is_locked(&path) {
                tracing::warn!(run = number, "its keeper is left over, and stopped");
                kill_keeper(&path);
            }
            if kill_leftovers(&path, group.as_ref()) == Leftovers::Nothing {
                let _ = std::fs::remove_dir_all(&path);
                continue;
            }
            // A killed keeper releases its lock in a moment.
            self.runtime.spawn_blocking(move || {
                while kill_leftovers(&path, group.as_ref()) != Leftovers::Nothing {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                let _ = std::fs::remove_dir_all(&path);
            });
        }
    }
}

/// Identifies the control groups of this data directory; drawn once.
fn owner(store: &Store) -> Result<String, StoreError> {
    if let Some(known) = store.fact("owner")? {
        return Ok(known);
    }
    let mut bytes = [0u8; 4];
    // Where the system has no random numbers yet, the clock differs between directories.
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).is_err() {
        bytes = (muster_clock::since_boot().subsec_nanos()).to_le_bytes();
    }
    let owner = format!("{:08x}", u32::from_le_bytes(bytes));
    store.set_fact("owner", &owner)?;
    Ok(owner)
}

fn run_began(phase: &Phase) -> Option<Time> {
    match phase {
        Phase::Running { at } => Some(*at),
        _ => None,
    }
}

/// Reasons are a closed set; reasons of another version map to one of them.
fn reason_of(text: &str) -> &'static str {
    const REASONS: [&str; 5] = ["Succeeded", "Failed", "Cancelled", "TimeLimit", "Refused"];
    REASONS.into_iter().find(|reason| *reason == text).unwrap_or("Failed")
}
