//! Handlers of the API, and the parameters they read from paths, queries and bodies.

pub(crate) mod query;

pub(crate) mod manifests;

pub(crate) mod objects;

pub(crate) mod gangs;

pub(crate) mod queries;

pub(crate) mod events;
pub(crate) mod logs;
pub(crate) mod streams;

pub(crate) mod health;
