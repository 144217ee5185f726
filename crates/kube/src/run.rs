//! The life of the host: win the lease, look around, and then decide for as long as the lease is held.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::ApiResource;
use muster_api::pod::GpuNames;
use muster_core::time::Span;
use muster_plan::Policy;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::api::discovery::{Heard, WatchedKind, served};
use crate::api::error_chain::with_causes;
use crate::api::leader_client;
use crate::api::resource_versions::ResourceVersions;
use crate::api::retry::Backoff;
use crate::api::watch::channel::Delivered;
use crate::api::watch::health::WatchHealth;
use crate::api::watch::watches::{Bounds, Watches};
use crate::api::writer::ApiWriter;
use crate::cache::cluster_cache::Touched;
use crate::cache::kinds;
use crate::cache::kinds::KindRole;
use crate::effects::outcome::Outcome;
use crate::features::Disabled;
use crate::gang::tenancy::queue_access::unsaid;
use crate::host::Host;
use crate::lease::election;
use crate::lease::election::{LeaderElection, LeaderElectionError};
use crate::lease::heartbeat::Heartbeat;
use crate::lease::leadership::Leadership;
use crate::objects::pod::Pod;
use crate::recover::panic::Panicked;
use crate::recover::quarantine::Quarantine;

/// Changes under way at one time; a watcher that is faster than the host waits.
const CHANGES: usize = 16_384;
/// How often kinds are looked for that were not served before.
const LOOK_AROUND: Duration = Duration::from_secs(30);
/// Cloud disks take some ten seconds; whoever needs more than this has most likely been told a node that cannot have it.
const VOLUME_BINDING_TIMEOUT: Span = Span::mins(2);
/// A binding takes milliseconds, and what the server refuses now it may allow when it is asked again.
const BIND_TIMEOUT: Span = Span::mins(2);
/// Schedulers take milliseconds, and restart within a minute or two.
const HANDOVER_TIMEOUT: Span = Span::mins(5);

/// As long as Cluster Autoscaler keeps what it has booked: who asks of both finds the same.
const BOOKING: Span = Span::mins(10);

/// How the host works.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pods that ask for one of these schedulers are Muster's to bind.
    pub scheduler_names: Vec<String>,
    /// Which resources are GPUs, besides those that say so by their name.
    pub gpus: GpuNames,
    /// How the planner decides.
    pub policy: Policy,
    /// Where Muster's own objects are that have a namespace.
    pub namespace: String,
    /// The lease that says who acts; none when there is only one replica.
    pub lease: Option<election::LeaseConfig>,
    /// How long a gang that has seats waits for volumes that are made where its pods go.
    pub volume_binding_timeout: Span,
    /// How long a gang may be bound in part.
    pub bind_timeout: Span,
    /// How long a gang whose gates were lifted waits until another scheduler has put all of it on its nodes.
    pub handover_timeout: Span,
    /// How long room that a ProvisioningRequest asked for is kept for its pods.
    pub booking_ttl: Span,
    /// Whether an admission policy stamps `muster.sh/user` on what is created, so that it can be believed.
    pub trust_users: bool,
    /// What the controller has no rights for.
    pub disabled: Disabled,
    /// Faults that a test injects.
    #[cfg(any(test, feature = "cluster"))]
    pub faults: Vec<crate::recover::injected_faults::Fault>,
    /// Members that one gang may have.
    pub max_gang_members: u32,
    /// Gangs of one namespace that are planned at one time.
    pub max_gangs_per_namespace: u32,
    /// How much of what others write is kept.
    pub bounds: Bounds,
    /// How well each kind is followed, for those who measure it.
    pub watches: WatchHealth,
}

/// Each member costs memory and a place in a status, and a status holds about fourteen thousand places.
pub const MAX_GANG_MEMBERS: u32 = 10_000;
/// Each gang costs the planner a look in every cycle. A namespace with more has gangs that could not start today.
pub const MAX_GANGS_PER_NAMESPACE: u32 = 10_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["muster".to_owned()],
            gpus: GpuNames::default(),
            policy: Self::policy(),
            namespace: "muster-system".to_owned(),
            lease: None,
            volume_binding_timeout: VOLUME_BINDING_TIMEOUT,
            bind_timeout: BIND_TIMEOUT,
            handover_timeout: HANDOVER_TIMEOUT,
            booking_ttl: BOOKING,
            trust_users: false,
            disabled: Disabled::default(),
            #[cfg(any(test, feature = "cluster"))]
            faults: Vec::new(),
            max_gang_members: MAX_GANG_MEMBERS,
            max_gangs_per_namespace: MAX_GANGS_PER_NAMESPACE,
            bounds: Bounds::default(),
            watches: WatchHealth::default(),
        }
    }
}

impl Config {
    /// How the planner decides among tenants that do not trust each other, as a default.
    pub fn policy() -> Policy {
        Policy { unsaid: unsaid(), ..Policy::default() }
    }

    /// Whether a pod asks for Muster: to bind it, or to lift its gate for another scheduler.
    pub fn serves(&self, pod: &Pod) -> bool {
        self.binds(pod) || pod.has_gate()
    }

    /// Whether a pod is Muster's to bind.
    pub fn binds(&self, pod: &Pod) -> bool {
        self.serves_name(pod.spec.scheduler_name.as_deref().unwrap_or_default())
    }

    /// Whether a scheduler's name is one of Muster's.
    pub(crate) fn serves_name(&self, asked: &str) -> bool {
        self.scheduler_names.iter().any(|name| name == asked)
    }
}

/// Why the host cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Muster's own kinds are not there.
    #[error(
        "the API server does not know {0}: apply Muster's CRDs first (`muster crds | kubectl apply -f -`)"
    )]
    NoCrds(&'static str),
    /// Another replica acts now.
    #[error("the lease was lost; another replica acts now")]
    LeaseLost,
    /// The decision loop hangs.
    #[error("the decision loop made no progress for too long; the lease is let go")]
    Stalled,
    /// No certificate can be read, or no thread be started.
    #[error("the cluster cannot be spoken to: {0}")]
    NoCluster(#[from] LeaderElectionError),
    /// The host panicked, and nothing could be left out to prevent that.
    #[error("internal error: {0}")]
    Panicked(String),
}

/// How acting comes to an end that is no mistake.
enum End {
    /// Somebody said so.
    Told,
    /// What everything is counted by has changed, or something must be left out: all of it is looked at again.
    Anew(Quarantine),
}

/// How long data that the server does not acknowledge is kept where there is no lease that could run out.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// How long a decision loop that was told to end is waited for.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// Runs the host until `shutdown`.
///
/// A replica that is not to act watches nothing: what it had seen could be old by the time it is. It begins with lists that
/// are asked for after it got the lease.
///
/// # Errors
/// When it cannot begin, or may not go on.
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
        served = discover(&client, &own) => has_own_kinds(&served)?,
    }
    let pulse = Heartbeat::default();
    let (campaign, leadership) = match config.lease.clone() {
        Some(terms) => {
            let (campaign, leadership) =
                LeaderElection::start(cluster.clone(), terms, pulse.clone())?;
            (Some(campaign), leadership)
        }
        None => (None, Leadership::forever()),
    };
    let margin = config.lease.as_ref().map_or(UNACKNOWLEDGED, election::LeaseConfig::margin);
    let writer =
        leader_client::client(&cluster, &leadership, margin).map_err(LeaderElectionError::from)?;
    let mut winning = leadership.clone();
    let mut drained = true;
    let mut quarantine = Quarantine::default();
    let outcome = loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            () = winning.won() => tracing::info!("this replica acts now"),
        }
        let hands = ApiWriter::new(writer.clone(), leadership.clone());
        let acting = Acting {
            client: client.clone(),
            config: config.clone(),
            hands: hands.clone(),
            pulse: pulse.clone(),
        };
        // On a task of its own: one that hangs must not keep this one from seeing that the lease is lost.
        let mut task = tokio::spawn(act(acting, std::mem::take(&mut quarantine)));
        let ended = tokio::select! {
            biased;
            () = &mut shutdown => Ok(End::Told),
            () = winning.lost() => Err(HostError::LeaseLost),
            ended = &mut task => ended.unwrap_or_else(|error| Err(HostError::Panicked(error.to_string()))),
        };
        if leadership.is_stalled() {
            // Neither can the task be ended, nor are there timers that anything could be waited with.
            return Err(HostError::Stalled);
        }
        end(task).await;
        drained = pulse.keep(hands.rest()).await;
        match ended {
            // What was asked before must not land after the lists that all is counted by.
            Ok(End::Anew(left_out)) => {
                quarantine = left_out;
                while !drained {
                    drained = pulse.keep(hands.rest()).await;
                }
            }
            Ok(End::Told) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    match campaign {
        Some(campaign) if drained => campaign.resign().await,
        // It may still happen: the others wait until the lease has run out.
        Some(_) => {
            tracing::warn!("what was asked last was not answered: the lease is not given up");
        }
        None => {}
    }
    outcome
}

/// Ends a decision loop, if it has not ended by itself.
async fn end(task: JoinHandle<Result<End, HostError>>) {
    if !task.is_finished() {
        task.abort();
        let _ = tokio::time::timeout(ENDED_WITHIN, task).await;
    }
}

/// What the decision loop works with.
struct Acting {
    client: Client,
    config: Config,
    hands: ApiWriter,
    pulse: Heartbeat,
}

/// What a pass begins with.
enum Step {
    Told(Outcome),
    Seen(Delivered),
    /// More kinds are watched.
    Watches,
    /// Nothing was seen for long enough.
    IdleNodes,
}

/// How a pass ended.
enum Pass {
    Decided,
    /// All must be counted anew.
    Anew,
}

/// Looks around, and then decides until all must be counted anew.
async fn act(acting: Acting, quarantine: Quarantine) -> Result<End, HostError> {
    let Acting { client, config, hands, pulse } = &acting;
    let (changes, mut seen) = mpsc::channel(CHANGES);
    let (told, mut heard) = mpsc::unbounded_channel();
    let newest = ResourceVersions::default();
    let mut watches = Watches::new(
        client.clone(),
        changes,
        newest.clone(),
        config.bounds,
        config.watches.clone(),
    );
    let mut host = Host::new(config, hands.clone(), told);
    host.quarantine = quarantine;
    pulse.keep(look_around_first(client, &newest, &mut host, &mut watches)).await?;
    let wanted = host.rediscover.clone();
    let mut looking = looks_around(client.clone(), host.unwatched_kinds(), wanted.clone());
    loop {
        pulse.beat();
        let wait = host.wait();
        // What the host was told, and kinds that are new, are few; of what is seen there may always be more.
        let step = tokio::select! {
            biased;
            Some(told) = heard.recv() => Step::Told(told),
            served = &mut looking => {
                host.watch(served, &mut watches);
                looking = looks_around(client.clone(), host.unwatched_kinds(), wanted.clone());
                Step::Watches
            }
            Some(change) = seen.recv() => Step::Seen(change),
            () = tokio::time::sleep(wait) => Step::IdleNodes,
        };
        match host.survive(|host| host.pass(step, &mut seen, &mut heard)) {
            Ok(Pass::Decided) => {}
            Ok(Pass::Anew) => return Ok(End::Anew(host.quarantine)),
            Err(Panicked(Ok(()))) => return Ok(End::Anew(host.quarantine)),
            Err(Panicked(Err(unknown))) => return Err(HostError::Panicked(unknown.0)),
        }
    }
}

/// Asks how far the server is, what was learnt, and what it serves; and begins to watch it.
async fn look_around_first(
    client: &Client,
    newest: &ResourceVersions,
    host: &mut Host,
    watches: &mut Watches,
) -> Result<(), HostError> {
    let mut pauses = Backoff::new();
    while let Err(error) = newest.ask(client).await {
        tracing::warn!(error = with_causes(&error), "the API server does not say how far it is");
        tokio::time::sleep(pauses.next(None)).await;
    }
    host.recall().await;
    host.compare_definitions(client).await;
    let served = discover(client, &host.unwatched_kinds()).await;
    has_own_kinds(&served)?;
    host.watch(served, watches);
    watches.pods();
    watches.nodes();
    Ok(())
}

impl Host {
    /// One pass: takes in all that was seen and told, and decides.
    fn pass(
        &mut self,
        step: Step,
        seen: &mut mpsc::Receiver<Delivered>,
        heard: &mut mpsc::UnboundedReceiver<Outcome>,
    ) -> Pass {
        match step {
            Step::Told(told) => self.handle_outcome(told),
            Step::Seen(first) => {
                let (mut touched, mut held) = (Touched::default(), Vec::new());
                let mut next = Some(first);
                // What was there before is dropped with the rest: until then it takes its room.
                while let Some(one) = next {
                    self.cache.take(one.change, &mut touched);
                    held.push(one.room);
                    next = if held.len() < CHANGES { seen.try_recv().ok() } else { None };
                }
                self.take(touched);
            }
            Step::Watches => {}
            Step::IdleNodes => self.world_changed = true,
        }
        while let Ok(told) = heard.try_recv() {
            self.handle_outcome(told);
        }
        self.warn_of_unlisted();
        if self.must_rebuild {
            return Pass::Anew;
        }
        if self.cache.is_complete() {
            self.turn();
        }
        Pass::Decided
    }
}

/// Muster's own kinds, without which nothing can be done.
fn own_kinds() -> Vec<Sought> {
    let own = |(interest, _): &(KindRole, WatchedKind)| OWN.iter().any(|(own, _)| own == interest);
    let wanted = kinds::wanted().into_iter().filter(own);
    wanted.map(|(interest, wanted)| (Some(interest), wanted)).collect()
}

const OWN: [(KindRole, &str); 4] = [
    (KindRole::Gang, "Gang"),
    (KindRole::Queue, "Queue"),
    (KindRole::Pool, "Pool"),
    (KindRole::Order, "Order"),
];

fn has_own_kinds(served: &Served) -> Result<(), HostError> {
    let is_served = |own: &KindRole| served.iter().any(|(of, _)| of.as_ref() == Some(own));
    match OWN.iter().find(|(own, _)| !is_served(own)) {
        Some((_, kind)) => Err(HostError::NoCrds(kind)),
        None => Ok(()),
    }
}

/// Which kinds are served, asked until the server has said.
async fn discover(client: &Client, sought: &[Sought]) -> Served {
    let (mut pauses, mut heard) = (Backoff::new(), Heard::default());
    loop {
        match served(client, sought, &mut heard).await {
            Ok(served) => return served,
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(error, "the API server does not say what it serves");
            }
        }
        tokio::time::sleep(pauses.next(None)).await;
    }
}

/// A kind that is looked for, and where it is served if it is: one that is of interest, or claims.
pub(crate) type Sought = (Option<KindRole>, WatchedKind);
pub(crate) type Served = Vec<(Option<KindRole>, ApiResource)>;

/// Looks for kinds that were not served before, after a while or when somebody needs one, again and again until the
/// server has said.
fn looks_around(
    client: Client,
    sought: Vec<Sought>,
    wanted: Arc<Notify>,
) -> Pin<Box<dyn Future<Output = Served> + Send>> {
    Box::pin(async move {
        loop {
            // However many need one, the server is asked once a second.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let _ = tokio::time::timeout(LOOK_AROUND, wanted.notified()).await;
            match served(&client, &sought, &mut Heard::default()).await {
                Ok(served) => return served,
                Err(error) => tracing::debug!(%error, "could not look around"),
            }
        }
    })
}
