//! Watches the API server, and answers questions of tests about the events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use tokio::task::JoinSet;

use super::audit::{Audit, key_of};
use super::suspected::Moment;

/// The kinds that are watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Pod,
    Node,
    NodeClaim,
    Order,
    Pool,
    Queue,
    Gang,
    Job,
}

const KINDS: [Kind; 8] = [
    Kind::Pod,
    Kind::Node,
    Kind::NodeClaim,
    Kind::Order,
    Kind::Pool,
    Kind::Queue,
    Kind::Gang,
    Kind::Job,
];

/// How often the observer checks whether it is up to date.
const EVERY: Duration = Duration::from_millis(30);
/// The longest that the watch may lag. Longer than this, the observer cannot judge and the test fails.
const BEHIND: Duration = Duration::from_secs(30);

impl Kind {
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, plural) = match self {
            Self::Pod => ("", "v1", "pods"),
            Self::Node => ("", "v1", "nodes"),
            Self::NodeClaim => ("karpenter.sh", "v1", "nodeclaims"),
            Self::Order => ("muster.sh", "v1alpha1", "orders"),
            Self::Pool => ("muster.sh", "v1alpha1", "pools"),
            Self::Queue => ("muster.sh", "v1alpha1", "queues"),
            Self::Gang => ("muster.sh", "v1alpha1", "gangs"),
            Self::Job => ("batch", "v1", "jobs"),
        };
        let slash = if group.is_empty() { "" } else { "/" };
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}{slash}{version}"),
            kind: format!("{self:?}"),
            plural: plural.to_owned(),
        }
    }
}

/// Watches all kinds from its start on.
pub(crate) struct Observer {
    client: Client,
    kinds: Vec<Kind>,
    notes: Arc<Mutex<Notes>>,
    _tasks: JoinSet<()>,
}

/// The audit, and how far the watch is.
#[derive(Default)]
struct Notes {
    audit: Audit,
    listed: BTreeSet<Kind>,
    /// The newest resource version of each object, deleted ones included.
    versions: BTreeMap<(Kind, String), u64>,
}

impl Observer {
    /// Watches every kind that is served. All existing objects have been seen when this returns.
    pub(crate) async fn start(client: Client) -> Self {
        let notes = Arc::new(Mutex::new(Notes::default()));
        let (mut kinds, mut tasks) = (Vec::new(), JoinSet::new());
        for kind in KINDS {
            let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
            // Without Karpenter, NodeClaims are not served.
            let Err(kube::Error::Api(status)) = objects.list(&ListParams::default().limit(1)).await
            else {
                tasks.spawn(watch(objects, kind, notes.clone()));
                kinds.push(kind);
                continue;
            };
            assert_eq!(status.code, 404, "{kind:?}: {status:?}");
        }
        let observer = Self { client, kinds, notes, _tasks: tasks };
        while observer.notes().listed.len() < observer.kinds.len() {
            tokio::time::sleep(EVERY).await;
        }
        observer
    }

    /// Every broken promise, once the watch is up to date and every suspicion is settled.
    pub(crate) async fn findings(&self) -> Vec<String> {
        let began = Instant::now();
        loop {
            let behind = self.behind().await;
            if let Some(findings) = self.settled().filter(|_| behind.is_none()) {
                return findings;
            }
            assert!(began.elapsed() < BEHIND, "the observer has not seen {behind:?}");
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Every broken promise, if no suspicion is open.
    fn settled(&self) -> Option<Vec<String>> {
        let mut notes = self.notes();
        notes.audit.check(Moment::now());
        notes.audit.is_settled().then(|| notes.audit.findings())
    }

    /// An object whose current version the watch has not seen yet.
    async fn behind(&self) -> Option<String> {
        for kind in &self.kinds {
            let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
            let all = match objects.list_metadata(&ListParams::default()).await {
                Ok(all) => all.items,
                Err(error) => return Some(format!("{kind:?}: {error}")),
            };
            let notes = self.notes();
            let is_new = |key: &String, version| {
                notes.versions.get(&(*kind, key.clone())).is_none_or(|seen| *seen < version)
            };
            let missed = all.iter().find_map(|one| {
                let key = key_of(one);
                is_new(&key, version_of(one)).then_some(key)
            });
            if let Some(missed) = missed {
                return Some(format!("{kind:?} {missed}"));
            }
        }
        None
    }

    /// The longest that any gang was bound or ungated in part.
    pub(crate) fn window(&self) -> Duration {
        self.notes().audit.partial_gangs.window
    }

    /// When a pod was first seen on a node.
    pub(crate) fn first_bound(&self) -> Option<Instant> {
        self.notes().audit.first_bound
    }

    /// When the claim of a node was seen to be released.
    pub(crate) fn returned(&self, node: &str) -> Option<Instant> {
        self.notes().audit.unused_claims.returned.get(node).copied()
    }

    /// How many pods of a gang were evicted.
    pub(crate) fn evicted(&self, gang: &str) -> usize {
        self.notes().audit.evicted.get(gang).map_or(0, BTreeSet::len)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("no holder panics")
    }
}

/// Records all objects of a kind. An object that is missing from a new list is gone, also without a delete event.
async fn watch(objects: Api<DynamicObject>, kind: Kind, notes: Arc<Mutex<Notes>>) {
    let stream = watcher(objects, Config::default()).default_backoff();
    futures::pin_mut!(stream);
    let (mut there, mut before) = (BTreeMap::new(), BTreeMap::new());
    while let Some(event) = stream.next().await {
        let mut notes = notes.lock().expect("no holder panics");
        match event {
            Ok(Event::Init) => before = std::mem::take(&mut there),
            Ok(Event::Apply(one) | Event::InitApply(one)) => {
                before.remove(&key_of(&one));
                there.insert(key_of(&one), one.clone());
                notes.see(kind, one, true);
            }
            Ok(Event::Delete(one)) => {
                there.remove(&key_of(&one));
                notes.see(kind, one, false);
            }
            Ok(Event::InitDone) => {
                for (_, one) in std::mem::take(&mut before) {
                    notes.see(kind, one, false);
                }
                notes.listed.insert(kind);
            }
            Err(_) => {}
        }
    }
}

impl Notes {
    fn see(&mut self, kind: Kind, object: DynamicObject, is_there: bool) {
        self.versions.insert((kind, key_of(&object)), version_of(&object));
        self.audit.see(kind, object, is_there, Moment::now());
    }
}

/// API servers increment resource versions.
fn version_of(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}
