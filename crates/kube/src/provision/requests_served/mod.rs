pub(crate) mod build;
pub(crate) mod conditions;
pub(crate) mod handover;
pub(crate) mod reconcile;
pub(crate) mod recover;
pub(crate) mod registry;
pub(crate) mod timeouts;
