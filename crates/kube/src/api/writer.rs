//! Sends requests to the API server while this process leads, and retries them until they are answered.
//!
//! Each namespace has a share of the requests in flight. A caller that needs its writes to one object in order goes through
//! `effects::ordered`.

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
use crate::api::retry::{ApiError, BACKOFF_MAX, Backoff, classify};
use crate::api::status_priority::{StatusPriority, YIELD_MAX};
use crate::lease::leadership::Leadership;

/// The most requests in flight. The server's own limit is 400 by default, and other clients need some of it.
const IN_FLIGHT_MAX: usize = 96;
/// The most of them for one namespace: however slowly its requests are answered, some slots are left for the others.
const IN_FLIGHT_PER_NAMESPACE: usize = 80;
/// The most requests in flight that buy nodes. A webhook that does not answer holds each of them for long, and there may be
/// hundreds: bindings do not wait behind them.
const PURCHASES_IN_FLIGHT_MAX: usize = 32;
/// A request that is not answered by then is taken as lost: connections break without notice.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process that shuts down waits for answers. Kubernetes gives it thirty seconds.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests to the API server while this process leads.
#[derive(Clone)]
pub struct ApiWriter {
    pub(crate) client: Client,
    leadership: Leadership,
    slots: Arc<RequestSlots>,
    /// The slots that this writer does not use: see [`ApiWriter::for_purchases`].
    other_slots: Arc<RequestSlots>,
    refusals: Arc<RefusalBackoff>,
    /// The namespace on whose behalf it writes: see [`ApiWriter::for_namespace`]. Empty for Muster's own objects.
    namespace: Arc<str>,
    status_priority: Arc<StatusPriority>,
}

impl std::fmt::Debug for ApiWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiWriter").finish_non_exhaustive()
    }
}

impl ApiWriter {
    pub fn new(client: Client, leadership: Leadership) -> Self {
        let slots = RequestSlots::new(IN_FLIGHT_MAX, IN_FLIGHT_PER_NAMESPACE);
        let other_slots = RequestSlots::new(PURCHASES_IN_FLIGHT_MAX, PURCHASES_IN_FLIGHT_MAX);
        let (refusals, status_priority) = (Arc::default(), Arc::default());
        let namespace = "".into();
        Self { client, leadership, slots, other_slots, refusals, namespace, status_priority }
    }

    /// A writer on behalf of a namespace, with its share of the slots and its own backoff after refusals.
    pub(crate) fn for_namespace(&self, namespace: &str) -> Self {
        Self { namespace: namespace.into(), ..self.clone() }
    }

    /// A writer for requests that buy nodes, which have slots of their own.
    pub(crate) fn for_purchases(&self) -> Self {
        let Self { slots, other_slots, .. } = self.clone();
        Self { slots: other_slots, other_slots: slots, ..self.clone() }
    }

    /// Waits until no request is in flight, with a timeout: status writes yield to bindings.
    pub(crate) async fn when_bindings_are_done(&self) {
        self.status_priority.wait_until_idle(YIELD_MAX).await;
    }

    /// Whether this process is the leader.
    pub fn is_leader(&self) -> bool {
        self.leadership.is_held()
    }

    /// Sends a request until the server has answered it.
    ///
    /// # Errors
    /// With an error that is not retried.
    pub async fn request<T, F>(&self, send: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut backoff = Backoff::new();
        loop {
            self.refusals.wait(&self.namespace).await;
            if !self.leadership.is_held() {
                return Err(ApiError::NotLeader);
            }
            let guard = self.status_priority.begin_request();
            let Some(slot) = self.slots.acquire(&self.namespace).await else {
                return Err(ApiError::NotLeader);
            };
            // The wait for a slot may have been long: another replica may lead by now. A request that is not answered
            // before the term ends is cancelled: the server stops working on it when the connection is closed.
            let timeout = REQUEST_TIMEOUT.min(self.leadership.remaining());
            if timeout.is_zero() {
                return Err(ApiError::NotLeader);
            }
            let answer = tokio::time::timeout(timeout, send()).await;
            drop((slot, guard));
            let retry_after = match answer {
                Err(_) => None,
                Ok(Ok(answer)) => {
                    self.refusals.accepted(&self.namespace, Instant::now());
                    return Ok(answer);
                }
                Ok(Err(error)) => {
                    tracing::debug!(error = with_causes(&error), "a request failed");
                    match classify(error) {
                        Ok(error) => {
                            self.count_refusal(&error);
                            return Err(error);
                        }
                        Err(retry_after) => retry_after,
                    }
                }
            };
            tokio::time::sleep(backoff.next(retry_after)).await;
        }
    }

    /// Counts a refusal for the namespace. Requests for Muster's own objects have only the backoff of their callers.
    fn count_refusal(&self, error: &ApiError) {
        if matches!(error, ApiError::Refused(_)) && !self.namespace.is_empty() {
            self.refusals.refused(&self.namespace, Instant::now());
        }
    }

    /// Sends a request and retries conflicts. For a write that names no version a conflict is no decision: another client
    /// wrote at the same time, to the object or to the quota that the server counts it against.
    pub(crate) async fn retry_conflicts<T, F>(&self, send: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut backoff = Backoff::new();
        loop {
            match self.request(&send).await {
                Err(ApiError::Conflict(_)) => tokio::time::sleep(backoff.next(None)).await,
                decided => return decided,
            }
        }
    }

    /// Sends no more requests, and waits for those in flight: they may still take effect, and the next leader must be
    /// able to observe that. Returns whether all were answered.
    pub(crate) async fn drain(&self) -> bool {
        self.slots.close();
        self.other_slots.close();
        let drained = async {
            while self.slots.in_flight() + self.other_slots.in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_ok()
    }

    /// Creates an object.
    ///
    /// # Errors
    /// With [`ApiError::AlreadyExists`] when an object of that name exists.
    pub async fn create<K>(&self, api: &Api<K>, object: &K) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let params = PostParams::default();
        self.retry_conflicts(async || ignore_body(api.create(&params, object).await)).await
    }

    /// Sends a merge patch for an object.
    ///
    /// # Errors
    /// With an error that is not retried.
    pub async fn patch<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.retry_conflicts(async || ignore_body(api.patch(name, &params, &patch).await)).await
    }

    /// Patches the object with this UID, and no later object of the same name. The patch must contain the UID.
    ///
    /// # Errors
    /// With [`ApiError::Conflict`] when the object was recreated.
    pub(crate) async fn patch_with_uid<K>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        patch: &Patch<Value>,
    ) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned + Resource,
    {
        let params = PatchParams::default();
        self.write_with_uid(api, name, uid, || api.patch(name, &params, patch)).await
    }

    /// Writes to the object with this UID, and to no later object of the same name. The request must contain the UID.
    ///
    /// # Errors
    /// With [`ApiError::Conflict`] when the object was recreated.
    pub(crate) async fn write_with_uid<K, F>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        send: impl Fn() -> F,
    ) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned + Resource,
        F: Future<Output = kube::Result<K>>,
    {
        let mut backoff = Backoff::new();
        loop {
            let conflict = match self.request(async || ignore_body(send().await)).await {
                Ok(()) => return Ok(()),
                Err(ApiError::Conflict(conflict)) => conflict,
                Err(error) => return Err(error),
            };
            // Either another client wrote at the same time, or the object was recreated: its UID tells which.
            let current = self.request(|| api.get(name)).await?;
            if current.meta().uid.as_deref() != Some(uid) {
                return Err(ApiError::Conflict(conflict));
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// Sends a merge patch for the status of an object.
    ///
    /// # Errors
    /// With an error that is not retried.
    pub async fn patch_status<K>(
        &self,
        api: &Api<K>,
        name: &str,
        patch: &Value,
    ) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.retry_conflicts(async || ignore_body(api.patch_status(name, &params, &patch).await))
            .await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// With [`ApiError::NotFound`] when it does not exist.
    pub async fn delete<K>(
        &self,
        api: &Api<K>,
        name: &str,
        params: &DeleteParams,
    ) -> Result<(), ApiError>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let send = async || ignore_body(api.delete(name, params).await);
        match params.preconditions {
            Some(_) => self.request(send).await,
            None => self.retry_conflicts(send).await,
        }
    }

    /// Deletes an object, and retries refusals for as long as it takes: an abandoned object must not stay. Returns
    /// whether the object existed.
    ///
    /// # Errors
    /// With [`ApiError::NotLeader`] only.
    pub async fn delete_until_gone<K>(&self, api: &Api<K>, name: &str) -> Result<bool, ApiError>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        loop {
            match self.delete(api, name, &DeleteParams::default()).await {
                Ok(()) => return Ok(true),
                Err(ApiError::NotFound) => return Ok(false),
                Err(ApiError::NotLeader) => return Err(ApiError::NotLeader),
                Err(error) => tracing::warn!(name, %error, "not deleted; retried"),
            }
            tokio::time::sleep(BACKOFF_MAX).await;
        }
    }
}

/// Treats a write as done although the returned object cannot be read. Tenants may have made it unreadable, which is no
/// reason to write again.
fn ignore_body<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Ok(_) | Err(kube::Error::SerdeError(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::api::writer::*;

    #[tokio::test]
    async fn unanswered_purchases_do_not_block_other_requests() {
        let unreachable = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(unreachable).expect("a client");
        let writer = ApiWriter::new(client, Leadership::without_lease());
        let purchases = writer.for_purchases();
        for _ in 0..10 * IN_FLIGHT_MAX {
            let purchases = purchases.clone();
            let unanswered = std::future::pending::<kube::Result<()>>;
            tokio::spawn(async move { purchases.request(unanswered).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(purchases.slots.in_flight(), PURCHASES_IN_FLIGHT_MAX);
        let answer = writer.request(|| async { Ok(7) });
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
        assert_eq!(answer.expect("it has a slot").ok(), Some(7));
        // A drain waits for all requests in flight.
        assert_eq!(writer.slots.in_flight(), 0);
        let drained = tokio::time::timeout(Duration::from_millis(50), writer.drain()).await;
        let more = purchases.slots.acquire(&purchases.namespace).await;
        assert!(drained.is_err() && more.is_none());
    }
}
