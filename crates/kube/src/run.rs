//! The life of the host: acquire the lease, list everything, then run cycles for as long as the lease is held.

use std::future::Future;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::api::discovery::{check_own_kinds, discover, own_kinds, rediscover};
use crate::api::error_chain::with_causes;
use crate::api::leader_client;
use crate::api::resource_versions::ResourceVersions;
use crate::api::retry::Backoff;
use crate::api::watch::channel::Delivered;
use crate::api::watch::watches::Watches;
use crate::api::writer::ApiWriter;
use crate::cache::cluster_cache::ObservedChanges;
use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::lease::election::{LeaderElection, LeaderElectionError, LeaseConfig};
use crate::lease::heartbeat::Heartbeat;
use crate::lease::leadership::Leadership;
use crate::recover::panic::Panicked;
use crate::recover::quarantine::Quarantine;

/// Changes in the channel at one time; a watch that is faster than the host waits.
const CHANGES_MAX: usize = 16_384;

/// Why the host cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The API server does not serve one of Muster's own kinds.
    #[error(
        "the API server does not know {0}: apply Muster's CRDs first (`muster crds | kubectl apply -f -`)"
    )]
    NoCrds(&'static str),
    /// Another replica may lead now.
    #[error("the lease was lost; another replica leads now")]
    LeaseLost,
    /// The decision loop hangs.
    #[error("the decision loop made no progress for too long; the lease is released")]
    Stalled,
    /// No certificate can be read, or no thread be started.
    #[error("cannot connect to the cluster: {0}")]
    NoCluster(#[from] LeaderElectionError),
    /// The host panicked, and no object could be quarantined to prevent that.
    #[error("internal error: {0}")]
    Panicked(String),
}

/// Why the decision loop ended without an error.
enum End {
    /// The process was asked to shut down.
    Shutdown,
    /// The clock was corrected, or an object was quarantined: everything is listed again.
    Restart(Quarantine),
}

/// The TCP user timeout of writes where no lease bounds it.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);
/// How long an aborted decision loop is waited for.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the host until `shutdown`.
///
/// A standby replica watches nothing: its observations could be stale by the time it leads. A new leader begins with lists
/// that it requests after it has acquired the lease.
///
/// # Errors
/// When the host cannot start, or must not go on.
pub async fn run(
    cluster: kube::Config,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> Result<(), HostError> {
    tokio::pin!(shutdown);
    let client = Client::try_from(cluster.clone()).map_err(LeaderElectionError::from)?;
    let own = own_kinds();
    tokio::select! {
        () = &mut shutdown => return Ok(()),
        served = discover(&client, &own) => check_own_kinds(&served)?,
    }
    let heartbeat = Heartbeat::default();
    let (election, leadership) = match config.lease.clone() {
        Some(lease) => {
            let (election, leadership) =
                LeaderElection::start(cluster.clone(), lease, heartbeat.clone())?;
            (Some(election), leadership)
        }
        None => (None, Leadership::without_lease()),
    };
    let margin = config.lease.as_ref().map_or(UNACKNOWLEDGED_MAX, LeaseConfig::margin);
    let leader_client =
        leader_client::client(&cluster, &leadership, margin).map_err(LeaderElectionError::from)?;
    let mut leading = leadership.clone();
    let mut drained = true;
    let mut quarantine = Quarantine::default();
    let outcome = loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            () = leading.acquired() => tracing::info!("this replica leads now"),
        }
        let writer = ApiWriter::new(leader_client.clone(), leadership.clone());
        let term = LeaderTerm {
            client: client.clone(),
            config: config.clone(),
            writer: writer.clone(),
            heartbeat: heartbeat.clone(),
        };
        // The loop has a task of its own: if it hangs, this task still notices that the lease is lost.
        let mut task = tokio::spawn(lead(term, std::mem::take(&mut quarantine)));
        let ended = tokio::select! {
            biased;
            () = &mut shutdown => Ok(End::Shutdown),
            () = leading.lost() => Err(HostError::LeaseLost),
            ended = &mut task => ended.unwrap_or_else(|error| Err(HostError::Panicked(error.to_string()))),
        };
        if leadership.is_stalled() {
            // The task cannot be aborted, and no timer may fire.
            return Err(HostError::Stalled);
        }
        abort(task).await;
        drained = heartbeat.beat_while(writer.drain()).await;
        match ended {
            // Requests in flight must not land after the lists that the World is rebuilt from.
            Ok(End::Restart(quarantined)) => {
                quarantine = quarantined;
                while !drained {
                    drained = heartbeat.beat_while(writer.drain()).await;
                }
            }
            Ok(End::Shutdown) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    match election {
        Some(election) if drained => election.release().await,
        // A request may still land: the lease is left to expire, which the other replicas wait for.
        Some(_) => {
            tracing::warn!("the last requests were not answered: the lease is left to expire");
        }
        None => {}
    }
    outcome
}

/// Aborts the decision loop, if it has not ended by itself.
async fn abort(task: JoinHandle<Result<End, HostError>>) {
    if !task.is_finished() {
        task.abort();
        let _ = tokio::time::timeout(ABORT_TIMEOUT, task).await;
    }
}

/// The inputs of the decision loop for one term of leadership.
struct LeaderTerm {
    client: Client,
    config: Config,
    writer: ApiWriter,
    heartbeat: Heartbeat,
}

/// What woke the decision loop.
enum Wake {
    Outcome(Outcome),
    Change(Delivered),
    /// More kinds are watched.
    NewWatches,
    /// A deadline passed, or the longest pause between cycles.
    Timer,
}

/// How one pass of the decision loop ended.
enum Pass {
    Continue,
    /// The World must be rebuilt from new lists.
    Restart,
}

/// Lists everything, then runs cycles until everything must be listed again.
async fn lead(term: LeaderTerm, quarantine: Quarantine) -> Result<End, HostError> {
    let LeaderTerm { client, config, writer, heartbeat } = &term;
    let (send_change, mut changes) = mpsc::channel(CHANGES_MAX);
    let (send_outcome, mut outcomes) = mpsc::unbounded_channel();
    let newest = ResourceVersions::default();
    let mut watches = Watches::new(
        client.clone(),
        send_change,
        newest.clone(),
        config.bounds,
        config.watches.clone(),
    );
    let mut host = Host::new(config, writer.clone(), send_outcome);
    host.quarantine = quarantine;
    heartbeat.beat_while(start_watches(client, &newest, &mut host, &mut watches)).await?;
    let wanted = host.rediscover.clone();
    let mut discovery = rediscover(client.clone(), host.unwatched_kinds(), wanted.clone());
    loop {
        heartbeat.beat();
        let wait = host.time_to_next_cycle();
        // Outcomes and new kinds are few, so they come first; changes may never cease.
        let wake = tokio::select! {
            biased;
            Some(outcome) = outcomes.recv() => Wake::Outcome(outcome),
            served = &mut discovery => {
                host.watch(served, &mut watches);
                discovery = rediscover(client.clone(), host.unwatched_kinds(), wanted.clone());
                Wake::NewWatches
            }
            Some(change) = changes.recv() => Wake::Change(change),
            () = tokio::time::sleep(wait) => Wake::Timer,
        };
        match host.catch_panic(|host| host.pass(wake, &mut changes, &mut outcomes)) {
            Ok(Pass::Continue) => {}
            Ok(Pass::Restart) => return Ok(End::Restart(host.quarantine)),
            Err(Panicked(Ok(()))) => return Ok(End::Restart(host.quarantine)),
            Err(Panicked(Err(unknown))) => return Err(HostError::Panicked(unknown.0)),
        }
    }
}

/// Reads the current resource version, the learned state and the served kinds, and starts all watches.
async fn start_watches(
    client: &Client,
    newest: &ResourceVersions,
    host: &mut Host,
    watches: &mut Watches,
) -> Result<(), HostError> {
    let mut backoff = Backoff::new();
    while let Err(error) = newest.read_current(client).await {
        tracing::warn!(error = with_causes(&error), "cannot read the current resource version");
        tokio::time::sleep(backoff.next(None)).await;
    }
    host.load_learned_state().await;
    host.warn_of_outdated_crds(client).await;
    let served = discover(client, &host.unwatched_kinds()).await;
    check_own_kinds(&served)?;
    host.watch(served, watches);
    watches.pods();
    watches.nodes();
    Ok(())
}

impl Host {
    /// One pass: handles all outcomes and observes all changes that have arrived, then runs a cycle.
    fn pass(
        &mut self,
        wake: Wake,
        changes: &mut mpsc::Receiver<Delivered>,
        outcomes: &mut mpsc::UnboundedReceiver<Outcome>,
    ) -> Pass {
        match wake {
            Wake::Outcome(outcome) => self.handle_outcome(outcome),
            Wake::Change(first) => {
                let (mut observed, mut permits) = (ObservedChanges::default(), Vec::new());
                let mut next = Some(first);
                // The objects that these changes replace are dropped with `observed`; the permits are held until then.
                while let Some(delivered) = next {
                    self.cache.apply(delivered.change, &mut observed);
                    permits.push(delivered.permit);
                    next = if permits.len() < CHANGES_MAX { changes.try_recv().ok() } else { None };
                }
                self.observe(observed);
            }
            Wake::NewWatches => {}
            Wake::Timer => self.world_changed = true,
        }
        while let Ok(outcome) = outcomes.try_recv() {
            self.handle_outcome(outcome);
        }
        self.warn_of_unlisted();
        if self.must_rebuild {
            return Pass::Restart;
        }
        if self.cache.is_complete() {
            self.run_cycle();
        }
        Pass::Continue
    }
}
