//! Which of many kinds a server serves, and in which version: none but Kubernetes' own must be there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource};
use kube::Client;
use kube::api::ApiResource;

/// A kind that would be looked at if it were there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WatchedKind {
    pub(crate) group: &'static str,
    /// Those that are understood, the best first.
    pub(crate) versions: &'static [&'static str],
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl WatchedKind {
    /// Where it is served in its best version.
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

/// What a server has said so far. Whoever asks again need not ask for all of it: of many questions one goes wrong too
/// often where every tenth does.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    groups: Option<Vec<APIGroup>>,
    lists: BTreeMap<String, Vec<APIResource>>,
}

/// Those kinds that are served, and where. The groups there are come with one request; only those that matter are
/// looked into.
///
/// # Errors
/// When the server does not answer for one of them: that is not to say that it does not serve it.
pub(crate) async fn served<T: Copy>(
    client: &Client,
    wanted: &[(T, WatchedKind)],
    heard: &mut Heard,
) -> kube::Result<Vec<(T, ApiResource)>> {
    let groups = match heard.groups.take() {
        Some(groups) => groups,
        None => client.list_api_groups().await?.groups,
    };
    let groups = &*heard.groups.insert(groups);
    let has = |group: &str, version: &str| {
        let versions = groups.iter().filter(|one| one.name == group).flat_map(|one| &one.versions);
        group.is_empty() || versions.into_iter().any(|one| one.version == version)
    };
    let mut found = Vec::new();
    for (what, wanted) in wanted {
        for version in wanted.versions.iter().filter(|version| has(wanted.group, version)) {
            let resource = wanted.in_version(version);
            let list = match heard.lists.entry(resource.api_version.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(list(client, wanted, &resource).await?),
            };
            if list.iter().any(|one| one.name == wanted.plural && one.kind == wanted.kind) {
                found.push((*what, resource));
                break;
            }
        }
    }
    Ok(found)
}

/// What a group has in a version; nothing if it went away meanwhile.
async fn list(
    client: &Client,
    wanted: &WatchedKind,
    resource: &ApiResource,
) -> kube::Result<Vec<APIResource>> {
    let listed = match wanted.group {
        "" => client.list_core_api_resources(&resource.version).await,
        _ => client.list_api_group_resources(&resource.api_version).await,
    };
    match listed {
        Ok(listed) => Ok(listed.resources),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
