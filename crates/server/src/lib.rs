//! The HTTP API of Muster, independent of the host behind it.
//!
//! A host keeps the [`Board`] up to date and answers requests through [`Host`]. Reads are served from the board alone, so a
//! thousand clients do not delay the planner.
//!
//! Read in this order: the contract with hosts (`host`, `board`); callers, their rights and their limits (`auth`, `limits`);
//! the checks before every handler (`routing`, `idempotency`); the handlers (`handlers`), all of them listed in
//! `routing::routes`; their description (`openapi`); sockets, TLS and shutdown (`serve`).
//!
//! Deliberately not here: decisions, and state of its own. A restarted server loses nothing, because it held nothing;
//! answers under idempotency keys are stored where the host says ([`IdempotencyStore`]).

mod board;
mod host;

mod auth;
mod limits;

mod config;
mod error;
mod idempotency;
mod routing;

mod handlers;
mod openapi;

mod audit;
mod metrics;

mod serve;

pub use audit::{AuditLog, AuditRecord};
pub use auth::caller::{Caller, RequestKey, Rights};
pub use auth::rights::{Needs, Subject, Verb, needs};
pub use auth::token_file::{Role, TokenEntry, TokenFile, TokensError};
pub use auth::tokens::Tokens;
pub use board::feed::{FeedChange, FeedEvent, FeedLine, Note};
pub use board::objects::{Board, FeedRead, FeedReader, Kind, Listed};
pub use board::size::weight;
pub use config::{Config, PORT, Tls};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use host::{
    Answer, Applied, AppliedEffect, Change, GangName, Host, LogPart, LogQuery, Logs, Refused,
    Usage, UsageBy, UsageRequest, WhatIf, Why,
};
pub use idempotency::store::{
    ANSWER_RETENTION_MS, IdempotencyKey, IdempotencyStore, InMemoryStore, StoredAnswer,
};
pub use limits::bounds::Limits;
pub use openapi::document::openapi;
pub use routing::routes::router;
pub use serve::listen::{Bound, ServeError, bind, serve};
pub use serve::shutdown::Shutdown;
pub use serve::tls::TlsError;
