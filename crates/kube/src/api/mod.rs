//! The API server: the only folder with a client.
//!
//! Reading: `discovery` finds the kinds that are served, `watch` lists and watches them, `resource_versions` rejects stale
//! lists, `crd_version` compares the installed CRDs. Writing: `writer` sends requests while this process leads, with
//! `retry`, `request_slots` shared among namespaces, `refusal_backoff` and `status_priority`; `leader_client` is the
//! connection that sends nothing without the Lease. What to write is decided elsewhere, and the order of writes to one
//! object is kept by `effects`.

pub(crate) mod discovery;
pub mod watch;

pub(crate) mod crd_version;
pub(crate) mod resource_versions;

pub mod writer;

pub(crate) mod leader_client;
pub(crate) mod refusal_backoff;
pub(crate) mod request_slots;
pub(crate) mod retry;
pub(crate) mod status_priority;

pub(crate) mod error_chain;
