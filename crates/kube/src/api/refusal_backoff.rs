//! Requests of a namespace that the API server keeps refusing are sent slowly.
//!
//! A quota that is used up, a policy or a webhook may refuse whatever is asked for a namespace. Each caller has pauses of its
//! own; this bounds all of them together, so that no namespace gets more than a burst and then two refusals a second,
//! however many gangs it has and whatever is refused to them. What the server accepts is never slowed down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Refusals of one namespace that are nothing special: those of one gang that is made anew.
const BURST: u32 = 64;
/// How often one more is.
const EVERY: Duration = Duration::from_millis(500);
/// Namespaces at which those that are not slowed down are forgotten.
const SWEEP_AT: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct RefusalBackoff(Mutex<BTreeMap<Arc<str>, Debt>>);

/// How much a namespace was refused.
#[derive(Debug)]
struct Debt {
    /// When all of it is forgotten.
    until: Instant,
    /// When the next request may be sent while there is too much of it.
    next: Instant,
}

impl Debt {
    fn is_too_much(&self, now: Instant) -> bool {
        self.until.saturating_duration_since(now) > EVERY * BURST
    }
}

impl RefusalBackoff {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Debt>> {
        // Nothing in it is ever half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of a namespace was refused.
    pub(crate) fn refused(&self, of: &Arc<str>, now: Instant) {
        let mut all = self.all();
        if all.len() > SWEEP_AT {
            all.retain(|_, debt| debt.until > now);
        }
        let debt = all.entry(of.clone()).or_insert(Debt { until: now, next: now });
        // However much was under way at once, it is forgotten after two bursts.
        debt.until = (debt.until.max(now) + EVERY).min(now + EVERY * (2 * BURST));
    }

    /// A request of a namespace was taken.
    pub(crate) fn taken(&self, of: &Arc<str>, now: Instant) {
        if let Some(debt) = self.all().get_mut(of) {
            debt.until = debt.until.checked_sub(EVERY).unwrap_or(now);
        }
    }

    /// Whether a request of a namespace may be sent now, or when that is to be asked again.
    fn may_send(&self, of: &Arc<str>, now: Instant) -> Result<(), Instant> {
        let mut all = self.all();
        match all.get_mut(of).filter(|debt| debt.is_too_much(now)) {
            Some(debt) if debt.next > now => Err(debt.next),
            Some(debt) => {
                debt.next = now + EVERY;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until a request of a namespace may be sent.
    pub(crate) async fn pace(&self, of: &Arc<str>) {
        while let Err(next) = self.may_send(of, Instant::now()) {
            tokio::time::sleep_until(next.into()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::refusal_backoff::*;

    #[test]
    fn a_namespace_that_is_always_refused_asks_twice_a_second() {
        let refusals = RefusalBackoff::default();
        let (of, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let began = Instant::now();
        let mut sent = 0;
        for tick in 0..6_000 {
            let now = began + Duration::from_millis(tick * 10);
            // It asks for as much as it can.
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
    fn a_namespace_that_is_allowed_again_is_as_fast_as_any() {
        let (refusals, now) = (RefusalBackoff::default(), Instant::now());
        let of: Arc<str> = "a".into();
        (0..10 * BURST).for_each(|_| refusals.refused(&of, now));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
        assert!(refusals.may_send(&of, now).is_err());
        (0..=BURST).for_each(|_| refusals.taken(&of, now));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
        assert_eq!(refusals.may_send(&of, now), Ok(()));
    }
}
