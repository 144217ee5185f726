//! Deletes finished gangs and old output once their retention limits are reached.

pub(crate) mod finished_gangs;
pub(crate) mod output;
