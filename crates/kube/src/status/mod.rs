//! Reports to users: statuses, conditions and Events on the objects where they look first.
//!
//! `reasons` words the status of a gang, and `gang` writes it: on its Gang object (`gang_object`), on group objects of other
//! dialects, and on its pods (`pod_scheduled`). `pools_and_queues` writes the statuses of Pools, Queues and Orders,
//! `accepted` whether such an object is valid. `omitted_objects` and `disabled_features` say why an object is not handled;
//! `events` records Events at a bounded rate. The placement in the status of a Gang is intent, not a report: see
//! `schedule::placement`.

pub(crate) mod reasons;

pub(crate) mod gang;
pub(crate) mod gang_object;

pub(crate) mod pod_scheduled;

pub(crate) mod accepted;
pub(crate) mod pools_and_queues;

pub(crate) mod disabled_features;
pub(crate) mod omitted_objects;

pub(crate) mod events;
