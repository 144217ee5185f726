//! The control plane: one thread that owns the World and the database.
//!
//! It works in turns (`turn`). A turn takes the inputs that have arrived (`inputs`), fires due timers (`timers`), runs the
//! planner (`decide`), and commits all of it in one transaction. Side effects (`effects`) follow only after the commit: nodes
//! are requested, keepers started, requests answered. A turn never blocks for long; slow work runs in tasks whose results
//! come back as inputs.

pub(crate) mod state;

pub(crate) mod turn;

pub(crate) mod inputs;

pub(crate) mod timers;

pub(crate) mod decide;

pub(crate) mod effects;

pub(crate) mod apply;

pub(crate) mod gangs;

pub(crate) mod cloud;

pub(crate) mod supervise;

pub(crate) mod recover;

pub(crate) mod publish;

pub(crate) mod queries;

pub(crate) mod retention;
