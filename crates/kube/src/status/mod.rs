pub(crate) mod accepted;
pub(crate) mod disabled_features;
pub(crate) mod events;
pub(crate) mod gang;
pub(crate) mod gang_object;
pub(crate) mod omitted_objects;
pub(crate) mod pod_scheduled;
pub(crate) mod pools_and_queues;
