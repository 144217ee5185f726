//! The rate at which the pods of one gang are created: one at first, more with each success, one after a backoff when refused.
//!
//! The first create is a probe: of a gang that may not have pods, because a quota is used up or a policy forbids them, one
//! request is refused and not all. The backoff grows as in `api_refusal`, but starts shorter: a quota is often free again in
//! seconds. Refusals of a whole namespace are limited in `api::refusal_backoff`.

use std::time::{Duration, Instant};

/// Pods that are being created at one time, at most; each that is observed allows more.
const WIDTH_MAX: usize = 256;
/// By how much each success raises that number, from one: 4, 16, 64, 256.
const WIDTH_STEP: usize = 3;
/// The first backoff after a refusal. Each further one is twice as long.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);
/// The longest backoff: that of the Job controller.
const PAUSE_MAX: Duration = Duration::from_secs(10 * 60);

/// How many pods of a gang may be created at a time, and the backoff after a refusal.
#[derive(Debug)]
pub(crate) struct CreateBackoff {
    /// Pods that may be under way together.
    width: usize,
    /// Refusals in a row.
    refusals: u32,
    until: Option<Instant>,
    /// The API server's message.
    why: Option<String>,
    /// The generation of the Gang that was refused.
    generation: Option<i64>,
}

impl Default for CreateBackoff {
    fn default() -> Self {
        Self { width: 1, refusals: 0, until: None, why: None, generation: None }
    }
}

impl CreateBackoff {
    /// How many more may be created while so many are under way.
    pub(crate) fn allowed(&self, under_way: usize, now: Instant) -> usize {
        match self.until.is_some_and(|until| until > now) {
            true => 0,
            false => self.width.saturating_sub(under_way),
        }
    }

    /// A pod was created.
    pub(crate) fn succeeded(&mut self) {
        self.width = (self.width + WIDTH_STEP).min(WIDTH_MAX);
        (self.refusals, self.until, self.why) = (0, None, None);
    }

    /// A create was refused. Returns the backoff if it starts now: several may be refused that were under way together.
    pub(crate) fn refused(&mut self, why: String, now: Instant) -> Option<Duration> {
        (self.width, self.why) = (1, Some(why));
        if self.until.is_some_and(|until| until > now) {
            return None;
        }
        let doubled = 1_u32.checked_shl(self.refusals).unwrap_or(u32::MAX);
        let pause = PAUSE.saturating_mul(doubled).min(PAUSE_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.until = Some(now + pause);
        Some(pause)
    }

    /// Why no pod is created.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The Gang was updated, perhaps so that its pods are not refused any more: a long backoff is cut short. Returns when it is
    /// tried then; frequent updates do not make it more often.
    pub(crate) fn updated(&mut self, generation: Option<i64>, now: Instant) -> Option<Duration> {
        let was = std::mem::replace(&mut self.generation, generation);
        let until = self.until.filter(|until| *until > now + PAUSE)?;
        if was.is_none() || was == generation {
            return None;
        }
        self.until = Some(until.min(now + PAUSE));
        Some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use crate::gang::pod_templates::create_backoff::*;

    fn no() -> String {
        "no".to_owned()
    }

    #[test]
    fn creates_start_with_a_probe_and_widen_with_each_success() {
        let (mut backoff, now) = (CreateBackoff::default(), Instant::now());
        let mut rounds = Vec::new();
        for _ in 0..6 {
            let allowed = backoff.allowed(0, now);
            rounds.push(allowed);
            (0..allowed).for_each(|_| backoff.succeeded());
        }
        assert_eq!(rounds, [1, 4, 16, 64, 256, 256]);
        assert_eq!(backoff.allowed(250, now), 6);
    }

    #[test]
    fn refusal_retries_one_create_after_a_growing_limited_backoff() {
        let (mut backoff, mut now) = (CreateBackoff::default(), Instant::now());
        (0..100).for_each(|_| backoff.succeeded());
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let pause = backoff.refused(no(), now).expect("it is the first of those under way");
            assert_eq!(backoff.refused(no(), now), None, "the others of them");
            assert_eq!(backoff.allowed(0, now), 0);
            now += pause;
            assert_eq!(backoff.allowed(0, now), 1);
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(backoff.refusal(), Some("no"));
        backoff.succeeded();
        assert_eq!(backoff.refusal(), None);
        assert_eq!(backoff.refused(no(), now), Some(PAUSE));
    }

    #[test]
    fn updated_gang_is_retried_soon_but_not_at_once() {
        let (mut backoff, now) = (CreateBackoff::default(), Instant::now());
        assert_eq!(backoff.updated(Some(1), now), None);
        let mut later = now;
        for _ in 0..4 {
            later += backoff.refused(no(), later).expect("refused");
        }
        let pause = backoff.refused(no(), later).expect("refused");
        assert!(pause > PAUSE);
        assert_eq!(backoff.updated(Some(1), later), None);
        assert_eq!(backoff.updated(Some(2), later), Some(PAUSE));
        assert_eq!(backoff.updated(Some(3), later), None, "it is tried soon already");
        assert_eq!((backoff.allowed(0, later), backoff.allowed(0, later + PAUSE)), (0, 1));
    }
}
