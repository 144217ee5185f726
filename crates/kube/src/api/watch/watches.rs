//! Every change of every kind that is looked at, in one channel.
//!
//! A watcher lists once and then follows; when it falls behind it lists again. What comes out tells a list from a
//! change, so that whoever keeps the objects notices those that went while nobody looked.

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::Event;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::resource_versions::ResourceVersions;
use crate::api::watch::channel::Channel;
use crate::api::watch::channel::Delivered;
use crate::api::watch::decode::Kept;
use crate::api::watch::decode::Omission;
use crate::api::watch::health::WatchHealth;
use crate::api::watch::list_watch::{Kind, follow};
use crate::api::watch::namespace_budget::NamespaceBudget;
use crate::objects::field_mask::Mask;
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;

/// A kind that is watched, by its place among all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Source(pub(crate) usize);

/// Any kind that is watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Which {
    Pod,
    Node,
    Claim,
    Other(Source),
}

/// What a watcher saw.
#[derive(Debug)]
pub(crate) enum Change {
    Pod(Box<Event<Pod>>),
    Node(Box<Event<Node>>),
    Claim(Box<Event<NodeClaim>>),
    Other(Source, Box<Event<DynamicObject>>),
    /// An object was left out. If it was taken in before, it counts as it was.
    Omission(Which, Box<Omission>),
    /// An object that was taken in is left out from now on.
    Dropped(Which, Box<Omission>),
}

/// How much of what others write is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of one object, as JSON of the fields that are read.
    pub object: usize,
    /// Bytes of memory that the objects of one namespace take together, as estimated.
    pub namespace: usize,
}

impl Default for Bounds {
    /// A pod takes one to two kilobytes: a namespace may have some 40,000 of them.
    fn default() -> Self {
        Self { object: 128 << 10, namespace: 64 << 20 }
    }
}

/// All watchers. They end when this is dropped.
pub(crate) struct Watches {
    client: Client,
    changes: mpsc::Sender<Delivered>,
    newest: ResourceVersions,
    bounds: Bounds,
    ledger: NamespaceBudget,
    room: crate::api::watch::channel::Room,
    health: WatchHealth,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(crate) fn new(
        client: Client,
        changes: mpsc::Sender<Delivered>,
        newest: ResourceVersions,
        bounds: Bounds,
        health: WatchHealth,
    ) -> Self {
        let (ledger, room) =
            (NamespaceBudget::new(bounds.namespace), crate::api::watch::channel::Room::default());
        Self { client, changes, newest, bounds, ledger, room, health, tasks: JoinSet::new() }
    }

    pub(crate) fn pods(&mut self) {
        self.spawn(Which::Pod, &(), (), |event: Event<Pod>| {
            Change::Pod(Box::new(event.modify(Pod::hold)))
        });
    }

    pub(crate) fn nodes(&mut self) {
        self.spawn(Which::Node, &(), (), |event| Change::Node(Box::new(event)));
    }

    pub(crate) fn claims(&mut self) {
        self.spawn(Which::Claim, &(), (), |event| Change::Claim(Box::new(event)));
    }

    /// Any other kind, of which these fields are kept.
    pub(crate) fn other(&mut self, source: Source, kind: &ApiResource, fields: Mask) {
        self.spawn(Which::Other(source), kind, fields, move |event| {
            Change::Other(source, Box::new(event))
        });
    }

    fn spawn<K>(
        &mut self,
        which: Which,
        of: &K::DynamicType,
        fields: K::Fields,
        change: impl Fn(Event<K>) -> Change + Send + Sync + 'static,
    ) where
        K: Kept + Resource + ResourceExt + DeserializeOwned + Send + Sync + 'static,
    {
        let (client, url) = (self.client.clone(), K::url_path(of, None));
        let (bytes, health) = (self.bounds.object, self.health.clone());
        let kind = Kind { client, url, fields, bytes, health };
        let channel = Channel::new(
            which,
            self.changes.clone(),
            self.ledger.clone(),
            self.room.clone(),
            change,
        );
        let newest = self.newest.clone();
        self.tasks.spawn(async move { follow(&kind, &newest, &channel).await });
    }
}

/// What an object is called: `namespace/name`, or only its name.
pub(crate) fn key_of(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}
