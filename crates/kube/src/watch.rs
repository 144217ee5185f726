//! Every change of every kind that is looked at, in one channel.
//!
//! A watcher lists once and then follows; when it falls behind or the connection breaks it lists again. What comes out
//! tells a list from a change, so that whoever keeps the objects notices those that went while nobody looked.

use std::fmt::Debug;

use futures::{StreamExt, pin_mut};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Config, Event};
use kube::runtime::{WatchStreamExt, watcher as follow};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::objects::{Node, NodeClaim, Pod, trim};

/// Objects per page of a list.
const PAGE: u32 = 500;

/// A kind that is watched, by its place among all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Source(pub(crate) usize);

/// What a watcher saw.
#[derive(Debug)]
pub(crate) enum Change {
    Pod(Box<Event<Pod>>),
    Node(Box<Event<Node>>),
    Claim(Box<Event<NodeClaim>>),
    Other(Source, Box<Event<DynamicObject>>),
}

/// All watchers. They end when this is dropped.
pub(crate) struct Watches {
    client: Client,
    changes: mpsc::Sender<Change>,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(crate) fn new(client: Client, changes: mpsc::Sender<Change>) -> Self {
        Self { client, changes, tasks: JoinSet::new() }
    }

    pub(crate) fn pods(&mut self) {
        self.spawn(Api::<Pod>::all(self.client.clone()), |event| Change::Pod(Box::new(event)));
    }

    pub(crate) fn nodes(&mut self) {
        self.spawn(Api::<Node>::all(self.client.clone()), |event| Change::Node(Box::new(event)));
    }

    pub(crate) fn claims(&mut self) {
        self.spawn(Api::<NodeClaim>::all(self.client.clone()), |event| {
            Change::Claim(Box::new(event))
        });
    }

    /// Any other kind.
    pub(crate) fn other(&mut self, source: Source, kind: &ApiResource) {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), kind);
        self.spawn(api, move |event| Change::Other(source, Box::new(event)));
    }

    fn spawn<K>(&mut self, api: Api<K>, change: impl Fn(Event<K>) -> Change + Send + 'static)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let changes = self.changes.clone();
        self.tasks.spawn(async move {
            let config = Config::default().page_size(PAGE);
            let seen = follow(api, config).default_backoff();
            pin_mut!(seen);
            while let Some(event) = seen.next().await {
                let event = match event {
                    Ok(event) => event.modify(|object| trim(object.meta_mut())),
                    Err(error) => {
                        report(&error);
                        continue;
                    }
                };
                if changes.send(change(event)).await.is_err() {
                    return; // nobody listens any more
                }
            }
        });
    }
}

/// A watch that breaks begins again by itself; that it may not begin at all is worth a word.
fn report(error: &watcher::Error) {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if status.code == 403 =>
        {
            tracing::error!(message = status.message, "may not be watched");
        }
        error => tracing::debug!(%error, "a watch broke and begins again"),
    }
}

/// What an object is called: `namespace/name`, or only its name.
pub(crate) fn key_of(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}
