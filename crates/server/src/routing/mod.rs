//! From a route to its handler: the list of operations, their rules, and the middleware that enforces them.

pub(crate) mod routes;

pub(crate) mod operation;

pub(crate) mod middleware;

pub(crate) mod drain_body;
