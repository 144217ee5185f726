//! The life of the host: watch, win the lease, look around, and then decide for as long as the lease is held.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::ApiResource;
use muster_api::pod::GpuNames;
use muster_core::time::Span;
use muster_plan::Policy;
use tokio::sync::{Notify, mpsc};

use super::objects::CLAIMS;
use super::record::AGAIN;
use super::{Host, Told};
use crate::discover::{Heard, Wanted, served};
use crate::hands::{Hands, Pauses};
use crate::intake::Interest;
use crate::lease::{self, Campaign, Leadership};
use crate::mirror::Touched;
use crate::objects::Pod;
use crate::watch::{Newest, Watches};

/// Changes under way at one time; a watcher that is faster than the host waits.
const CHANGES: usize = 16_384;
/// How often kinds are looked for that were not served before.
const LOOK_AROUND: Duration = Duration::from_secs(30);
/// The longest that nothing is decided: clocks are compared, deadlines looked at.
const AT_LEAST: Duration = Duration::from_secs(10);

/// How often one gang is looked at in one turn. Each look may bring it a step further, and a handful is what the longest
/// way takes.
const LOOKS: u32 = 16;

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

/// Runs the host until `shutdown`.
///
/// # Errors
/// When it cannot begin, or may not go on.
pub async fn run(
    client: Client,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> Result<(), HostError> {
    tokio::pin!(shutdown);
    let (campaign, leadership) = match config.lease.clone() {
        Some(terms) => {
            let (campaign, leadership) = Campaign::start(client.clone(), terms);
            (Some(campaign), leadership)
        }
        None => (None, Leadership::forever()),
    };
    // Everything is watched before it is this replica's turn, so that it can begin at once.
    let (changes, mut seen) = mpsc::channel(CHANGES);
    let (told, mut heard) = mpsc::unbounded_channel();
    let newest = Newest::default();
    let mut watches = Watches::new(client.clone(), changes, newest.clone());
    let hands = Hands::new(client.clone(), leadership.clone());
    let mut host = Host::new(&config, &client, hands, told);
    let (mut pauses, mut heard_of, mut knows) = (Pauses::new(), Heard::default(), false);
    loop {
        let asked = async {
            if !knows {
                newest.ask(&client).await?;
                knows = true;
            }
            served(&client, &host.unwatched(), &mut heard_of).await
        };
        match asked.await {
            Ok(served) => break host.watch(served, &mut watches),
            Err(error) => tracing::warn!(%error, "the API server does not say what it serves"),
        }
        tokio::select! {
            () = tokio::time::sleep(pauses.next(None)) => {}
            () = &mut shutdown => return Ok(()),
        }
    }
    for (interest, kind) in [
        (Interest::Gang, "Gang"),
        (Interest::Queue, "Queue"),
        (Interest::Pool, "Pool"),
        (Interest::Order, "Order"),
    ] {
        if host.sources.of(interest).is_none() {
            return Err(HostError::NoCrds(kind));
        }
    }
    watches.pods();
    watches.nodes();
    let mut leads = false;
    let (mut winning, mut losing) = (leadership.clone(), leadership);
    let wanted = host.look_around.clone();
    let mut looking = looks_around(client.clone(), host.unwatched(), wanted.clone());
    let outcome = loop {
        let wait = host.wait();
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            () = losing.lost(), if leads => break Err(HostError::LeaseLost),
            () = winning.won(), if !leads => {
                leads = true;
                tracing::info!("this replica acts now");
            }
            Some(change) = seen.recv() => {
                let mut touched = Touched::default();
                host.mirror.take(change, &mut touched);
                while let Ok(change) = seen.try_recv() {
                    host.mirror.take(change, &mut touched);
                }
                host.take(touched);
            }
            Some(told) = heard.recv() => host.hear(told),
            served = &mut looking => {
                host.watch(served, &mut watches);
                looking = looks_around(client.clone(), host.unwatched(), wanted.clone());
            }
            () = tokio::time::sleep(wait), if leads => host.changed = true,
        }
        host.warn_of_unlisted();
        if leads && host.mirror.is_complete() {
            host.turn();
        }
    };
    if let Some(campaign) = campaign {
        host.hands.rest().await;
        campaign.resign().await;
    }
    outcome
}

/// A kind that is looked for, and where it is served if it is: one that is of interest, or claims.
type Sought = (Option<Interest>, Wanted);
type Served = Vec<(Option<Interest>, ApiResource)>;

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

impl Host {
    /// Kinds that are not watched yet.
    fn unwatched(&self) -> Vec<Sought> {
        let missing = self.sources.missing().into_iter();
        let mut sought: Vec<Sought> = missing.map(|(of, wanted)| (Some(of), wanted)).collect();
        sought.extend((!self.mirror.has_claims).then_some((None, CLAIMS)));
        sought
    }

    pub(super) fn watch(&mut self, served: Served, watches: &mut Watches) {
        for (interest, kind) in served {
            match interest {
                Some(interest) => {
                    let source = self.sources.add(interest, kind, watches);
                    source.into_iter().for_each(|source| {
                        self.mirror.add(source, !interest.is_needed_by_all());
                    });
                }
                None => {
                    self.mirror.has_claims = true;
                    watches.claims();
                }
            }
        }
    }

    /// Says which kinds cannot be listed: whoever waits for them would not know.
    fn warn_of_unlisted(&mut self) {
        for source in self.mirror.overdue(Instant::now()) {
            let interest = self.sources.interest(source);
            let Some(kind) = self.sources.resource(interest) else { continue };
            let all = interest.is_needed_by_all();
            tracing::error!(
                kind = kind.plural,
                group = kind.group,
                "cannot be listed; {}",
                if all { "nothing is decided until it is" } else { "gangs that need it wait" }
            );
        }
    }

    /// Takes in what was seen. Before the World is made there is nothing to tell it: it will be made of all there is.
    pub(super) fn take(&mut self, touched: Touched) {
        if !self.world.is_synced() {
            return;
        }
        for (source, moved) in &touched.others {
            self.see_other(*source, moved);
        }
        touched.claims.iter().for_each(|moved| self.see_claim(moved));
        touched.nodes.iter().for_each(|moved| self.node_may_stir(moved));
        self.dirty.nodes.extend(touched.nodes.into_iter().map(|moved| moved.key));
        touched.pods.iter().for_each(|moved| self.see_pod(moved));
    }

    /// Looks at everything that has changed, and decides.
    pub(super) fn turn(&mut self) {
        if !self.world.is_synced() {
            self.rebuild();
        }
        self.tire_of_volumes();
        self.tire_of_others();
        self.tire_of_binding();
        self.tire_of_requests();
        let disturbed = self.ties.disturbed();
        self.dirty.gangs.extend(disturbed);
        let mut looks: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        while !self.dirty.nodes.is_empty() || !self.dirty.gangs.is_empty() {
            for node in std::mem::take(&mut self.dirty.nodes) {
                self.look_at_node(&node);
            }
            for gang in std::mem::take(&mut self.dirty.gangs) {
                let seen = looks.entry(gang.clone()).or_default();
                *seen += 1;
                match *seen {
                    ..=LOOKS => self.look_at_gang(&gang),
                    _ => self.look_later(&gang),
                }
            }
            self.settle_tokens();
            if self.changed {
                self.decide();
            }
        }
        self.look_ahead();
        if self.changed {
            self.decide();
        }
        self.settle_requisitions();
        if self.changed {
            self.decide();
        }
        self.settle_requests();
        self.unwritten = false;
        for gang in std::mem::take(&mut self.unmade) {
            self.ensure_object(&gang);
        }
        self.write_verdicts();
        self.write_tally();
        self.write_idle();
    }

    /// A gang that comes to nothing however often it is looked at waits: it must not keep the others from being seen to.
    pub(super) fn look_later(&mut self, gang: &Arc<str>) {
        if !self.later.insert(gang.clone()) {
            return;
        }
        tracing::warn!(gang = &**gang, "nothing comes of looking at it; it is looked at later");
        let (told, gang) = (self.told.clone(), gang.clone());
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let _ = told.send(Told::Later(gang));
        });
    }

    /// Has the forecaster look at what was asked for, when it wants to.
    fn look_ahead(&mut self) {
        let now = self.now();
        if self.forecaster.due(&self.world, now).is_some_and(|due| due <= now) {
            for expected in self.forecaster.look(&self.world, now) {
                self.happened(&expected);
            }
        }
    }

    /// How long nothing needs to be decided if nothing is seen.
    fn wait(&self) -> Duration {
        let now = self.now();
        let forecast = self.forecaster.due(&self.world, now);
        let wake = self.wake.into_iter().chain(forecast).min();
        let due = wake.map(|wake| Duration::from_millis(wake.since(now).0.max(1)));
        let most = match self.written.put_off(Instant::now()) {
            Some(left) => left,
            None if self.unwritten => AT_LEAST / 4,
            None => AT_LEAST,
        };
        due.unwrap_or(most).min(most)
    }
}
