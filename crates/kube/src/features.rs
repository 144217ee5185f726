//! Features beside binding pods: each needs RBAC rules of its own, and can be disabled together with them.
//!
//! The chart leaves the rules of a disabled feature out of the ClusterRole and passes `--disable` to the controller. The
//! controller then does not try what it has no rights for, and reports it on the gangs and pools that need the feature.

use std::collections::BTreeSet;
use std::fmt;

/// One feature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum Feature {
    /// Create the members of Gangs that have templates (`pods: create`)
    Templates,
    /// Remove the scheduling gate `muster.sh/gang`, and keep evicted pods from counting as failures of Jobs (`pods: patch`)
    Gates,
    /// Unsuspend Jobs when there is room, and suspend them again (`jobs: get, patch`)
    SuspendedJobs,
    /// Choose volumes for claims that wait for their pod (`persistentvolumes: get, patch`, `persistentvolumeclaims: patch`)
    Volumes,
    /// Buy nodes through Karpenter (`nodeclaims: list, watch, create, delete`)
    Karpenter,
    /// Request nodes of an autoscaler by ProvisioningRequests (`provisioningrequests, podtemplates: create, delete`)
    Autoscaler,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Templates => "templates",
            Self::Gates => "gates",
            Self::SuspendedJobs => "suspendedJobs",
            Self::Volumes => "volumes",
            Self::Karpenter => "karpenter",
            Self::Autoscaler => "autoscaler",
        })
    }
}

/// The features that are off; none by default.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Disabled(BTreeSet<Feature>);

impl FromIterator<Feature> for Disabled {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Self(features.into_iter().collect())
    }
}

impl Disabled {
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    /// Why something that needs a feature does not happen, if the feature is off.
    pub(crate) fn why(&self, feature: Feature, what: &str) -> Option<String> {
        self.has(feature).then(|| format!("{what}: the feature `{feature}` is off in this cluster"))
    }
}
