//! Schedules gangs: reconciles them with their pods, plans, writes placements, binds and evicts.
//!
//! In reading order: a gang is reconciled and submitted, its phase is reconciled, the planner decides, the placement is
//! written, pods are bound or released; then how seats follow the pods, how a gang is resized, and how it is stopped. Not
//! here: what a gang is (`gang`), and where its pods may go (`constraints`).

pub(crate) mod reconcile;

pub(crate) mod phase;

pub(crate) mod decide;

pub(crate) mod placement;

pub(crate) mod bind;
pub(crate) mod bound_elsewhere;
pub(crate) mod scheduling_gates;

pub(crate) mod seats;

pub(crate) mod reassign_seats;

pub(crate) mod resize;

pub(crate) mod owner_resize;

pub(crate) mod evict;
