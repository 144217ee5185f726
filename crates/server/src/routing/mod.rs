pub(crate) mod drain_body;
pub(crate) mod middleware;
pub(crate) mod operation;
pub(crate) mod routes;
