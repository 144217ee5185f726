//! Starts one watch per kind; the changes of all of them go into one channel.
//!
//! A watch lists its kind once and then watches; when it falls behind it lists again. The delivered events distinguish a
//! list from a change, so that the cache notices objects that were deleted between a watch and the next list.

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::Event;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::resource_versions::ResourceVersions;
use crate::api::watch::channel::{Channel, Delivered, InFlightBytes};
use crate::api::watch::decode::{Decode, Omission};
use crate::api::watch::health::WatchHealth;
use crate::api::watch::list_watch::{WatchTarget, list_and_watch};
use crate::api::watch::namespace_budget::NamespaceBudget;
use crate::objects::field_mask::Mask;
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;

/// The index of a watched kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SourceId(pub(crate) usize);

/// Any kind that is watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ObjectKind {
    Pod,
    Node,
    Claim,
    Other(SourceId),
}

/// An observed change.
#[derive(Debug)]
pub(crate) enum Change {
    Pod(Box<Event<Pod>>),
    Node(Box<Event<Node>>),
    Claim(Box<Event<NodeClaim>>),
    Other(SourceId, Box<Event<DynamicObject>>),
    /// An object is omitted. If it was delivered before, its earlier state still counts.
    Omitted(ObjectKind, Box<Omission>),
    /// An object that was delivered is omitted from now on.
    Dropped(ObjectKind, Box<Omission>),
}

/// Size limits for observed objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The most bytes of one object, as JSON of the fields that are read.
    pub object: usize,
    /// The most bytes of memory of all objects of one namespace, as estimated.
    pub namespace: usize,
}

impl Default for Bounds {
    /// A pod takes one to two kilobytes: a namespace may have some 40,000 of them.
    fn default() -> Self {
        Self { object: 128 << 10, namespace: 64 << 20 }
    }
}

/// All watches. They end when this is dropped.
pub(crate) struct Watches {
    client: Client,
    changes: mpsc::Sender<Delivered>,
    newest: ResourceVersions,
    bounds: Bounds,
    budget: NamespaceBudget,
    in_flight: InFlightBytes,
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
        let (budget, in_flight) =
            (NamespaceBudget::new(bounds.namespace), InFlightBytes::default());
        Self { client, changes, newest, bounds, budget, in_flight, health, tasks: JoinSet::new() }
    }

    pub(crate) fn pods(&mut self) {
        self.spawn(ObjectKind::Pod, &(), (), |event: Event<Pod>| {
            Change::Pod(Box::new(event.modify(Pod::count_allocated)))
        });
    }

    pub(crate) fn nodes(&mut self) {
        self.spawn(ObjectKind::Node, &(), (), |event| Change::Node(Box::new(event)));
    }

    pub(crate) fn claims(&mut self) {
        self.spawn(ObjectKind::Claim, &(), (), |event| Change::Claim(Box::new(event)));
    }

    /// Watches any other kind, and keeps these fields of its objects.
    pub(crate) fn other(&mut self, source: SourceId, kind: &ApiResource, fields: Mask) {
        self.spawn(ObjectKind::Other(source), kind, fields, move |event| {
            Change::Other(source, Box::new(event))
        });
    }

    fn spawn<K>(
        &mut self,
        which: ObjectKind,
        of: &K::DynamicType,
        fields: K::Fields,
        change: impl Fn(Event<K>) -> Change + Send + Sync + 'static,
    ) where
        K: Decode + Resource + ResourceExt + DeserializeOwned + Send + Sync + 'static,
    {
        let (client, url) = (self.client.clone(), K::url_path(of, None));
        let (bytes, health) = (self.bounds.object, self.health.clone());
        let kind = WatchTarget { client, url, fields, bytes, health };
        let channel = Channel::new(
            which,
            self.changes.clone(),
            self.budget.clone(),
            self.in_flight.clone(),
            change,
        );
        let newest = self.newest.clone();
        self.tasks.spawn(async move { list_and_watch(&kind, &newest, &channel).await });
    }
}

/// The key of an object: `namespace/name`, or its name if it is cluster-scoped.
pub(crate) fn key_of(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}
