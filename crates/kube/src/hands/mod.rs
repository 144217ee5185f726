//! Doing what was decided: one request after another, as long as this process is the leader.

mod persist;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::lease::Leadership;
use persist::Pauses;
pub use persist::Said;

/// Requests under way at one time. The server's own limit is 400 by default; others want some of it.
const AT_ONCE: usize = 96;

/// Talks to the API server for everybody who acts.
#[derive(Clone)]
pub struct Hands {
    pub(crate) client: Client,
    leadership: Leadership,
    free: Arc<Semaphore>,
}

impl std::fmt::Debug for Hands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hands").finish_non_exhaustive()
    }
}

impl Hands {
    pub fn new(client: Client, leadership: Leadership) -> Self {
        Self { client, leadership, free: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Whether this process is the leader.
    pub fn may_act(&self) -> bool {
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
        let mut pauses = Pauses::new();
        loop {
            if !self.leadership.holds() {
                return Err(Said::NotLeader);
            }
            let turn = self.free.acquire().await.expect("never closed");
            let answer = request().await;
            drop(turn);
            let again = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::debug!(%error, "a request failed");
                    match persist::judge(error) {
                        Ok(said) => return Err(said),
                        Err(again) => again,
                    }
                }
            };
            tokio::time::sleep(pauses.next(again)).await;
        }
    }

    /// Makes an object.
    ///
    /// # Errors
    /// With [`Said::Conflict`] when it is there already.
    pub async fn create<K>(&self, api: &Api<K>, object: &K) -> Result<K, Said>
    where
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let params = PostParams::default();
        self.ask(|| api.create(&params, object)).await
    }

    /// Merges something into an object.
    ///
    /// # Errors
    /// With what the server says against it.
    pub async fn patch<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> Result<K, Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.ask(|| api.patch(name, &params, &patch)).await
    }

    /// Merges something into an object's status.
    ///
    /// # Errors
    /// With what the server says against it.
    pub async fn patch_status<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> Result<K, Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.ask(|| api.patch_status(name, &params, &patch)).await
    }

    /// Removes an object.
    ///
    /// # Errors
    /// With [`Said::Gone`] when there is none.
    pub async fn delete<K>(&self, api: &Api<K>, name: &str, how: &DeleteParams) -> Result<(), Said>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        self.ask(|| api.delete(name, how)).await.map(drop)
    }
}
