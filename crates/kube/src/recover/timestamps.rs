//! Ages by the API server's clock: a gang's place in the queue, which it keeps when it is stopped and when the leader changes,
//! and the age of requests.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta};
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_core::time::Time;

use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

/// A timestamp of the API server.
pub(crate) fn instant(time: &meta::Time) -> Time {
    Time(time.0.as_millisecond())
}

/// When an object was created.
pub(crate) fn created_at(metadata: &ObjectMeta) -> Option<Time> {
    metadata.creation_timestamp.as_ref().map(instant)
}

impl Host {
    /// When a gang was created: it keeps its place in the queue when its pods are recreated and when the leader changes.
    pub(crate) fn gang_created_at(&self, record: &GangRecord) -> Time {
        if let Some(at) = self.object_of_age(record).and_then(|object| created_at(&object.metadata))
        {
            return at;
        }
        let pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let first = pods.filter_map(|pod| created_at(&pod.metadata)).min();
        first.or_else(|| self.request_created_at(&record.source)).unwrap_or_else(|| self.now())
    }

    /// The object that is as old as a gang: the workload that creates its pods, or the Gang object that Muster created on
    /// submission. A user's group object may exist long before its pods.
    fn object_of_age(&self, record: &GangRecord) -> Option<&Arc<DynamicObject>> {
        match &record.source {
            GangSource::Owner { .. } => Some(self.source_object(&record.source)?.1),
            GangSource::Gang { .. } if self.template_gang(record).is_some() => {
                Some(self.source_object(&record.source)?.1)
            }
            GangSource::Gang { .. } | GangSource::Group(_) | GangSource::Merged(_) => {
                let own = |gang: &&Arc<DynamicObject>| {
                    gang.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER)
                };
                self.gang_object(&record.source.gang_name()).filter(own)
            }
            GangSource::Request { .. } | GangSource::Pod { .. } => None,
        }
    }
}
