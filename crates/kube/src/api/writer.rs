//! Doing what was decided: one request after another, as long as this process is the leader.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::error_chain::with_causes;
use crate::api::refusal_backoff::RefusalBackoff;
use crate::api::request_slots::RequestSlots;
use crate::api::retry::Said;
use crate::api::retry::{Backoff, PAUSE_MAX};
use crate::api::status_priority::StatusPriority;
use crate::lease::leadership::Leadership;

/// Requests under way at one time. The server's own limit is 400 by default; others want some of it.
const AT_ONCE: usize = 96;
/// And of one namespace: however slowly its requests are answered, some are left for the others.
const OF_NAMESPACE: usize = 80;
/// And of those that ask for machines. A webhook that does not answer holds each of them for long, and there may be hundreds:
/// nobody's binding waits behind them.
const BUYING_AT_ONCE: usize = 32;
/// An answer that has not come by then is taken as lost: connections break without a word.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
/// How long a process that was told to end waits for answers. Kubernetes gives it thirty seconds.
const RESTED_WITHIN: Duration = Duration::from_secs(10);

/// Talks to the API server for everybody who acts.
#[derive(Clone)]
pub struct ApiWriter {
    pub(crate) client: Client,
    leadership: Leadership,
    turns: Arc<RequestSlots>,
    /// Those of the other kind: see [`ApiWriter::buying`].
    others: Arc<RequestSlots>,
    refusals: Arc<RefusalBackoff>,
    /// The namespace on whose behalf it asks: see [`ApiWriter::within`]. None for what is Muster's own.
    of: Arc<str>,
    haste: Arc<StatusPriority>,
}

impl std::fmt::Debug for ApiWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hands").finish_non_exhaustive()
    }
}

impl ApiWriter {
    pub fn new(client: Client, leadership: Leadership) -> Self {
        let turns = RequestSlots::new(AT_ONCE, OF_NAMESPACE);
        let others = RequestSlots::new(BUYING_AT_ONCE, BUYING_AT_ONCE);
        let (refusals, haste) = (Arc::default(), Arc::default());
        Self { client, leadership, turns, others, refusals, of: "".into(), haste }
    }

    /// The same for what is done on behalf of a namespace, which has its share of all turns and pays for its refusals.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        Self { of: namespace.into(), ..self.clone() }
    }

    /// The same for whoever asks for machines, which takes turns of its own.
    pub(crate) fn buying(&self) -> Self {
        let Self { turns, others, .. } = self.clone();
        Self { turns: others, others: turns, ..self.clone() }
    }

    /// Waits until nothing is under way, or has been for too long: what is only told need not be in the way.
    pub(crate) async fn when_bindings_are_done(&self) {
        self.haste.quiet(crate::api::status_priority::MOST).await;
    }

    /// Whether this process is the leader.
    pub fn is_leader(&self) -> bool {
        self.leadership.holds()
    }

    /// Asks until the server has answered.
    ///
    /// # Errors
    /// With the answer, when it is not the one that was hoped for.
    pub async fn ask<T, F>(&self, request: impl Fn() -> F) -> Result<T, Said>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut pauses = Backoff::new();
        loop {
            self.refusals.pace(&self.of).await;
            if !self.leadership.holds() {
                return Err(Said::NotLeader);
            }
            let deed = self.haste.begin();
            let Some(turn) = self.turns.acquire(&self.of).await else {
                return Err(Said::NotLeader);
            };
            // Another may act by now: the wait for a turn may have been long. And one that is not answered while the
            // lease is held is taken back: the server stops working on it when nobody listens.
            let within = ANSWERED_WITHIN.min(self.leadership.left());
            if within.is_zero() {
                return Err(Said::NotLeader);
            }
            let answer = tokio::time::timeout(within, request()).await;
            drop((turn, deed));
            let again = match answer {
                Err(_) => None,
                Ok(Ok(answer)) => {
                    self.refusals.taken(&self.of, Instant::now());
                    return Ok(answer);
                }
                Ok(Err(error)) => {
                    tracing::debug!(error = with_causes(&error), "a request failed");
                    match crate::api::retry::judge(error) {
                        Ok(said) => {
                            self.note(&said);
                            return Err(said);
                        }
                        Err(again) => again,
                    }
                }
            };
            tokio::time::sleep(pauses.next(again)).await;
        }
    }

    /// What is Muster's own is at nobody's pace but its caller's.
    fn note(&self, said: &Said) {
        if matches!(said, Said::Refused(_)) && !self.of.is_empty() {
            self.refusals.refused(&self.of, Instant::now());
        }
    }

    /// Asks until the server has decided. Of a write that names no version a conflict says nothing: others wrote at the
    /// same time, to the object or to what the server counts it against.
    pub(crate) async fn settle<T, F>(&self, request: impl Fn() -> F) -> Result<T, Said>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut pauses = Backoff::new();
        loop {
            match self.ask(&request).await {
                Err(Said::Conflict(_)) => tokio::time::sleep(pauses.next(None)).await,
                decided => return decided,
            }
        }
    }

    /// Asks nothing more, and waits for answers to what was asked: what is under way may still happen, and whoever
    /// acts next must be able to see it. Whether all of them came.
    pub(crate) async fn rest(&self) -> bool {
        self.turns.close();
        self.others.close();
        let resting = async {
            while self.turns.taken() + self.others.taken() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(RESTED_WITHIN, resting).await.is_ok()
    }

    /// Makes an object.
    ///
    /// # Errors
    /// With [`Said::Exists`] when it is there already.
    pub async fn create<K>(&self, api: &Api<K>, object: &K) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let params = PostParams::default();
        self.settle(async || is_done(api.create(&params, object).await)).await
    }

    /// Merges something into an object.
    ///
    /// # Errors
    /// With what the server says against it.
    pub async fn patch<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.settle(async || is_done(api.patch(name, &params, &patch).await)).await
    }

    /// Merges something into this object, and into no other that came later and has its name. The patch says the uid too.
    ///
    /// # Errors
    /// With [`Said::Conflict`] when it is another by now.
    pub(crate) async fn patch_this<K>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        patch: &Patch<Value>,
    ) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned + Resource,
    {
        let params = PatchParams::default();
        self.write_to_this(api, name, uid, || api.patch(name, &params, patch)).await
    }

    /// Writes to this object by a request that says its uid, and to no other that came later and has its name.
    ///
    /// # Errors
    /// With [`Said::Conflict`] when it is another by now.
    pub(crate) async fn write_to_this<K, F>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        request: impl Fn() -> F,
    ) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned + Resource,
        F: Future<Output = kube::Result<K>>,
    {
        let mut pauses = Backoff::new();
        loop {
            let why = match self.ask(async || is_done(request().await)).await {
                Ok(()) => return Ok(()),
                Err(Said::Conflict(why)) => why,
                Err(said) => return Err(said),
            };
            // Somebody wrote at the same time, or it is another: look which.
            let is = self.ask(|| api.get(name)).await?;
            if is.meta().uid.as_deref() != Some(uid) {
                return Err(Said::Conflict(why));
            }
            tokio::time::sleep(pauses.next(None)).await;
        }
    }

    /// Merges something into an object's status.
    ///
    /// # Errors
    /// With what the server says against it.
    pub async fn patch_status<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.settle(async || is_done(api.patch_status(name, &params, &patch).await)).await
    }

    /// Removes an object.
    ///
    /// # Errors
    /// With [`Said::Gone`] when there is none.
    pub async fn delete<K>(&self, api: &Api<K>, name: &str, how: &DeleteParams) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        match how.preconditions {
            Some(_) => self.ask(async || is_done(api.delete(name, how).await)).await,
            None => self.settle(async || is_done(api.delete(name, how).await)).await,
        }
    }

    /// Removes an object, however long that is refused: what was given up must not stay. Whether it was there.
    ///
    /// # Errors
    /// With [`Said::NotLeader`] only.
    pub async fn remove<K>(&self, api: &Api<K>, name: &str) -> Result<bool, Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        loop {
            match self.delete(api, name, &DeleteParams::default()).await {
                Ok(()) => return Ok(true),
                Err(Said::Gone) => return Ok(false),
                Err(Said::NotLeader) => return Err(Said::NotLeader),
                Err(said) => tracing::warn!(name, %said, "not removed"),
            }
            tokio::time::sleep(PAUSE_MAX).await;
        }
    }
}

/// Whether a write was done. The server shows the object as it is then, which tenants may have made unreadable: that it
/// cannot be read is no reason to write again.
fn is_done<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Ok(_) | Err(kube::Error::SerdeError(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::api::writer::*;

    #[tokio::test]
    async fn machines_that_nobody_answers_for_hold_nobody_else_back() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(nowhere).expect("a client");
        let hands = ApiWriter::new(client, Leadership::forever());
        let buying = hands.buying();
        for _ in 0..10 * AT_ONCE {
            let buying = buying.clone();
            tokio::spawn(async move { buying.ask(std::future::pending::<kube::Result<()>>).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(buying.turns.taken(), BUYING_AT_ONCE);
        let answer = hands.ask(|| async { Ok(7) });
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
        assert_eq!(answer.expect("it has its turn").ok(), Some(7));
        // Whoever ends waits for all that is under way.
        assert_eq!(hands.turns.taken(), 0);
        let rest = tokio::time::timeout(Duration::from_millis(50), hands.rest()).await;
        let more = buying.turns.acquire(&buying.of).await;
        assert!(rest.is_err() && more.is_none());
    }
}
