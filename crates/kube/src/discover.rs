//! Which of many kinds a server serves, and in which version: none but Kubernetes' own must be there.

use kube::Client;
use kube::api::ApiResource;

/// A kind that would be looked at if it were there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) group: &'static str,
    /// Those that are understood, the best first.
    pub(crate) versions: &'static [&'static str],
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

impl Wanted {
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

/// Where a kind is served, if it is.
///
/// # Errors
/// When the server does not answer.
pub(crate) async fn find(client: &Client, wanted: &Wanted) -> kube::Result<Option<ApiResource>> {
    for version in wanted.versions {
        let resource = wanted.in_version(version);
        let served = match wanted.group {
            "" => client.list_core_api_resources(version).await,
            _ => client.list_api_group_resources(&resource.api_version).await,
        };
        let resources = match served {
            Ok(served) => served.resources,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 503) => continue,
            Err(error) => return Err(error),
        };
        if resources.iter().any(|one| one.name == wanted.plural && one.kind == wanted.kind) {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}
