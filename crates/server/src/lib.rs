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

mod board;
mod caller;
mod host;
mod news;
mod weight;

mod access;
mod limits;
mod rights;
mod seats;
mod sessions;
mod token_file;
mod tokens;
mod veil;

mod audit;
mod counts;
mod ending;
mod failure;
mod memory;
mod once;

mod config;
mod guard;
mod linger;
mod operation;

mod ask;
mod manifests;

mod gangs;
mod objects;
mod questions;

mod events;
mod logs;
mod streams;

mod health;
mod openapi;
mod routes;
mod schemas;

mod connections;
mod serve;
mod tls;

pub use audit::{AuditLog, AuditRecord};
pub use board::{Board, Found, Kind, Listed, Reader};
pub use caller::{Caller, RequestKey, Rights};
pub use config::{Config, PORT, Tls};
pub use ending::Ending;
pub use failure::{Code, Failed, Failure};
pub use host::{
    Answer, Applied, Change, Effect, GangName, Host, LogPart, Logs, Refused, Usage, UsageAsked,
    UsageBy, WhatIf, WhichLogs, Why,
};
pub use limits::Limits;
pub use memory::{Key, Memory, REMEMBERED_MS, Remembered, ShortMemory};
pub use news::{Line, News, Said, Told};
pub use openapi::openapi;
pub use rights::{Needs, Subject, Verb, needs};
pub use routes::router;
pub use serve::{Bound, ServeError, bind, serve};
pub use tls::TlsError;
pub use token_file::{Role, TokenEntry, TokenFile, TokensError};
pub use tokens::Tokens;
pub use weight::weight;
