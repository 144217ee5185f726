//! Read-only queries: `why` and `what-if`, answered from a copy of the World on separate threads.

pub(crate) mod why_and_what_if;

pub(crate) mod query_threads;
