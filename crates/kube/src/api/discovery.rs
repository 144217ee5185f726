//! Discovery: which of the kinds that Muster can watch the API server serves, and in which version. Only Kubernetes' and
//! Muster's own kinds must be served.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource};
use kube::Client;
use kube::api::ApiResource;
use tokio::sync::Notify;

use crate::api::error_chain::with_causes;
use crate::api::retry::Backoff;
use crate::cache::kinds::{KindRole, watched_kinds};
use crate::run::HostError;

/// How often discovery is repeated for kinds that were not served before.
const REDISCOVER_INTERVAL: Duration = Duration::from_secs(30);

/// A kind that is watched where it is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WatchedKind {
    pub(crate) group: &'static str,
    /// The supported versions, the preferred first.
    pub(crate) versions: &'static [&'static str],
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl WatchedKind {
    /// The API resource in the preferred version.
    pub(crate) fn resource(&self) -> ApiResource {
        self.in_version(self.versions[0])
    }

    fn in_version(&self, version: &str) -> ApiResource {
        let api_version = match self.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        ApiResource {
            group: self.group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// A kind to discover, by its role. Karpenter's NodeClaims have none.
pub(crate) type Sought = (Option<KindRole>, WatchedKind);
/// Kinds that are served, and where.
pub(crate) type Served = Vec<(Option<KindRole>, ApiResource)>;

/// Answers of the API server so far. A retry requests only the missing ones: where every tenth request fails, a series of
/// many would fail too often.
#[derive(Debug, Default)]
struct DiscoveryCache {
    groups: Option<Vec<APIGroup>>,
    resources: BTreeMap<String, Vec<APIResource>>,
}

/// Discovers which kinds are served, and retries until the API server has answered.
pub(crate) async fn discover(client: &Client, sought: &[Sought]) -> Served {
    let (mut backoff, mut cache) = (Backoff::new(), DiscoveryCache::default());
    loop {
        match try_discover(client, sought, &mut cache).await {
            Ok(served) => return served,
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(error, "discovery failed");
            }
        }
        tokio::time::sleep(backoff.next(None)).await;
    }
}

/// Repeats discovery after an interval, or when `wanted` is notified, until the API server has answered.
pub(crate) fn rediscover(
    client: Client,
    sought: Vec<Sought>,
    wanted: Arc<Notify>,
) -> Pin<Box<dyn Future<Output = Served> + Send>> {
    Box::pin(async move {
        loop {
            // However many gangs need a kind, the API server gets one request per second.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let _ = tokio::time::timeout(REDISCOVER_INTERVAL, wanted.notified()).await;
            match try_discover(&client, &sought, &mut DiscoveryCache::default()).await {
                Ok(served) => return served,
                Err(error) => tracing::debug!(%error, "discovery failed"),
            }
        }
    })
}

/// Discovers which kinds are served. One request lists all groups; only groups with a sought kind are listed in detail.
///
/// # Errors
/// When the API server does not answer for one of the groups: that does not mean that the group is not served.
async fn try_discover(
    client: &Client,
    sought: &[Sought],
    cache: &mut DiscoveryCache,
) -> kube::Result<Served> {
    let groups = match cache.groups.take() {
        Some(groups) => groups,
        None => client.list_api_groups().await?.groups,
    };
    let groups = &*cache.groups.insert(groups);
    let has = |group: &str, version: &str| {
        let versions = groups.iter().filter(|one| one.name == group).flat_map(|one| &one.versions);
        group.is_empty() || versions.into_iter().any(|one| one.version == version)
    };
    let mut found = Vec::new();
    for (role, kind) in sought {
        for version in kind.versions.iter().filter(|version| has(kind.group, version)) {
            let resource = kind.in_version(version);
            let resources = match cache.resources.entry(resource.api_version.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(list_resources(client, kind, &resource).await?),
            };
            if resources.iter().any(|one| one.name == kind.plural && one.kind == kind.kind) {
                found.push((*role, resource));
                break;
            }
        }
    }
    Ok(found)
}

/// The resources of a group in a version; none if the group is no longer served.
async fn list_resources(
    client: &Client,
    kind: &WatchedKind,
    resource: &ApiResource,
) -> kube::Result<Vec<APIResource>> {
    let listed = match kind.group {
        "" => client.list_core_api_resources(&resource.version).await,
        _ => client.list_api_group_resources(&resource.api_version).await,
    };
    match listed {
        Ok(listed) => Ok(listed.resources),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Muster's own kinds, which must be served.
const OWN: [(KindRole, &str); 4] = [
    (KindRole::Gang, "Gang"),
    (KindRole::Queue, "Queue"),
    (KindRole::Pool, "Pool"),
    (KindRole::Order, "Order"),
];

/// Muster's own kinds, to discover.
pub(crate) fn own_kinds() -> Vec<Sought> {
    let is_own = |(role, _): &(KindRole, WatchedKind)| OWN.iter().any(|(own, _)| own == role);
    let own = watched_kinds().into_iter().filter(is_own);
    own.map(|(role, kind)| (Some(role), kind)).collect()
}

/// Checks that the API server serves Muster's own kinds.
///
/// # Errors
/// With the first kind that is not served.
pub(crate) fn check_own_kinds(served: &Served) -> Result<(), HostError> {
    let is_served = |own: &KindRole| served.iter().any(|(of, _)| of.as_ref() == Some(own));
    match OWN.iter().find(|(own, _)| !is_served(own)) {
        Some((_, kind)) => Err(HostError::NoCrds(kind)),
        None => Ok(()),
    }
}
