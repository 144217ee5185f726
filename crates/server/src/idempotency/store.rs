//! Stores the answers to requests with idempotency keys.

use std::collections::{BTreeMap, VecDeque};
use std::future::ready;
use std::sync::{Mutex, PoisonError};

use muster_api::crd::Stamp;
use muster_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::Answer;

/// How long an answer is kept, in milliseconds.
pub const ANSWER_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// A caller's key. Keys of different callers are independent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The caller's name.
    pub caller: String,
    /// The value of `Idempotency-Key`.
    pub key: String,
}

/// A request with a key, and its answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The SHA-256 of the request: method, URL and body.
    pub request: [u8; 32],
    /// When it was answered.
    pub at: Stamp,
    /// The HTTP status.
    pub status: u16,
    /// The body as JSON; empty if there was none.
    pub body: String,
}

/// Where answers are stored. A host with a database stores them there, so that they survive a restart.
///
/// An answer older than [`ANSWER_RETENTION_MS`] may be deleted, and is not used if it is loaded.
pub trait IdempotencyStore: Send + Sync + 'static {
    /// The answer under this key.
    fn load(&self, key: IdempotencyKey) -> Answer<Option<StoredAnswer>>;
    /// Stores an answer, replacing an earlier one.
    fn save(&self, key: IdempotencyKey, answer: StoredAnswer) -> Answer<()>;
}

/// A store in memory, which evicts the oldest answers when it is full.
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

/// Bytes of an answer beside its texts, by a generous estimate.
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
    /// A store of at most this many bytes.
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
            // A newer answer may have replaced it.
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
    async fn oldest_answer_is_evicted_when_full_or_after_a_day() {
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
    async fn replaced_answer_is_not_evicted_with_the_old_one() {
        let store = InMemoryStore::new(2_000);
        store.save(key(1), answer(0, 600)).await.unwrap();
        store.save(key(1), answer(1, 600)).await.unwrap();
        store.save(key(2), answer(2, 600)).await.unwrap();
        assert_eq!(store.load(key(1)).await, Ok(Some(answer(1, 600))));
    }
}
