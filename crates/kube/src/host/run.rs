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

use super::Host;
use crate::cause::with_causes;
use crate::discover::{Heard, Wanted, served};
use crate::hands::{Hands, Pauses};
use crate::intake::{self, Interest};
use crate::lease::{self, Campaign, Leadership};
use crate::mirror::Touched;
use crate::objects::Pod;
use crate::watch::{Bounds, Newest, WatchHealth, Watches};

/// Changes under way at one time; a watcher that is faster than the host waits.
const CHANGES: usize = 16_384;
/// How often kinds are looked for that were not served before.
const LOOK_AROUND: Duration = Duration::from_secs(30);
/// Cloud disks take some ten seconds; whoever needs more than this has most likely been told a node that cannot have it.
const VOLUME_PATIENCE: Span = Span::mins(2);
/// A binding takes milliseconds, and what the server refuses now it may allow when it is asked again.
const BIND_PATIENCE: Span = Span::mins(2);
/// Schedulers take milliseconds, and restart within a minute or two.
const HAND_OVER_PATIENCE: Span = Span::mins(5);

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
    pub lease: Option<lease::Terms>,
    /// How long a gang that has seats waits for volumes that are made where its pods go.
    pub volume_patience: Span,
    /// How long a gang may be bound in part.
    pub bind_patience: Span,
    /// How long a gang whose gates were lifted waits until another scheduler has put all of it on its nodes.
    pub hand_over_patience: Span,
    /// How long room that a ProvisioningRequest asked for is kept for its pods.
    pub booking: Span,
    /// How much of what others write is kept.
    pub bounds: Bounds,
    /// How well each kind is followed, for those who measure it.
    pub watches: WatchHealth,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["muster".to_owned()],
            gpus: GpuNames::default(),
            policy: Policy::default(),
            namespace: "muster-system".to_owned(),
            lease: None,
            volume_patience: VOLUME_PATIENCE,
            bind_patience: BIND_PATIENCE,
            hand_over_patience: HAND_OVER_PATIENCE,
            booking: BOOKING,
            bounds: Bounds::default(),
            watches: WatchHealth::default(),
        }
    }
}

impl Config {
    /// Whether a pod is Muster's: to bind, or to be let go by it to another scheduler.
    pub fn serves(&self, pod: &Pod) -> bool {
        self.binds(pod) || pod.has_gate() || pod.seat().is_some()
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
}

/// How acting comes to an end that is no mistake.
enum End {
    /// Somebody said so.
    Told,
    /// What everything is counted by has changed: all of it is looked at again.
    Anew,
}

/// Runs the host until `shutdown`.
///
/// A replica that is not to act watches nothing: what it had seen could be old by the time it is. It begins with lists that
/// are asked for after it got the lease.
///
/// # Errors
/// When it cannot begin, or may not go on.
pub async fn run(
    client: Client,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> Result<(), HostError> {
    tokio::pin!(shutdown);
    let own = own_kinds();
    tokio::select! {
        () = &mut shutdown => return Ok(()),
        served = discover(&client, &own) => has_own_kinds(&served)?,
    }
    let (campaign, leadership) = match config.lease.clone() {
        Some(terms) => {
            let (campaign, leadership) = Campaign::start(client.clone(), terms);
            (Some(campaign), leadership)
        }
        None => (None, Leadership::forever()),
    };
    let mut winning = leadership.clone();
    let mut drained = true;
    let outcome = loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            () = winning.won() => tracing::info!("this replica acts now"),
        }
        let hands = Hands::new(client.clone(), leadership.clone());
        let ended = tokio::select! {
            biased;
            () = &mut shutdown => Ok(End::Told),
            ended = act(&client, &config, &hands, leadership.clone()) => ended,
        };
        drained = hands.rest().await;
        match ended {
            // What was asked before must not land after the lists that all is counted by.
            Ok(End::Anew) => {
                while !drained {
                    drained = hands.rest().await;
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

/// Looks around, and then decides for as long as the lease is held.
async fn act(
    client: &Client,
    config: &Config,
    hands: &Hands,
    mut losing: Leadership,
) -> Result<End, HostError> {
    let (changes, mut seen) = mpsc::channel(CHANGES);
    let (told, mut heard) = mpsc::unbounded_channel();
    let newest = Newest::default();
    let mut watches = Watches::new(
        client.clone(),
        changes,
        newest.clone(),
        config.bounds,
        config.watches.clone(),
    );
    let mut host = Host::new(config, client, hands.clone(), told);
    let mut pauses = Pauses::new();
    while let Err(error) = newest.ask(client).await {
        tracing::warn!(error = with_causes(&error), "the API server does not say how far it is");
        tokio::time::sleep(pauses.next(None)).await;
    }
    host.recall().await;
    host.compare_definitions(client).await;
    let served = discover(client, &host.unwatched()).await;
    has_own_kinds(&served)?;
    host.watch(served, &mut watches);
    watches.pods();
    watches.nodes();
    let wanted = host.look_around.clone();
    let mut looking = looks_around(client.clone(), host.unwatched(), wanted.clone());
    loop {
        let wait = host.wait();
        // What the host was told, and kinds that are new, are few; of what is seen there may always be more.
        tokio::select! {
            biased;
            () = losing.lost() => return Err(HostError::LeaseLost),
            Some(told) = heard.recv() => host.hear(told),
            served = &mut looking => {
                host.watch(served, &mut watches);
                looking = looks_around(client.clone(), host.unwatched(), wanted.clone());
            }
            Some(first) = seen.recv() => {
                let mut touched = Touched::default();
                let mut held = Vec::new();
                let mut next = Some(first);
                // What was there before is dropped with the rest: until then it takes its room.
                while let Some(one) = next {
                    host.mirror.take(one.change, &mut touched);
                    held.push(one.room);
                    next = if held.len() < CHANGES { seen.try_recv().ok() } else { None };
                }
                host.take(touched);
            }
            () = tokio::time::sleep(wait) => host.changed = true,
        }
        while let Ok(told) = heard.try_recv() {
            host.hear(told);
        }
        host.warn_of_unlisted();
        if host.anew {
            return Ok(End::Anew);
        }
        if host.mirror.is_complete() {
            host.turn();
        }
    }
}

/// Muster's own kinds, without which nothing can be done.
fn own_kinds() -> Vec<Sought> {
    let own = |(interest, _): &(Interest, Wanted)| OWN.iter().any(|(own, _)| own == interest);
    let wanted = intake::wanted().into_iter().filter(own);
    wanted.map(|(interest, wanted)| (Some(interest), wanted)).collect()
}

const OWN: [(Interest, &str); 4] = [
    (Interest::Gang, "Gang"),
    (Interest::Queue, "Queue"),
    (Interest::Pool, "Pool"),
    (Interest::Order, "Order"),
];

fn has_own_kinds(served: &Served) -> Result<(), HostError> {
    let is_served = |own: &Interest| served.iter().any(|(of, _)| of.as_ref() == Some(own));
    match OWN.iter().find(|(own, _)| !is_served(own)) {
        Some((_, kind)) => Err(HostError::NoCrds(kind)),
        None => Ok(()),
    }
}

/// Which kinds are served, asked until the server has said.
async fn discover(client: &Client, sought: &[Sought]) -> Served {
    let (mut pauses, mut heard) = (Pauses::new(), Heard::default());
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
pub(super) type Sought = (Option<Interest>, Wanted);
pub(super) type Served = Vec<(Option<Interest>, ApiResource)>;

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
