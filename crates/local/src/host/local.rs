//! The handle of a running control plane; implements the server's [`Host`] and [`IdempotencyStore`].

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muster_api::crd::Stamp;
use muster_core::time::Time;
use muster_plan::Policy;
use muster_server::{
    Answer, Applied, Board, Caller, Change, GangName, Host, IdempotencyKey, IdempotencyStore, Kind,
    LogQuery, Logs, Refused, StoredAnswer, Usage, UsageBy, UsageRequest, WhatIf, Why,
};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::daemon::inputs::Input;
use crate::daemon::retention::finished_gangs::Keep;
use crate::daemon::state::{Shared, Watcher};
use crate::host::restart::{RestartLoop, unavailable};
use crate::intake::manifests;
use crate::intake::readers::Readers;
use crate::logs::stream::LogFiles;
use crate::nodes::machine::Machine;
use crate::store::answers::AnswerRow;
use crate::store::database::{DATABASE, Store, StoreError};
use crate::store::usage::By;
use crate::system::clock::wall_now;
use crate::system::disk::Disk;
use crate::system::file_permissions;
use crate::system::unix_user;

/// Options of a control plane.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory.
    pub data: PathBuf,
    /// Simulated seconds per second.
    pub speed: f64,
    /// The seed of simulated clouds.
    pub seed: u64,
    /// This machine, if it is to be a node.
    pub node: Option<Machine>,
    /// Retention of finished gangs.
    pub keep: Keep,
    /// The planner's policy.
    pub policy: Policy,
    /// Environment variables of this process that workers inherit, beside the default ones.
    pub pass_env: Vec<String>,
    /// Whether workers may run as root for callers whose token names no Unix user, where this process is root.
    pub may_run_as_root: bool,
}

/// Why a control plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another control plane uses the data directory.
    #[error("{}: another muster{} uses this directory", data.display(), pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse {
        /// The directory.
        data: PathBuf,
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// The directory cannot be used.
    #[error("{}: {error}", data.display())]
    Directory {
        /// The directory.
        data: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a control plane ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The database can no longer be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug.
    #[error("the control plane has ended by a mistake of its own: {0}; gangs that run go on")]
    Panicked(String),
}

/// Clears the liveness flag when dropped, however the thread ends.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A control plane that runs in this process.
#[derive(Debug)]
pub struct Local {
    shared: Shared,
    inputs: mpsc::UnboundedSender<Input>,
    database: PathBuf,
    data: PathBuf,
    alive: Arc<AtomicBool>,
    readers: Readers,
    log_files: LogFiles,
    /// Permits for sums over the database, which take a while.
    summing: Arc<Semaphore>,
    /// Permits for requests that the control plane has not answered yet.
    waiting: Arc<Semaphore>,
    may_run_as_root: bool,
    thread: std::sync::Mutex<Option<std::thread::JoinHandle<Result<(), StoreError>>>>,
    _lock: File,
}

impl Local {
    /// Starts the control plane of a data directory on its own thread.
    ///
    /// # Errors
    /// If another control plane uses the directory, or its content cannot be used.
    pub fn start(
        options: &Options,
        watchers: Vec<Watcher>,
        runtime: tokio::runtime::Handle,
    ) -> Result<Self, StartError> {
        let lock = lock(&options.data)?;
        // Workers run in other directories, and their runs are identified by this path.
        let data = options.data.canonicalize();
        let data =
            data.map_err(|error| StartError::Directory { data: options.data.clone(), error })?;
        let options = &Options { data, ..options.clone() };
        let (inputs, heard) = mpsc::unbounded_channel();
        // Sequence numbers continue after a restart: no process makes a thousand entries per millisecond.
        let board = Arc::new(Board::new(wall_now().unsigned_abs() * 1_000));
        let disk = Disk::of(&options.data);
        let shared = Shared { board, metrics: Arc::default(), disk };
        let restart_loop = RestartLoop {
            options: options.clone(),
            shared: shared.clone(),
            inputs: inputs.clone(),
            runtime,
        };
        let first = match restart_loop.start(watchers) {
            Ok(daemon) => Some(daemon),
            // It starts all the same, reports the full disk, and begins when there is room.
            Err(StartError::Store(error)) if error.may_pass() => {
                shared.disk.report_full(&error);
                None
            }
            Err(error) => return Err(error),
        };
        let alive = Arc::new(AtomicBool::new(true));
        let lives = Alive(alive.clone());
        let thread =
            std::thread::Builder::new().name("control-plane".to_owned()).spawn(move || {
                let _lives = lives;
                let ended = restart_loop.run(first, heard);
                if let Err(error) = &ended {
                    tracing::error!(%error, "nothing can be written any more");
                }
                ended
            });
        let data = options.data.clone();
        let unstarted = |error| StartError::Directory { data: data.clone(), error };
        let thread = thread.map_err(unstarted)?;
        let readers = Readers::new().map_err(unstarted)?;
        let database = data.join(DATABASE);
        let thread = std::sync::Mutex::new(Some(thread));
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Ok(Self {
            shared,
            inputs,
            database,
            data,
            alive,
            readers,
            log_files: LogFiles::of(files.and_then(|files| files.try_into().ok()).unwrap_or(1_024)),
            summing: Arc::new(Semaphore::new(SUMMING)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            may_run_as_root: options.may_run_as_root,
            thread,
            _lock: lock,
        })
    }

    /// Applies manifests that are parsed already.
    pub fn take(
        &self,
        by: Caller,
        intake: manifests::Intake,
        dry_run: bool,
    ) -> Answer<Vec<Applied>> {
        let nothing = intake.is_empty();
        let intake = Box::new(intake);
        let answer = self.ask(|reply| Input::Apply { by, intake, dry_run, reply });
        Box::pin(async move {
            match answer.await {
                // A control plane with a full disk starts all the same.
                Err(Refused::Unavailable(_)) if nothing => Ok(Vec::new()),
                answered => answered,
            }
        })
    }

    /// Stops taking turns. Running gangs go on.
    pub async fn quit(&self) {
        let (done, gone) = oneshot::channel();
        if self.inputs.send(Input::Quit(done)).is_ok() {
            let _ = gone.await;
        }
    }

    /// Whether it still takes turns.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Waits until it takes no more turns.
    ///
    /// # Errors
    /// If the database could no longer be written, or it panicked.
    pub fn join(&self) -> Result<(), EndError> {
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        let Some(thread) = thread else { return Ok(()) };
        match thread.join() {
            Ok(ended) => Ok(ended?),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(EndError::Panicked(said.unwrap_or("it did not say why").to_owned()))
            }
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        input: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> Input,
    ) -> Answer<T> {
        ask(&self.inputs, &self.waiting, &self.shared, input)
    }

    /// Refuses callers whose workers would run as root without permission.
    fn check_root(&self, by: &Caller) -> Result<(), Refused> {
        if self.may_run_as_root || by.run_as.is_some() || !unix_user::may_change_user() {
            return Ok(());
        }
        let why = format!("workers of {} would run as root: its token must say `runAs`", by.name);
        Err(Refused::Forbidden(why))
    }
}

/// Concurrent sums over the database.
const SUMMING: usize = 4;
/// Concurrent requests to the control plane.
const WAITING: usize = 512;

fn ask<T: Send + 'static>(
    inputs: &mpsc::UnboundedSender<Input>,
    waiting: &Arc<Semaphore>,
    shared: &Shared,
    input: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> Input,
) -> Answer<T> {
    let (reply, answer) = oneshot::channel();
    let Ok(held) = waiting.clone().try_acquire_owned() else {
        let why = "the control plane has too much to do".to_owned();
        return Box::pin(std::future::ready(Err(Refused::Unavailable(why))));
    };
    let sent = inputs.send(input(reply)).is_ok();
    let shared = shared.clone();
    Box::pin(async move {
        let _held = held;
        let gone = || unavailable(&shared);
        if !sent {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    })
}

/// The file that is locked while a control plane uses the data directory.
const LOCK: &str = "lock";
/// How long to wait for a lock that a dead process may still hold.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Locks the data directory for this process.
fn lock(data: &Path) -> Result<File, StartError> {
    let failed = |error| StartError::Directory { data: data.to_owned(), error };
    // Output and environment of workers are private.
    file_permissions::directory(data).map_err(failed)?;
    let options = File::options().read(true).write(true).create(true).truncate(false).clone();
    let mut lock = options.open(data.join(LOCK)).map_err(failed)?;
    // If a control plane is killed while it starts a keeper, the keeper holds the lock until it has begun.
    let began = Instant::now();
    while lock.try_lock().is_err() {
        if began.elapsed() < LOCK_PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        let mut text = String::new();
        let _ = lock.read_to_string(&mut text);
        return Err(StartError::InUse { data: data.to_owned(), pid: text.trim().parse().ok() });
    }
    // The process id is written if there is room on the disk.
    let _ = lock
        .set_len(0)
        .and_then(|()| lock.rewind())
        .and_then(|()| write!(lock, "{}", std::process::id()));
    Ok(lock)
}

impl IdempotencyStore for Local {
    fn load(&self, key: IdempotencyKey) -> Answer<Option<StoredAnswer>> {
        let database = self.database.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || {
                Store::reader(&database)?.answer(&key.caller, &key.key)
            });
            let unavailable = |why: String| Refused::Unavailable(why);
            let row = read.await.map_err(|error| unavailable(error.to_string()))?;
            let row = row.map_err(|error| unavailable(error.to_string()))?;
            Ok(row.and_then(|row| {
                Some(StoredAnswer {
                    request: row.request.try_into().ok()?,
                    at: Stamp(Time(row.at)),
                    status: row.code,
                    body: row.answer,
                })
            }))
        })
    }

    fn save(&self, key: IdempotencyKey, answer: StoredAnswer) -> Answer<()> {
        let row = AnswerRow {
            request: answer.request.to_vec(),
            code: answer.status,
            answer: answer.body,
            at: answer.at.0.0,
        };
        let IdempotencyKey { caller, key } = key;
        self.ask(|reply| Input::StoreAnswer { caller, key, row, reply })
    }
}

impl Host for Local {
    fn board(&self) -> &Arc<Board> {
        &self.shared.board
    }

    fn ready(&self) -> Result<(), String> {
        match self.shared.disk.trouble.why() {
            _ if !self.is_alive() => Err("the control plane has stopped".to_owned()),
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    fn apply(&self, by: Caller, manifests: String, dry_run: bool) -> Answer<Vec<Applied>> {
        if let Err(refused) = self.check_root(&by) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let read = self.readers.read(&by, manifests);
        let (inputs, waiting) = (self.inputs.clone(), self.waiting.clone());
        let shared = self.shared.clone();
        Box::pin(async move {
            let intake = Box::new(read.await?);
            ask(&inputs, &waiting, &shared, |reply| Input::Apply { by, intake, dry_run, reply })
                .await
        })
    }

    fn remove(&self, by: Caller, kind: Kind, name: String) -> Answer<()> {
        self.ask(|reply| Input::Remove { by, kind, name, reply })
    }

    fn change(&self, by: Caller, gang: GangName, change: Change) -> Answer<Arc<Value>> {
        self.ask(|reply| Input::Change { by, gang, change, reply })
    }

    fn why(&self, gang: GangName) -> Answer<Why> {
        self.ask(|reply| Input::Why { gang, reply })
    }

    fn what_if(&self, by: Caller, manifests: String) -> Answer<Vec<WhatIf>> {
        let read = self.readers.read(&by, manifests);
        let (inputs, waiting) = (self.inputs.clone(), self.waiting.clone());
        let shared = self.shared.clone();
        Box::pin(async move {
            let intake = Box::new(read.await?);
            ask(&inputs, &waiting, &shared, |reply| Input::WhatIf { by, intake, reply }).await
        })
    }

    fn usage(&self, asked: UsageRequest) -> Answer<Vec<Usage>> {
        let database = self.database.clone();
        let summing = self.summing.clone();
        Box::pin(async move {
            let _held = summing.acquire_owned().await;
            let sum = tokio::task::spawn_blocking(move || {
                let by = match asked.by {
                    UsageBy::Queue => By::Queue,
                    UsageBy::User => By::User,
                    UsageBy::Gang => By::Gang,
                    UsageBy::Day => By::Day,
                };
                Store::reader(&database)?.used(by, asked.from.0, asked.to.0, wall_now())
            });
            let unavailable = |why: String| Refused::Unavailable(why);
            let sums = sum.await.map_err(|error| unavailable(error.to_string()))?;
            let sums = sums.map_err(|error| unavailable(error.to_string()))?;
            let usage = |sum: crate::store::usage::Sum| Usage {
                key: sum.key,
                gangs: sum.gangs,
                runs: sum.runs,
                gpu_seconds: sum.gpu_milli_ms as f64 / 1e6,
                cpu_seconds: sum.cpu_milli_ms as f64 / 1e6,
                waited_seconds: sum.waited_ms as f64 / 1e3,
                cost: sum.cost,
            };
            Ok(sums.into_iter().map(usage).collect())
        })
    }

    fn logs(&self, gang: GangName, which: LogQuery) -> Answer<Logs> {
        Box::pin(crate::logs::stream::logs(
            self.data.clone(),
            self.database.clone(),
            self.log_files.clone(),
            gang,
            which,
        ))
    }

    fn metrics(&self) -> String {
        self.shared.metrics.read().map_or_else(|_| String::new(), |text| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use muster_core::{Fact, Plan, World};

    use super::*;
    use crate::Watch;

    /// A watcher that panics at the first gang.
    struct Faints;

    impl Watch for Faints {
        fn fact(&mut self, _: Time, _: &World, fact: &Fact) {
            assert!(!matches!(fact, Fact::GangSubmitted { .. }), "it fainted");
        }

        fn stands(&mut self, _: Time, _: &World, _: &Plan) {}
    }

    #[test]
    fn reused_key_is_refused_and_repeated_request_runs_once() {
        let data = std::env::temp_dir().join(format!("muster-keys-{}", std::process::id()));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let options = Options {
            data: data.clone(),
            speed: 1.0,
            seed: 1,
            node: None,
            keep: Keep::default(),
            policy: Policy::default(),
            pass_env: Vec::new(),
            may_run_as_root: true,
        };
        let local = Local::start(&options, Vec::new(), runtime.handle().clone()).expect("started");
        let apply = |request: u8, queue: &str| {
            let key = Some(muster_server::RequestKey { key: "k".into(), request: [request; 32] });
            let by = Caller { key, ..Caller::admin("me") };
            let text = format!("kind: Queue\nmetadata: {{name: {queue}}}\nspec: {{}}\n");
            runtime.block_on(local.apply(by, text, false))
        };
        let first = apply(1, "a").expect("taken");
        assert_eq!(apply(1, "a").as_ref(), Ok(&first), "told again, not done again");
        let other = apply(2, "b").expect_err("the key was used");
        assert!(matches!(other, Refused::KeyReused(_)), "{other}");
        runtime.block_on(local.quit());
        local.join().expect("ended");
        std::fs::remove_dir_all(data).expect("removed");
    }

    #[test]
    fn panicked_control_plane_is_not_ready_and_reports_the_panic() {
        let data = std::env::temp_dir().join(format!("muster-panic-{}", std::process::id()));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let options = Options {
            data: data.clone(),
            speed: 1.0,
            seed: 1,
            node: None,
            keep: Keep::default(),
            policy: Policy::default(),
            pass_env: Vec::new(),
            may_run_as_root: true,
        };
        let watchers: Vec<Watcher> = vec![Box::new(Faints)];
        let local = Local::start(&options, watchers, runtime.handle().clone()).expect("started");
        assert_eq!(local.ready(), Ok(()));
        let gang = "kind: Gang\nmetadata: {name: a}\nspec: {roles: [{name: w, min: 1}]}\n";
        let answer = runtime.block_on(local.apply(Caller::admin("me"), gang.to_owned(), false));
        assert!(matches!(answer, Err(Refused::Unavailable(_))), "{answer:?}");
        let ended = local.join().expect_err("it panicked");
        assert!(ended.to_string().contains("it fainted"), "{ended}");
        assert!(local.ready().is_err() && !local.is_alive());
        std::fs::remove_dir_all(data).expect("removed");
    }
}
