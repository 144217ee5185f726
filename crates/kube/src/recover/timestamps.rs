//! Since when something is there, by what the server says: a gang's place in line, which nobody loses by being stopped or
//! by a change of leader, and the age of what was asked for.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta};
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_core::time::Time;

use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

/// An instant that the server wrote.
pub(crate) fn instant(time: &meta::Time) -> Time {
    Time(time.0.as_millisecond())
}

/// When an object was made.
pub(crate) fn made(metadata: &ObjectMeta) -> Option<Time> {
    metadata.creation_timestamp.as_ref().map(instant)
}

impl Host {
    /// When a group was made: it keeps its place in line, also when its pods were made again and somebody else leads.
    pub(crate) fn made_at(&self, group: &GangRecord) -> Time {
        if let Some(at) = self.stands_since(group).and_then(|object| made(&object.metadata)) {
            return at;
        }
        let pods = group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let first = pods.filter_map(|pod| made(&pod.metadata)).min();
        first.or_else(|| self.request_made(&group.source)).unwrap_or_else(|| self.now())
    }

    /// What has been there for as long as a gang waits: the workload that makes its pods, or the object that Muster wrote
    /// when it was taken in. A group that somebody wrote may have been there long before its pods.
    fn stands_since(&self, group: &GangRecord) -> Option<&Arc<DynamicObject>> {
        match &group.source {
            GangSource::Owner { .. } => Some(self.source_object(&group.source)?.1),
            GangSource::Gang { .. } if self.template_gang(group).is_some() => {
                Some(self.source_object(&group.source)?.1)
            }
            GangSource::Gang { .. } | GangSource::Group(_) | GangSource::Merged(_) => {
                let own = |gang: &&Arc<DynamicObject>| {
                    gang.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER)
                };
                self.gang_seen(&group.source.gang_name()).filter(own)
            }
            GangSource::Request { .. } | GangSource::Pod { .. } => None,
        }
    }
}
