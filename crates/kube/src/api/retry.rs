//! Which failed requests are retried, and after which backoff.
//!
//! An API server that is busy, restarts or drops connections is retried, at a growing interval. An error about the request
//! itself is returned to the caller.

use std::time::Duration;

use kube::core::Status;

/// The longest pause between two attempts.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(15);
/// The first pause; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);

/// An error that is not retried.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The object does not exist.
    #[error("not found")]
    NotFound,
    /// The object was changed or replaced meanwhile.
    #[error("conflict: {0}")]
    Conflict(String),
    /// An object of that name exists.
    #[error("already exists")]
    AlreadyExists,
    /// The request is forbidden or invalid.
    #[error("refused: {0}")]
    Refused(String),
    /// This process is no longer the leader.
    #[error("no longer the leader")]
    NotLeader,
}

/// Whether a failed request is final (`Ok`), or is retried (`Err`, with the pause that the server asks for).
pub(crate) fn classify(error: kube::Error) -> Result<ApiError, Option<Duration>> {
    let status = match error {
        kube::Error::Api(status) => status,
        // A retry would return the same object.
        kube::Error::SerdeError(_) => {
            return Ok(ApiError::Refused("the object cannot be read".to_owned()));
        }
        _ => return Err(None),
    };
    let wait = status.details.as_ref().map(|details| details.retry_after_seconds);
    let wait = wait.filter(|secs| *secs > 0).map(|secs| Duration::from_secs(u64::from(secs)));
    let message = |status: Box<Status>| status.message.clone();
    match status.code {
        404 | 410 => Ok(ApiError::NotFound),
        409 if status.reason == "AlreadyExists" => Ok(ApiError::AlreadyExists),
        409 => Ok(ApiError::Conflict(message(status))),
        408 | 429 | 500..=599 => Err(wait),
        _ => Ok(ApiError::Refused(message(status))),
    }
}

/// Exponential backoff with jitter, so that many callers do not retry at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    /// The state of a xorshift generator that is seeded from the clock, which is random enough for jitter.
    jitter: u32,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self::from(BACKOFF_FIRST)
    }

    /// A backoff whose first pause is this long.
    pub(crate) fn from(first: Duration) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self { next: first, jitter: now.map_or(1, |now| now.subsec_nanos()) | 1 }
    }

    /// The next pause, with jitter between half of it and all of it, and at least what the server asks for.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        self.jitter ^= self.jitter << 13;
        self.jitter ^= self.jitter >> 17;
        self.jitter ^= self.jitter << 5;
        let part = 0.5 + f64::from(self.jitter) / f64::from(u32::MAX) / 2.0;
        let pause = self.next.mul_f64(part);
        self.next = (self.next * 2).min(BACKOFF_MAX);
        pause.max(retry_after.unwrap_or_default().min(BACKOFF_MAX))
    }
}

#[cfg(test)]
mod tests {
    use crate::api::retry::*;

    #[test]
    fn backoff_grows_to_its_maximum_and_honours_retry_after() {
        let mut backoff = Backoff::new();
        let all: Vec<Duration> = (0..20).map(|_| backoff.next(None)).collect();
        assert!(all[0] >= BACKOFF_FIRST / 2 && all[0] <= BACKOFF_FIRST, "{all:?}");
        assert!(all.iter().all(|pause| *pause <= BACKOFF_MAX), "{all:?}");
        assert!(all[19] >= BACKOFF_MAX / 2, "{all:?}");
        assert_eq!(Backoff::new().next(Some(Duration::from_secs(3))), Duration::from_secs(3));
    }
}
