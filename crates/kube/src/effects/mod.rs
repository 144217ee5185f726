//! Writes to the API server as the cycle sees them: ordered per object, with outcomes that come back to the host.
//!
//! Not here: the client, retries and leadership, which are in `api`.

pub(crate) mod ordered;

pub(crate) mod outcome;
