//! Muster over HTTP, for whichever host it is mounted in.
//!
//! A host keeps the board up to date, and answers what it is asked through [`Host`]. Everybody who only looks, looks at
//! the board: a thousand of them do not make the planner wait.
//!
//! Read in this order: the contract with hosts (`board`, `caller`, `host`); who may ask and how much (`tokens`, `sessions`,
//! `access`, `rights`, `veil`, `limits`, `seats`); what every request goes through (`operation`, `guard`, `once`); what can be asked (`objects`,
//! `gangs`, `questions`, `logs`, `events`, `health`), all of it listed in `routes`; how that is told (`openapi`); and how
//! it is served (`serve`).
//!
//! Deliberately not here: decisions, and anything that is kept. A server that is started again has forgotten nothing,
//! because it knew nothing; answers under idempotency keys are kept where the host says ([`Memory`]).

mod audit;
mod auth;
mod board;
mod config;
mod error;
mod handlers;
mod host;
mod idempotency;
mod limits;
mod metrics;
mod openapi;
mod routing;
mod serve;

pub use crate::audit::{AuditLog, AuditRecord};
pub use crate::auth::caller::{Caller, RequestKey, Rights};
pub use crate::auth::rights::{Needs, Subject, Verb, needs};
pub use crate::auth::token_file::{Role, TokenEntry, TokenFile, TokensError};
pub use crate::auth::tokens::Tokens;
pub use crate::board::news::{Line, News, Said, Told};
pub use crate::board::objects::{Board, Found, Kind, Listed, Reader};
pub use crate::board::size::weight;
pub use crate::config::{Config, PORT, Tls};
pub use crate::error::{Code, Failed, Failure};
pub use crate::host::{
    Answer, Applied, Change, Effect, GangName, Host, LogPart, Logs, Refused, Usage, UsageAsked,
    UsageBy, WhatIf, WhichLogs, Why,
};
pub use crate::idempotency::memory::{Key, Memory, REMEMBERED_MS, Remembered, ShortMemory};
pub use crate::limits::bounds::Limits;
pub use crate::openapi::document::openapi;
pub use crate::routing::routes::router;
pub use crate::serve::listen::{Bound, ServeError, bind, serve};
pub use crate::serve::shutdown::Ending;
pub use crate::serve::tls::TlsError;
