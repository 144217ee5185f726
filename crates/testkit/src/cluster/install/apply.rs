//! Applies manifests.

use std::time::Duration;

use kube::api::{
    Api, DynamicObject, ListParams, Patch, PatchParams, TypeMeta, ValidationDirective,
};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Client, ResourceExt};

use crate::cluster::Cluster;
use crate::cluster::Role;

/// A CRD is served a moment after it is accepted.
const SERVED_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("not YAML: {0}")]
    Yaml(String),
    #[error("not an object: {0}")]
    Object(#[from] serde_json::Error),
    #[error("an object without apiVersion and kind")]
    Typeless,
    #[error("{0}: {1}")]
    Refused(String, kube::Error),
    #[error("{0} is not served after {SERVED_WITHIN:?}")]
    NotServed(String),
}

impl Cluster {
    /// Creates or changes every object of a YAML text, as the admin. The kinds of CRDs are served when this returns.
    /// An unknown field is refused, not dropped.
    pub async fn apply(&self, yaml: &str) -> Result<(), ApplyError> {
        self.apply_as(Role::Admin, yaml).await
    }

    /// The same as another role.
    pub async fn apply_as(&self, role: Role, yaml: &str) -> Result<(), ApplyError> {
        let client = self.client(role).await;
        for object in objects(yaml)? {
            apply_one(&client, object, false).await?;
        }
        Ok(())
    }

    /// Server-side dry run of every object of a YAML text, as the admin.
    pub async fn dry_run(&self, yaml: &str) -> Result<(), ApplyError> {
        let client = self.client(Role::Admin).await;
        for object in objects(yaml)? {
            apply_one(&client, object, true).await?;
        }
        Ok(())
    }
}

/// The objects of a YAML text.
pub fn objects(yaml: &str) -> Result<Vec<DynamicObject>, ApplyError> {
    let objects: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(yaml).map_err(|error| ApplyError::Yaml(error.to_string()))?;
    Ok(objects.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?)
}

/// The placeholder UID in owner references whose UID is not known before the owner is created: it is looked up.
pub const UID_OF_OWNER: &str = "00000000-0000-4000-8000-000000000001";

async fn apply_one(
    client: &Client,
    mut object: DynamicObject,
    dry_run: bool,
) -> Result<(), ApplyError> {
    let types = object.types.clone().ok_or(ApplyError::Typeless)?;
    name_owners(client, &mut object).await;
    let name = object.name_any();
    let title = format!("{} {name}", types.kind);
    let refused = |error| ApplyError::Refused(title.clone(), error);
    let api =
        api_of(client, &types, object.metadata.namespace.as_deref()).await.map_err(refused)?;
    let mut params = PatchParams::apply("muster-testbed").force();
    params.field_validation = Some(ValidationDirective::Strict);
    params.dry_run = dry_run;
    let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
    applied.map_err(refused)?;
    if types.kind == "CustomResourceDefinition" && !dry_run {
        let served = until_served(client, &object);
        let late = |_| ApplyError::NotServed(title.clone());
        tokio::time::timeout(SERVED_WITHIN, served).await.map_err(late)?;
    }
    Ok(())
}

/// Fills in the UIDs of owners that exist. Owners that do not exist keep the placeholder.
async fn name_owners(client: &Client, object: &mut DynamicObject) {
    let namespace = object.metadata.namespace.clone();
    for owner in object.metadata.owner_references.iter_mut().flatten() {
        if owner.uid != UID_OF_OWNER {
            continue;
        }
        let types = TypeMeta { api_version: owner.api_version.clone(), kind: owner.kind.clone() };
        let Ok(api) = api_of(client, &types, namespace.as_deref()).await else { continue };
        let found = api.get_opt(&owner.name).await.ok().flatten();
        owner.uid = found.and_then(|found| found.uid()).unwrap_or(owner.uid.clone());
    }
}

async fn api_of(
    client: &Client,
    types: &TypeMeta,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>, kube::Error> {
    let kind =
        GroupVersionKind::try_from(types).map_err(|error| kube::Error::Service(error.into()))?;
    let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
    Ok(match (capabilities.scope, namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    })
}

/// The condition `Established` is not enough: a busy server lists the kind, and answers for it, only later.
async fn until_served(client: &Client, definition: &DynamicObject) {
    for kind in kinds_of(definition) {
        while !is_served(client, &kind).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn kinds_of(definition: &DynamicObject) -> Vec<GroupVersionKind> {
    let spec = &definition.data["spec"];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served
        .map(|version| GroupVersionKind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
        })
        .collect()
}

async fn is_served(client: &Client, kind: &GroupVersionKind) -> bool {
    let Ok((resource, _)) = discovery::pinned_kind(client, kind).await else { return false };
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match objects.list(&ListParams::default().limit(1)).await {
        // A role that may create a CRD may not list its objects for that.
        Err(kube::Error::Api(status)) => status.code == 403,
        answer => answer.is_ok(),
    }
}
