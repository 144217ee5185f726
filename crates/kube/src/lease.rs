//! Who may act: one replica at a time, by a Lease that is taken with an optimistic lock.
//!
//! Each write names the version of the lease it was decided on, so that of two who both saw it expire only one gets
//! it. A leader stops acting by its own clock before anybody else may begin by theirs.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cause::with_causes;

/// How a lease is held.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who wants it; unique per process.
    pub identity: String,
    /// Others may take it when it was not renewed for this long.
    pub duration: Duration,
    /// How often it is renewed, or looked at.
    pub every: Duration,
}

impl Terms {
    /// Fifteen seconds, renewed every three: a crash costs that long, a hand-over nothing.
    pub fn new(namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: "muster".to_owned(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            every: Duration::from_secs(3),
        }
    }
}

/// How long an answer about a lease is waited for at least.
const AT_LEAST: Duration = Duration::from_secs(1);

/// A name for a process that nobody gave one: that of its machine, and something that no other process has, since in
/// containers all of them are often called the same.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("muster");
    let chance = std::hash::RandomState::new().build_hasher().finish();
    format!("{host}-{chance:016x}")
}

/// What to do about a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
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
    at: Instant,
}

/// What to do about a lease that has looked like this for so long.
pub fn judge(lease: Option<&LeaseSpec>, me: &str, unchanged: Duration) -> Move {
    let Some(spec) = lease else { return Move::Take };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder == me {
        return Move::Renew;
    }
    let lasts =
        Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(15)).unwrap_or(0));
    if holder.is_empty() || unchanged >= lasts { Move::Take } else { Move::Wait }
}

/// Until when its holder may act, by the own clock. `None` while another holds the lease.
#[derive(Clone, Debug)]
pub struct Leadership {
    until: watch::Receiver<Option<Instant>>,
    /// Kept by who needs no lease.
    _own: Option<Arc<watch::Sender<Option<Instant>>>>,
}

impl Leadership {
    /// Of who needs no lease, since there is no other.
    pub fn forever() -> Self {
        let (own, until) =
            watch::channel(Some(Instant::now() + Duration::from_secs(u32::MAX.into())));
        Self { until, _own: Some(Arc::new(own)) }
    }

    /// Whether whoever asks may act now.
    pub fn holds(&self) -> bool {
        self.until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// For how long whoever asks may act, if it is not renewed.
    pub fn left(&self) -> Duration {
        let until = *self.until.borrow();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Waits until the lease is held.
    pub async fn won(&mut self) {
        while !self.holds() {
            if self.until.changed().await.is_err() {
                // Nobody renews any more: it will never be held again.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the lease is no longer held.
    pub async fn lost(&mut self) {
        loop {
            let until = *self.until.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else { return };
            tokio::select! {
                changed = self.until.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }
}

/// Keeps trying to hold a lease. Dropping it lets the lease run out; [`Campaign::resign`] gives it up at once.
#[derive(Debug)]
pub struct Campaign {
    stop: Arc<tokio::sync::Notify>,
    task: JoinHandle<()>,
}

impl Campaign {
    /// Starts to campaign.
    pub fn start(client: Client, terms: Terms) -> (Self, Leadership) {
        let (told, until) = watch::channel(None);
        let stop = Arc::new(tokio::sync::Notify::new());
        let candidate = Candidate {
            leases: Api::namespaced(client, &terms.namespace),
            terms,
            seen: None,
            told,
        };
        let task = tokio::spawn(candidate.run(stop.clone()));
        (Self { stop, task }, Leadership { until, _own: None })
    }

    /// Gives the lease up, so that another can have it without waiting.
    pub async fn resign(self) {
        self.stop.notify_one();
        let _ = self.task.await;
    }
}

struct Candidate {
    leases: Api<Lease>,
    terms: Terms,
    seen: Option<Sight>,
    told: watch::Sender<Option<Instant>>,
}

impl Candidate {
    async fn run(mut self, stop: Arc<tokio::sync::Notify>) {
        loop {
            // Counted from before the request: the others see the renewal no later than that.
            let asked = Instant::now();
            // One answer that does not come must not cost the lease: there is time to ask again.
            let within = self.terms.every.max(AT_LEAST);
            match tokio::time::timeout(within, self.turn()).await {
                Ok(Ok(true)) => {
                    // A margin for clocks that run at different speeds, and for requests under way.
                    let until = asked + self.terms.duration.mul_f64(0.8);
                    self.told.send_replace(Some(until));
                }
                Ok(Ok(false)) => drop(self.told.send_replace(None)),
                // Nothing is known: whoever held it holds it until its time is over.
                Ok(Err(error)) => {
                    tracing::debug!(
                        error = with_causes(&error),
                        "the lease could not be looked at"
                    );
                }
                Err(_) => tracing::debug!("nobody answered for the lease"),
            }
            tokio::select! {
                () = stop.notified() => break,
                () = tokio::time::sleep(self.terms.every) => {}
            }
        }
        self.told.send_replace(None);
        if let Err(error) = self.give_up().await {
            tracing::debug!(%error, "the lease was not given up and will run out");
        }
    }

    /// One look at the lease, and one try to hold it. Whether it is held now.
    async fn turn(&mut self) -> kube::Result<bool> {
        let lease = self.leases.get_opt(&self.terms.name).await?;
        let version = lease.as_ref().and_then(ResourceExt::resource_version);
        let now = Instant::now();
        let at = match &self.seen {
            Some(sight) if sight.version == version => sight.at,
            _ => now,
        };
        self.seen = Some(Sight { version, at });
        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let decided = judge(spec, &self.terms.identity, now.duration_since(at));
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
    use super::*;

    fn held(by: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(by.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn no_two_processes_are_called_the_same() {
        let (one, other) = (identity(), identity());
        assert_ne!(one, other);
        assert!(one.len() > 17, "{one}");
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
