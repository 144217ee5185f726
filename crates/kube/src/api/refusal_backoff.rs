//! Rate limit for namespaces whose requests the API server keeps refusing.
//!
//! An exhausted quota, a policy or a webhook may refuse every request for a namespace. Each caller has a backoff of its own;
//! this bounds all of them together, so that a namespace causes a burst of refusals and then two per second, however many
//! gangs it has. Namespaces whose requests are accepted are never limited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Refusals of one namespace before it is limited: as many as one recreated gang may cause.
const BURST: u32 = 64;
/// The interval of requests while a namespace is limited.
const EVERY: Duration = Duration::from_millis(500);
/// Number of namespaces at which those that are not limited are forgotten.
const SWEEP_AT: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct RefusalBackoff(Mutex<BTreeMap<Arc<str>, Debt>>);

/// The refusals of one namespace, as time until they are forgotten.
#[derive(Debug)]
struct Debt {
    /// When all refusals are forgotten.
    until: Instant,
    /// When the next request may be sent while the namespace is limited.
    next: Instant,
}

impl Debt {
    fn is_limited(&self, now: Instant) -> bool {
        self.until.saturating_duration_since(now) > EVERY * BURST
    }
}

impl RefusalBackoff {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Debt>> {
        // No update is ever half done, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of a namespace was refused.
    pub(crate) fn refused(&self, of: &Arc<str>, now: Instant) {
        let mut all = self.all();
        if all.len() > SWEEP_AT {
            all.retain(|_, debt| debt.until > now);
        }
        let debt = all.entry(of.clone()).or_insert(Debt { until: now, next: now });
        // However many requests were in flight at once, their refusals are forgotten after two bursts.
        debt.until = (debt.until.max(now) + EVERY).min(now + EVERY * (2 * BURST));
    }

    /// A request of a namespace was accepted.
    pub(crate) fn accepted(&self, of: &Arc<str>, now: Instant) {
        if let Some(debt) = self.all().get_mut(of) {
            debt.until = debt.until.checked_sub(EVERY).unwrap_or(now);
        }
    }

    /// Whether a request of a namespace may be sent now, or when to check again.
    fn may_send(&self, of: &Arc<str>, now: Instant) -> Result<(), Instant> {
        let mut all = self.all();
        match all.get_mut(of).filter(|debt| debt.is_limited(now)) {
            Some(debt) if debt.next > now => Err(debt.next),
            Some(debt) => {
                debt.next = now + EVERY;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until a request of a namespace may be sent.
    pub(crate) async fn wait(&self, of: &Arc<str>) {
        while let Err(next) = self.may_send(of, Instant::now()) {
            tokio::time::sleep_until(next.into()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::refusal_backoff::*;

    #[test]
    fn namespace_that_is_always_refused_sends_twice_a_second() {
        let refusals = RefusalBackoff::default();
        let (of, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let began = Instant::now();
        let mut sent = 0;
        for tick in 0..6_000 {
            let now = began + Duration::from_millis(tick * 10);
            // The namespace sends as often as it may.
            for _ in 0..100 {
                if refusals.may_send(&of, now).is_ok() {
                    refusals.refused(&of, now);
                    sent += 1;
                }
            }
            assert_eq!(refusals.may_send(&other, now), Ok(()), "another namespace waits");
        }
        let (burst, slowly) = (u64::from(BURST), 2 * 60);
        assert!((burst..=burst + slowly + 2).contains(&sent), "{sent} refusals in a minute");
    }

    #[test]
    fn namespace_whose_requests_are_accepted_again_is_not_limited() {
        let (refusals, now) = (RefusalBackoff::default(), Instant::now());
        let of: Arc<str> = "a".into();
        (0..10 * BURST).for_each(|_| refusals.refused(&of, now));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
        assert!(refusals.may_send(&of, now).is_err());
        (0..=BURST).for_each(|_| refusals.accepted(&of, now));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
    }
}
