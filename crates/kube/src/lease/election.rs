//! Acquires and renews the Lease, with an optimistic lock: one replica leads at a time.
//!
//! Each write names the resource version that it was decided on, so that of two replicas that both saw the Lease expire only
//! one acquires it. A leader stops writing by its own clock, which counts through suspend, before another replica may begin.
//!
//! The Lease is renewed by a thread with a runtime and a connection of its own, so that neither a flood of other requests
//! nor a busy runtime delays it; and it is renewed only while the decision loop makes progress (see [`Heartbeat`]).

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use tokio::sync::{oneshot, watch};

use crate::lease::boot_clock::BootTime;
use crate::lease::heartbeat::Heartbeat;
pub(crate) use crate::lease::leadership::{Leadership, Term};

use crate::api::error_chain::with_causes;

/// The configuration of leader election.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The holder identity; unique per process (see [`unique_identity`]).
    pub identity: String,
    /// Other replicas may acquire the Lease when it was not renewed for this long.
    pub duration: Duration,
    /// How often the leader renews the Lease, and the others read it.
    pub retry_period: Duration,
    /// The Lease is not renewed when the decision loop has made no progress for this long.
    pub stall_timeout: Duration,
}

impl LeaseConfig {
    /// Fifteen seconds, renewed every three: a crash costs fifteen seconds, an orderly release nothing.
    pub fn new(namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: "muster".to_owned(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            retry_period: Duration::from_secs(3),
            stall_timeout: STALL_TIMEOUT,
        }
    }

    /// The part of the duration in which the holder no longer writes and no other replica may write yet: for clocks that
    /// run at different speeds, and for requests in flight. The renew deadline is the duration without it.
    pub fn margin(&self) -> Duration {
        self.duration / 5
    }
}

/// A cycle in a cluster of thousands of nodes takes seconds; one that takes this long will not end.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The shortest timeout of a request for the Lease.
const REQUEST_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// How long a process that ends tries to release its Lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The holder identity of this process: the name of its pod or machine, and a random part that no other process has. A
/// restarted container has the name of the one before it, and a pod that was deleted by force may still run beside the
/// pod that replaced it under the same name.
pub fn unique_identity(name: Option<&str>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.unwrap_or(host.trim());
    let name = Some(name).filter(|name| !name.is_empty()).unwrap_or("muster");
    let chance = std::hash::RandomState::new().build_hasher().finish();
    format!("{name}_{chance:016x}")
}

/// What a replica may do with the Lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeaseAction {
    /// The Lease has no holder, or has expired.
    Acquire,
    /// This process is the holder.
    Renew,
    /// Another process is the holder.
    Wait,
}

/// The version of the Lease that was last observed, and when it was first observed by the own clock: the holder's clock may
/// be wrong, so its timestamps show that it renewed, never when.
#[derive(Clone, Debug)]
struct ObservedLease {
    version: Option<String>,
    at: BootTime,
}

/// What the process `identity` may do with a Lease that was not renewed for `unchanged`.
pub(crate) fn lease_action(
    lease: Option<&LeaseSpec>,
    identity: &str,
    unchanged: Duration,
) -> LeaseAction {
    let Some(spec) = lease else { return LeaseAction::Acquire };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder == identity {
        return LeaseAction::Renew;
    }
    let duration =
        Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(15)).unwrap_or(0));
    let is_free = holder.is_empty() || unchanged >= duration;
    if is_free { LeaseAction::Acquire } else { LeaseAction::Wait }
}

/// Keeps trying to hold the Lease. Dropping it lets the Lease expire; [`LeaderElection::release`] releases it at once.
#[derive(Debug)]
pub(crate) struct LeaderElection {
    /// Sent to release the Lease, dropped to let it expire.
    release: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl LeaderElection {
    /// Starts the election, on a thread and a connection of its own.
    ///
    /// # Errors
    /// When the cluster's certificates cannot be read, or no thread can be started.
    pub(crate) fn start(
        cluster: kube::Config,
        config: LeaseConfig,
        heartbeat: Heartbeat,
    ) -> Result<(Self, Leadership), LeaderElectionError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = {
            let _guard = runtime.enter();
            Client::try_from(cluster)
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                runtime.shutdown_background(); // dropping a runtime in async code panics
                return Err(error.into());
            }
        };
        let (term, leadership) = Leadership::until(Term::default());
        let (release, released) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let leases = Api::namespaced(client, &config.namespace);
        let elector = Elector { leases, config, observed: None, term, heartbeat };
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(elector.run(released));
            let _ = end.send(());
        })?;
        Ok((Self { release, ended }, leadership))
    }

    /// Releases the Lease, so that another replica can acquire it without waiting.
    pub(crate) async fn release(self) {
        let _ = self.release.send(());
        let _ = self.ended.await;
    }
}

/// Why the election cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LeaderElectionError {
    #[error(transparent)]
    Client(#[from] kube::Error),
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

struct Elector {
    leases: Api<Lease>,
    config: LeaseConfig,
    observed: Option<ObservedLease>,
    term: watch::Sender<Term>,
    heartbeat: Heartbeat,
}

impl Elector {
    async fn run(mut self, mut released: oneshot::Receiver<()>) {
        loop {
            if self.is_stalled() {
                return self.end_stalled_term();
            }
            self.acquire_or_renew().await;
            tokio::select! {
                request = &mut released => match request {
                    Ok(()) => break,
                    Err(_) => return, // the Lease expires
                },
                () = tokio::time::sleep(self.config.retry_period) => {}
            }
        }
        self.term.send_replace(Term::default());
        match tokio::time::timeout(RELEASE_TIMEOUT, self.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the lease was not released and will expire"),
            Err(_) => tracing::debug!("the lease was not released and will expire"),
        }
    }

    async fn acquire_or_renew(&mut self) {
        // Counted from before the request: the other replicas observe the renewal no earlier than that.
        let requested = BootTime::now();
        // One lost answer must not cost the Lease: there is time for another request.
        let timeout = self.config.retry_period.max(REQUEST_TIMEOUT_MIN);
        match tokio::time::timeout(timeout, self.try_acquire_or_renew()).await {
            Ok(Ok(true)) => {
                let until = requested.after(self.config.duration - self.config.margin());
                if !self.leads() {
                    self.heartbeat.beat(); // the stall timeout of the decision loop begins now
                }
                self.term.send_replace(Term { until: Some(until), stalled: false });
            }
            Ok(Ok(false)) => drop(self.term.send_replace(Term::default())),
            // The state of the Lease is unknown: the current term goes on until its deadline.
            Ok(Err(error)) => {
                tracing::debug!(error = with_causes(&error), "the lease was not renewed");
            }
            Err(_) => tracing::debug!("the lease was not renewed: no answer"),
        }
    }

    fn leads(&self) -> bool {
        self.term.borrow().until.is_some()
    }

    /// Whether this process leads and its decision loop has made no progress for too long.
    fn is_stalled(&self) -> bool {
        self.leads() && self.heartbeat.silent_for() > self.config.stall_timeout
    }

    /// Ends the term at once and lets the Lease expire: requests may still be in flight, so it is not released.
    fn end_stalled_term(&self) {
        tracing::error!(
            seconds = self.heartbeat.silent_for().as_secs(),
            "the decision loop makes no progress: the lease is no longer renewed"
        );
        self.term.send_replace(Term { until: None, stalled: true });
    }

    /// Reads the Lease, and writes it if this process may hold it. Returns whether this process holds it now.
    async fn try_acquire_or_renew(&mut self) -> kube::Result<bool> {
        let lease = self.leases.get_opt(&self.config.name).await?;
        let version = lease.as_ref().and_then(ResourceExt::resource_version);
        let now = BootTime::now();
        let at = match &self.observed {
            Some(observed) if observed.version == version => observed.at,
            _ => now,
        };
        self.observed = Some(ObservedLease { version, at });
        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let action = lease_action(spec, &self.config.identity, now.since(at));
        if action == LeaseAction::Wait {
            return Ok(false);
        }
        let written = match lease {
            None => self.leases.create(&PostParams::default(), &self.new_lease()).await,
            Some(lease) => self.write(self.with_holder(lease, action)).await,
        };
        match written {
            Ok(_) => Ok(true),
            // Another replica was faster. A conflict on the own Lease is resolved by the next read.
            Err(kube::Error::Api(status))
                if status.code == 409 && action == LeaseAction::Acquire =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn write(&self, lease: Lease) -> kube::Result<Lease> {
        self.leases.replace(&self.config.name, &PostParams::default(), &lease).await
    }

    fn new_lease(&self) -> Lease {
        let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
        self.with_holder(Lease { metadata, spec: None }, LeaseAction::Acquire)
    }

    /// The Lease with this process as its holder. It keeps the version it was read with, which is the optimistic lock.
    fn with_holder(&self, mut lease: Lease, action: LeaseAction) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = lease.spec.get_or_insert_default();
        if action == LeaseAction::Acquire {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |past| past + 1));
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.config.identity.clone());
        spec.lease_duration_seconds =
            Some(self.config.duration.as_secs().try_into().unwrap_or(i32::MAX));
        spec.renew_time = Some(now);
        lease
    }

    async fn release(&self) -> kube::Result<()> {
        let Some(mut lease) = self.leases.get_opt(&self.config.name).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&*self.config.identity) {
            spec.holder_identity = Some(String::new());
            self.write(lease).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::lease::election::*;

    fn held(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn processes_of_one_pod_name_have_different_identities() {
        for name in [None, Some(""), Some("muster-0")] {
            let (one, other) = (unique_identity(name), unique_identity(name));
            assert_ne!(one, other);
            assert!(one.len() > 17, "{one}");
        }
        assert!(unique_identity(Some("muster-0")).starts_with("muster-0_"));
    }

    fn action(lease: Option<&LeaseSpec>, unchanged_seconds: u64) -> LeaseAction {
        lease_action(lease, "me", Duration::from_secs(unchanged_seconds))
    }

    #[test]
    fn lease_without_holder_is_acquired() {
        assert_eq!(action(None, 0), LeaseAction::Acquire);
        assert_eq!(action(Some(&held("")), 0), LeaseAction::Acquire);
    }

    #[test]
    fn own_lease_is_renewed_however_old() {
        assert_eq!(action(Some(&held("me")), 99), LeaseAction::Renew);
    }

    #[test]
    fn lease_of_another_is_acquired_only_after_its_duration() {
        assert_eq!(action(Some(&held("you")), 14), LeaseAction::Wait);
        assert_eq!(action(Some(&held("you")), 15), LeaseAction::Acquire);
    }
}
