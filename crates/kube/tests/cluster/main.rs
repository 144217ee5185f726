//! The controller against a real API server: manifests as users write them, and the resulting objects.

mod constraints;
mod dialects;
mod fixture;
mod install;
mod observer;
mod provision;
mod recover;
mod schedule;
mod status;
mod tenants;
