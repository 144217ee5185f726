//! Every change of every kind that is looked at, in one channel.
//!
//! A watcher lists once and then follows; when it falls behind it lists again. What comes out tells a list from a
//! change, so that whoever keeps the objects notices those that went while nobody looked.

mod follow;
mod newest;

use std::fmt::Debug;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Event;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::objects::{Node, NodeClaim, Pod, trim};
use follow::{Kind, Sink, follow};
pub(crate) use newest::Newest;

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
    newest: Newest,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(crate) fn new(client: Client, changes: mpsc::Sender<Change>, newest: Newest) -> Self {
        Self { client, changes, newest, tasks: JoinSet::new() }
    }

    pub(crate) fn pods(&mut self) {
        self.spawn(&(), |event: Event<Pod>| Change::Pod(Box::new(event.modify(Pod::hold))));
    }

    pub(crate) fn nodes(&mut self) {
        self.spawn(&(), |event| Change::Node(Box::new(event)));
    }

    pub(crate) fn claims(&mut self) {
        self.spawn(&(), |event| Change::Claim(Box::new(event)));
    }

    /// Any other kind.
    pub(crate) fn other(&mut self, source: Source, kind: &ApiResource) {
        self.spawn(kind, move |event| Change::Other(source, Box::new(event)));
    }

    fn spawn<K>(
        &mut self,
        of: &K::DynamicType,
        change: impl Fn(Event<K>) -> Change + Send + Sync + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let kind = Kind {
            api: Api::all_with(self.client.clone(), of),
            guarded: Api::all_with(self.client.clone(), of),
        };
        let (changes, newest) = (self.changes.clone(), self.newest.clone());
        self.tasks.spawn(async move {
            follow(&kind, &newest, &Channel { changes, change }).await;
        });
    }
}

/// The one channel for all kinds.
struct Channel<F> {
    changes: mpsc::Sender<Change>,
    change: F,
}

impl<K: ResourceExt, F: Fn(Event<K>) -> Change> Sink<K> for Channel<F> {
    async fn send(&self, event: Event<K>) -> bool {
        let event = event.modify(|object| trim(object.meta_mut()));
        self.changes.send((self.change)(event)).await.is_ok()
    }
}

/// What an object is called: `namespace/name`, or only its name.
pub(crate) fn key_of(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}
