//! Asking the API server until it answers.
//!
//! Servers are busy, restart and drop connections; none of that is a reason to give up, and none of it a reason to ask
//! faster. What the server says about the request itself is an answer and goes back to who asked.

use std::time::Duration;

use kube::core::Status;

/// The longest pause between two tries.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(15);
/// The first pause; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(50);

/// What the server said.
#[derive(Debug, thiserror::Error)]
pub enum Said {
    /// There is no such object.
    #[error("it is gone")]
    Gone,
    /// The object is another by now.
    #[error("it has changed: {0}")]
    Conflict(String),
    /// There is one of that name already.
    #[error("it is there already")]
    Exists,
    /// The request is not allowed, or makes no sense.
    #[error("refused: {0}")]
    Refused(String),
    /// Whoever asked is no longer the leader.
    #[error("no longer the leader")]
    NotLeader,
}

/// What an error means for who asked: an answer, or nothing at all (`None`: ask again), and after how long.
pub(crate) fn judge(error: kube::Error) -> Result<Said, Option<Duration>> {
    let status = match error {
        kube::Error::Api(status) => status,
        // It will be no better the next time.
        kube::Error::SerdeError(_) => {
            return Ok(Said::Refused("the object cannot be read".to_owned()));
        }
        _ => return Err(None),
    };
    let wait = status.details.as_ref().map(|details| details.retry_after_seconds);
    let wait = wait.filter(|secs| *secs > 0).map(|secs| Duration::from_secs(u64::from(secs)));
    let said = |status: Box<Status>| status.message.clone();
    match status.code {
        404 | 410 => Ok(Said::Gone),
        409 if status.reason == "AlreadyExists" => Ok(Said::Exists),
        409 => Ok(Said::Conflict(said(status))),
        408 | 429 | 500..=599 => Err(wait),
        _ => Ok(Said::Refused(said(status))),
    }
}

/// Pauses that grow, with some chance in them so that many who wait do not come back at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    /// No generator of its own is worth it: the address of a stack slot and the clock differ enough.
    chance: u32,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self::from(PAUSE)
    }

    /// Pauses of which the first is this long.
    pub(crate) fn from(first: Duration) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self { next: first, chance: now.map_or(1, |now| now.subsec_nanos()) | 1 }
    }

    /// The next pause: between half of it and all of it.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 17;
        self.chance ^= self.chance << 5;
        let part = 0.5 + f64::from(self.chance) / f64::from(u32::MAX) / 2.0;
        let pause = self.next.mul_f64(part);
        self.next = (self.next * 2).min(PAUSE_MAX);
        pause.max(asked.unwrap_or_default().min(PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use crate::api::retry::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_never_below_what_the_server_asks() {
        let mut pauses = Backoff::new();
        let all: Vec<Duration> = (0..20).map(|_| pauses.next(None)).collect();
        assert!(all[0] >= PAUSE / 2 && all[0] <= PAUSE, "{all:?}");
        assert!(all.iter().all(|pause| *pause <= PAUSE_MAX), "{all:?}");
        assert!(all[19] >= PAUSE_MAX / 2, "{all:?}");
        assert_eq!(Backoff::new().next(Some(Duration::from_secs(3))), Duration::from_secs(3));
    }
}
