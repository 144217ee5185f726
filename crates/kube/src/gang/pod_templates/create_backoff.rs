//! How fast the members of one gang are made: one at first, more as they are made, fewer and later when they are refused.
//!
//! The first create is a probe: of a gang that may not have pods, because a quota is used up or a policy forbids them, one
//! request is refused and not all. The pauses grow as those of `denied`, but begin earlier: a quota is often free again in
//! seconds. What the whole namespace may cost is bounded in `hands::refusals`.

use std::time::{Duration, Instant};

/// Members that are made at one time, at most; each that is there makes room for more.
const MOST: usize = 256;
/// By how much one that was made widens that, from one: 4, 16, 64, 256.
const WIDER: usize = 3;
/// The first pause after a refusal. Each further one is twice as long.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);
/// The longest pause: as long as a Job's controller takes at most.
const PAUSE_MAX: Duration = Duration::from_secs(10 * 60);

#[derive(Debug)]
pub(crate) struct CreateBackoff {
    width: usize,
    /// Refusals in a row.
    refusals: u32,
    until: Option<Instant>,
    /// What the server said.
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
    /// How many more may be made while so many are.
    pub(crate) fn room(&self, under_way: usize, now: Instant) -> usize {
        match self.until.is_some_and(|until| until > now) {
            true => 0,
            false => self.width.saturating_sub(under_way),
        }
    }

    /// One was made.
    pub(crate) fn made(&mut self) {
        self.width = (self.width + WIDER).min(MOST);
        (self.refusals, self.until, self.why) = (0, None, None);
    }

    /// One was refused. How long none is made, if that is news: several may be refused that were under way together.
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

    /// Why none is made.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The Gang was rewritten, perhaps so that its members are not refused any more: it need not wait for the end of a long
    /// pause. How soon it is tried then. Whoever rewrites it all the time is tried no more often than that.
    pub(crate) fn rewritten(&mut self, generation: Option<i64>, now: Instant) -> Option<Duration> {
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
    fn one_is_tried_first_and_all_are_made_in_a_few_rounds() {
        let (mut pace, now) = (CreateBackoff::default(), Instant::now());
        let mut rounds = Vec::new();
        for _ in 0..6 {
            let made = pace.room(0, now);
            rounds.push(made);
            (0..made).for_each(|_| pace.made());
        }
        assert_eq!(rounds, [1, 4, 16, 64, 256, 256]);
        assert_eq!(pace.room(250, now), 6);
    }

    #[test]
    fn refusals_are_tried_again_one_at_a_time_after_pauses_that_grow_and_end() {
        let (mut pace, mut now) = (CreateBackoff::default(), Instant::now());
        (0..100).for_each(|_| pace.made());
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let pause = pace.refused(no(), now).expect("it is the first of those under way");
            assert_eq!(pace.refused(no(), now), None, "the others of them");
            assert_eq!(pace.room(0, now), 0);
            now += pause;
            assert_eq!(pace.room(0, now), 1);
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(pace.refusal(), Some("no"));
        pace.made();
        assert_eq!(pace.refusal(), None);
        assert_eq!(pace.refused(no(), now), Some(PAUSE));
    }

    #[test]
    fn a_gang_that_is_rewritten_is_tried_soon_and_not_at_once() {
        let (mut pace, now) = (CreateBackoff::default(), Instant::now());
        assert_eq!(pace.rewritten(Some(1), now), None);
        let mut later = now;
        for _ in 0..4 {
            later += pace.refused(no(), later).expect("refused");
        }
        let pause = pace.refused(no(), later).expect("refused");
        assert!(pause > PAUSE);
        assert_eq!(pace.rewritten(Some(1), later), None);
        assert_eq!(pace.rewritten(Some(2), later), Some(PAUSE));
        assert_eq!(pace.rewritten(Some(3), later), None, "it is tried soon already");
        assert_eq!((pace.room(0, later), pace.room(0, later + PAUSE)), (0, 1));
    }
}
