//! Serves ProvisioningRequests of Muster's class: capacity that is booked before its pods exist.
//!
//! A request becomes a gang without pods. It is planned, ordered and given seats like any other gang, and its seats are
//! capacity that no other gang gets. Pods that name the request take over these seats in one step of the World
//! ([`handover`]): no plan is made between the end of the booking and the start of the gang that takes it over.
//!
//! What is known of a request is in its conditions; where its capacity is, in the Gang object that Muster creates for it.
//! After a restart both are read again ([`recover`]).
//!
//! Reading order: [`registry`] has the state, [`build`] makes a gang of a request, [`reconcile`] follows it and writes
//! [`conditions`], [`handover`] passes its seats on, [`timeouts`] closes requests by time.
//!
//! Not here: inter-pod affinity, ports and volumes of a template. They are applied to the pods when these exist.

pub(crate) mod registry;

pub(crate) mod build;
pub(crate) mod conditions;
pub(crate) mod reconcile;

pub(crate) mod handover;
pub(crate) mod timeouts;

pub(crate) mod recover;
