//! Leader election: one replica acts at a time, by a Lease that is taken with an optimistic lock.
//!
//! Each write names the version of the lease it was decided on, so that of two replicas that both saw it expire only one
//! gets it. A leader stops acting by its own clock, which counts through suspend, before another replica may begin.
//!
//! The lease is renewed by a thread with a runtime and a connection of its own, so that neither a flood of other requests
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

/// How a lease is held.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The name in the lease; unique per process (see [`unique`]).
    pub identity: String,
    /// Other replicas may take it when it was not renewed for this long.
    pub duration: Duration,
    /// How often it is renewed, or looked at.
    pub every: Duration,
    /// It is not renewed when the decision loop has made no progress for this long.
    pub stall: Duration,
}

impl LeaseConfig {
    /// Fifteen seconds, renewed every three: a crash costs that long, a hand-over nothing.
    pub fn new(namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: "muster".to_owned(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            every: Duration::from_secs(3),
            stall: STALL,
        }
    }

    /// The part of the duration in which the holder acts no more and no other may act yet: for clocks that run at
    /// different speeds, and for requests under way.
    pub fn margin(&self) -> Duration {
        self.duration / 5
    }
}

/// A pass over a cluster of thousands of nodes takes seconds; one that takes this long will not end.
pub const STALL: Duration = Duration::from_secs(60);

/// How long an answer about a lease is waited for at least.
const CYCLE_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// How long a process that ends tries to give its lease up.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(5);

/// The name of this process in the lease: that of its pod or machine, and a random part that no other process has. A
/// restarted container has the name of the one before it, and a pod that was deleted by force may still run beside the
/// pod that replaced it under the same name.
pub fn unique(name: Option<&str>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.unwrap_or(host.trim());
    let name = Some(name).filter(|name| !name.is_empty()).unwrap_or("muster");
    let chance = std::hash::RandomState::new().build_hasher().finish();
    format!("{name}_{chance:016x}")
}

/// What to do about a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// Nobody holds it.
    Take,
    /// It is held by who asks.
    Renew,
    /// Another holds it.
    Wait,
}

/// How a lease looked when it last changed, and when that was by the own clock: the holder's clock may be wrong, so
/// its timestamps only tell that it renewed, never when.
#[derive(Clone, Debug)]
struct Sight {
    version: Option<String>,
    at: BootTime,
}

/// What to do about a lease that has looked like this for so long.
pub(crate) fn judge(lease: Option<&LeaseSpec>, me: &str, unchanged: Duration) -> Move {
    let Some(spec) = lease else { return Move::Take };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder == me {
        return Move::Renew;
    }
    let lasts =
        Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(15)).unwrap_or(0));
    if holder.is_empty() || unchanged >= lasts { Move::Take } else { Move::Wait }
}

/// Keeps trying to hold a lease. Dropping it lets the lease run out; [`LeaderElection::resign`] gives it up at once.
#[derive(Debug)]
pub(crate) struct LeaderElection {
    /// Sent to give the lease up, dropped to let it run out.
    resign: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl LeaderElection {
    /// Starts to campaign, on a thread and a connection of its own.
    ///
    /// # Errors
    /// When the cluster's certificates cannot be read, or no thread can be started.
    pub(crate) fn start(
        cluster: kube::Config,
        terms: LeaseConfig,
        pulse: Heartbeat,
    ) -> Result<(Self, Leadership), LeaderElectionError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = {
            let _within = runtime.enter();
            Client::try_from(cluster)
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                runtime.shutdown_background(); // it may not be dropped where others wait
                return Err(error.into());
            }
        };
        let (told, leadership) = Leadership::until(Term::default());
        let (resign, resigned) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let leases = Api::namespaced(client, &terms.namespace);
        let candidate = Candidate { leases, terms, seen: None, told, pulse };
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(candidate.run(resigned));
            let _ = end.send(());
        })?;
        Ok((Self { resign, ended }, leadership))
    }

    /// Gives the lease up, so that another can have it without waiting.
    pub(crate) async fn resign(self) {
        let _ = self.resign.send(());
        let _ = self.ended.await;
    }
}

/// Why no campaign can be started.
#[derive(Debug, thiserror::Error)]
pub enum LeaderElectionError {
    #[error(transparent)]
    Client(#[from] kube::Error),
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

struct Candidate {
    leases: Api<Lease>,
    terms: LeaseConfig,
    seen: Option<Sight>,
    told: watch::Sender<Term>,
    pulse: Heartbeat,
}

impl Candidate {
    async fn run(mut self, mut resigned: oneshot::Receiver<()>) {
        loop {
            if self.is_stalled() {
                return self.stall();
            }
            self.campaign_once().await;
            tokio::select! {
                told = &mut resigned => match told {
                    Ok(()) => break,
                    Err(_) => return, // it runs out
                },
                () = tokio::time::sleep(self.terms.every) => {}
            }
        }
        self.told.send_replace(Term::default());
        let given_up = tokio::time::timeout(GIVEN_UP_WITHIN, self.give_up()).await;
        match given_up {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the lease is not given up and will run out"),
            Err(_) => tracing::debug!("the lease is not given up and will run out"),
        }
    }

    async fn campaign_once(&mut self) {
        // Counted from before the request: the others see the renewal no later than that.
        let asked = BootTime::now();
        // One answer that does not come must not cost the lease: there is time to ask again.
        let within = self.terms.every.max(CYCLE_INTERVAL_MAX);
        match tokio::time::timeout(within, self.turn()).await {
            Ok(Ok(true)) => {
                let until = asked.after(self.terms.duration - self.terms.margin());
                if !self.leads() {
                    self.pulse.beat(); // the loop has its time from now on
                }
                self.told.send_replace(Term { until: Some(until), stalled: false });
            }
            Ok(Ok(false)) => drop(self.told.send_replace(Term::default())),
            // Nothing is known: it is held until its time is over.
            Ok(Err(error)) => {
                tracing::debug!(error = with_causes(&error), "the lease could not be looked at");
            }
            Err(_) => tracing::debug!("no answer about the lease"),
        }
    }

    fn leads(&self) -> bool {
        self.told.borrow().until.is_some()
    }

    /// Whether this process leads and its decision loop has made no progress for too long.
    fn is_stalled(&self) -> bool {
        self.leads() && self.pulse.silent_for() > self.terms.stall
    }

    /// Ends the term at once and lets the lease run out: requests may still be under way, so it is not given up.
    fn stall(&self) {
        tracing::error!(
            seconds = self.pulse.silent_for().as_secs(),
            "the decision loop makes no progress: the lease is not renewed any more"
        );
        self.told.send_replace(Term { until: None, stalled: true });
    }

    /// One look at the lease, and one try to hold it. Whether it is held now.
    async fn turn(&mut self) -> kube::Result<bool> {
        let lease = self.leases.get_opt(&self.terms.name).await?;
        let version = lease.as_ref().and_then(ResourceExt::resource_version);
        let now = BootTime::now();
        let at = match &self.seen {
            Some(sight) if sight.version == version => sight.at,
            _ => now,
        };
        self.seen = Some(Sight { version, at });
        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let decided = judge(spec, &self.terms.identity, now.since(at));
        if decided == Move::Wait {
            return Ok(false);
        }
        let written = match lease {
            None => self.leases.create(&PostParams::default(), &self.first()).await,
            Some(lease) => self.write(self.next(lease, decided)).await,
        };
        match written {
            Ok(_) => Ok(true),
            // Somebody else was faster. Of the own lease that would be seen with the next look.
            Err(kube::Error::Api(answer)) if answer.code == 409 && decided == Move::Take => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn write(&self, lease: Lease) -> kube::Result<Lease> {
        self.leases.replace(&self.terms.name, &PostParams::default(), &lease).await
    }

    fn first(&self) -> Lease {
        let metadata = ObjectMeta { name: Some(self.terms.name.clone()), ..ObjectMeta::default() };
        self.next(Lease { metadata, spec: None }, Move::Take)
    }

    /// The lease with this holder. It keeps the version it was read with, which is the optimistic lock.
    fn next(&self, mut lease: Lease, decided: Move) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = lease.spec.get_or_insert_default();
        if decided == Move::Take {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |past| past + 1));
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.terms.identity.clone());
        spec.lease_duration_seconds =
            Some(self.terms.duration.as_secs().try_into().unwrap_or(i32::MAX));
        spec.renew_time = Some(now);
        lease
    }

    async fn give_up(&self) -> kube::Result<()> {
        let Some(mut lease) = self.leases.get_opt(&self.terms.name).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&*self.terms.identity) {
            spec.holder_identity = Some(String::new());
            self.write(lease).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::lease::election::*;

    fn held(by: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(by.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn processes_of_one_pod_name_have_different_identities() {
        for name in [None, Some(""), Some("muster-0")] {
            let (one, other) = (unique(name), unique(name));
            assert_ne!(one, other);
            assert!(one.len() > 17, "{one}");
        }
        assert!(unique(Some("muster-0")).starts_with("muster-0_"));
    }

    #[test]
    fn what_nobody_holds_is_taken() {
        assert_eq!(judge(None, "me", Duration::ZERO), Move::Take);
        assert_eq!(judge(Some(&held("")), "me", Duration::ZERO), Move::Take);
    }

    #[test]
    fn the_own_is_renewed_however_old() {
        assert_eq!(judge(Some(&held("me")), "me", Duration::from_secs(99)), Move::Renew);
    }

    #[test]
    fn anothers_is_taken_only_when_it_was_not_renewed_for_its_duration() {
        assert_eq!(judge(Some(&held("you")), "me", Duration::from_secs(14)), Move::Wait);
        assert_eq!(judge(Some(&held("you")), "me", Duration::from_secs(15)), Move::Take);
    }
}
