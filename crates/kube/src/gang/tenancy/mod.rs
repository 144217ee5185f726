//! What a tenant may claim for its gangs: annotations, queues, priority, and the number of gangs.
//!
//! Namespaces need not trust each other, and a tenant may write everything in its own. Nothing here is taken from a tenant's
//! word where that would cost another tenant something.

pub(crate) mod trusted_annotations;

pub(crate) mod queue_access;

pub(crate) mod priority;

pub(crate) mod namespace_limits;
