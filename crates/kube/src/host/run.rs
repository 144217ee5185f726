//! The life of the host: watch, win the lease, look around, and then decide for as long as the lease is held.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use kube::Client;
use muster_api::pod::GpuNames;
use muster_core::World;
use muster_core::topology::Levels;
use muster_plan::Policy;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use super::events::Crier;
use super::groups::Groups;
use super::objects::{CLAIMS, Sources};
use super::{Dirty, Host};
use crate::discover::find;
use crate::hands::Hands;
use crate::intake::Interest;
use crate::lease::{self, Campaign, Leadership};
use crate::mirror::{Mirror, Touched};
use crate::objects::Pod;
use crate::watch::Watches;

/// Changes under way at one time; a watcher that is faster than the host waits.
const CHANGES: usize = 16_384;
/// How often kinds are looked for that were not served before.
const LOOK_AROUND: Duration = Duration::from_secs(30);
/// The longest that nothing is decided: clocks are compared, deadlines looked at.
const AT_LEAST: Duration = Duration::from_secs(10);

/// How the host works.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pods that ask for one of these schedulers are Muster's to bind.
    pub scheduler_names: Vec<String>,
    /// Which resources are GPUs, besides those that say so by their name.
    pub gpus: GpuNames,
    /// How the planner decides.
    pub policy: Policy,
    /// The lease that says who acts; none when there is only one replica.
    pub lease: Option<lease::Terms>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["muster".to_owned()],
            gpus: GpuNames::default(),
            policy: Policy::default(),
            lease: None,
        }
    }
}

impl Config {
    /// Whether a pod is Muster's to bind.
    pub fn serves(&self, pod: &Pod) -> bool {
        let asked = pod.spec.scheduler_name.as_deref().unwrap_or_default();
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
    /// The server does not answer.
    #[error("the API server cannot be asked: {0}")]
    Server(#[from] kube::Error),
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
    let mut watches = Watches::new(client.clone(), changes);
    let hands = Hands::new(client.clone(), leadership.clone());
    let mut host = Host {
        config: config.clone(),
        mirror: Mirror::default(),
        sources: Sources::default(),
        world: World::new(Levels::default()),
        policy: config.policy.clone(),
        pools: BTreeMap::new(),
        groups: Groups::default(),
        orders_of: BTreeMap::new(),
        verdicts: Vec::new(),
        written: super::status::Written::default(),
        unwritten: false,
        seen_nodes: FxHashMap::default(),
        dirty: Dirty::default(),
        hands,
        crier: Crier::new(
            client.clone(),
            config.lease.as_ref().map(|lease| lease.identity.clone()),
        ),
        told,
        changed: false,
        wake: None,
    };
    host.look_around(&client, &mut watches).await?;
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
    let mut look_around = tokio::time::interval(LOOK_AROUND);
    look_around.tick().await;
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
            _ = look_around.tick() => {
                if let Err(error) = host.look_around(&client, &mut watches).await {
                    tracing::debug!(%error, "could not look around");
                }
            }
            () = tokio::time::sleep(wait), if leads => host.changed = true,
        }
        if leads && host.mirror.is_complete() {
            host.turn();
        }
    };
    if let Some(campaign) = campaign {
        campaign.resign().await;
    }
    outcome
}

impl Host {
    async fn look_around(&mut self, client: &Client, watches: &mut Watches) -> kube::Result<()> {
        for source in self.sources.look_around(client, watches).await? {
            self.mirror.add(source);
        }
        if !self.mirror.has_claims && find(client, &CLAIMS).await?.is_some() {
            self.mirror.has_claims = true;
            watches.claims();
        }
        Ok(())
    }

    /// Takes in what was seen. Before the World is made there is nothing to tell it: it will be made of all there is.
    fn take(&mut self, touched: Touched) {
        if !self.world.is_synced() {
            return;
        }
        for (source, moved) in &touched.others {
            self.see_other(*source, moved);
        }
        touched.claims.iter().for_each(|moved| self.see_claim(moved));
        self.dirty.nodes.extend(touched.nodes.into_iter().map(|moved| moved.key));
        touched.pods.iter().for_each(|moved| self.see_pod(moved));
    }

    /// Looks at everything that has changed, and decides.
    fn turn(&mut self) {
        if !self.world.is_synced() {
            self.rebuild();
        }
        while !self.dirty.nodes.is_empty() || !self.dirty.gangs.is_empty() {
            for node in std::mem::take(&mut self.dirty.nodes) {
                self.look_at_node(&node);
            }
            for gang in std::mem::take(&mut self.dirty.gangs) {
                self.look_at_gang(&gang);
            }
            if self.changed {
                self.decide();
            }
        }
        if self.changed {
            self.decide();
        }
        self.unwritten = false;
        self.write_verdicts();
    }

    /// How long nothing needs to be decided if nothing is seen.
    fn wait(&self) -> Duration {
        let now = self.now();
        let due = self.wake.map(|wake| Duration::from_millis(wake.since(now).0.max(1)));
        let most = if self.unwritten { AT_LEAST / 4 } else { AT_LEAST };
        due.unwrap_or(most).min(most)
    }
}
