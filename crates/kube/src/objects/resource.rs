//! Conditions, and the API resource of typed kinds.

use serde::{Deserialize, Serialize};

/// A condition as most kinds have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// Whether the condition of this type is `True`.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.kind == kind && condition.status == "True")
}

/// Implements `kube::Resource` for kinds that are served in one version only.
macro_rules! served {
    ($kind:ident, $scope:ty, $group:literal, $version:literal, $plural:literal) => {
        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;
            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(
                &mut self,
            ) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use served;
