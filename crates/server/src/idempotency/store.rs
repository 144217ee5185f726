//! What was answered to requests with an idempotency key, so that it can be answered again.

use std::collections::{BTreeMap, VecDeque};
use std::future::ready;
use std::sync::{Mutex, PoisonError};

use muster_api::crd::Stamp;
use muster_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::Answer;

/// An answer is remembered for so long.
pub const ANSWER_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// Whose key it is, and which. Keys of different callers have nothing to do with each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The caller's name.
    pub caller: String,
    /// What they sent as `Idempotency-Key`.
    pub key: String,
}

/// What was asked with a key, and what was answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The SHA-256 of the request: method, address and body.
    pub request: [u8; 32],
    /// When it was answered.
    pub at: Stamp,
    /// The status.
    pub status: u16,
    /// The body, which is JSON; empty when there was none.
    pub body: String,
}

/// Where answers are kept. A host with a database keeps them there, and they outlive it.
///
/// An answer older than [`REMEMBERED_MS`] may be forgotten, and is not used if it is recalled.
pub trait IdempotencyStore: Send + Sync + 'static {
    /// What was answered to this key.
    fn load(&self, key: IdempotencyKey) -> Answer<Option<StoredAnswer>>;
    /// Keeps an answer; one that was kept before is replaced.
    fn save(&self, key: IdempotencyKey, answer: StoredAnswer) -> Answer<()>;
}

/// A memory that lasts as long as the process, and forgets the oldest when it is full.
#[derive(Debug)]
pub struct InMemoryStore {
    inner: Mutex<Inner>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Inner {
    answers: BTreeMap<IdempotencyKey, StoredAnswer>,
    oldest: VecDeque<(Time, IdempotencyKey)>,
    bytes: usize,
}

/// What an answer takes beside its texts, counted generously.
const OVERHEAD_BYTES: usize = 256;

fn size(key: &IdempotencyKey, answer: &StoredAnswer) -> usize {
    2 * (key.caller.len() + key.key.len()) + answer.body.len() + OVERHEAD_BYTES
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl InMemoryStore {
    /// One of so many bytes at most.
    pub fn new(most_bytes: usize) -> Self {
        Self { inner: Mutex::default(), most_bytes }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget(&mut self, key: &IdempotencyKey) {
        if let Some(answer) = self.answers.remove(key) {
            self.bytes -= size(key, &answer);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((at, key)) = self.oldest.pop_front()
            // It may have been replaced by a younger one.
            && self.answers.get(&key).is_some_and(|answer| answer.at.0 == at)
        {
            self.forget(&key);
        }
    }
}

impl IdempotencyStore for InMemoryStore {
    fn load(&self, key: IdempotencyKey) -> Answer<Option<StoredAnswer>> {
        Box::pin(ready(Ok(self.inner().answers.get(&key).cloned())))
    }

    fn save(&self, key: IdempotencyKey, answer: StoredAnswer) -> Answer<()> {
        let mut inner = self.inner();
        let (at, bytes) = (answer.at.0, size(&key, &answer));
        inner.forget(&key);
        let old = |inner: &Inner| {
            inner.oldest.front().is_some_and(|(first, _)| first.0 < at.0 - ANSWER_RETENTION_MS)
        };
        while !inner.oldest.is_empty() && (inner.bytes + bytes > self.most_bytes || old(&inner)) {
            inner.forget_oldest();
        }
        if bytes <= self.most_bytes {
            inner.bytes += bytes;
            inner.oldest.push_back((at, key.clone()));
            inner.answers.insert(key, answer);
        }
        drop(inner);
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: usize) -> IdempotencyKey {
        IdempotencyKey { caller: "alice".into(), key: format!("{key:03}") }
    }

    fn answer(at: i64, bytes: usize) -> StoredAnswer {
        let body = "x".repeat(bytes);
        StoredAnswer { request: [0; 32], at: Stamp(Time(at)), status: 200, body }
    }

    #[tokio::test]
    async fn the_oldest_is_forgotten_when_memory_is_full_or_a_day_has_passed() {
        let store = InMemoryStore::new(10_000);
        for round in 0..1000 {
            store.save(key(round), answer(round as i64, 700)).await.unwrap();
            assert!(store.inner().bytes <= 10_000);
        }
        assert_eq!(store.load(key(0)).await, Ok(None));
        assert_eq!(store.load(key(999)).await, Ok(Some(answer(999, 700))));
        store.save(key(1), answer(2 * ANSWER_RETENTION_MS, 1)).await.unwrap();
        assert_eq!(store.inner().answers.len(), 1);
        store.save(key(2), answer(2 * ANSWER_RETENTION_MS, 20_000)).await.unwrap();
        assert_eq!(store.load(key(2)).await, Ok(None));
    }

    #[tokio::test]
    async fn an_answer_that_was_replaced_is_not_forgotten_with_the_old_one() {
        let store = InMemoryStore::new(2_000);
        store.save(key(1), answer(0, 600)).await.unwrap();
        store.save(key(1), answer(1, 600)).await.unwrap();
        store.save(key(2), answer(2, 600)).await.unwrap();
        assert_eq!(store.load(key(1)).await, Ok(Some(answer(1, 600))));
    }
}
