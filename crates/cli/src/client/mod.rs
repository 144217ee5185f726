//! The client of a control plane: every command that sends HTTP requests.
//!
//! `connection` selects the control plane and sends requests; `follow` keeps its objects up to date from events; `output`
//! prints them. The commands are in `change` (submit, cancel, hold, scale, delete), `show` (get, describe, logs, ...),
//! `top` and `context`.
//!
//! Deliberately not here: decisions, and copies of the control plane's sentences. They are printed as they arrive.

mod command;

mod connection;
mod follow;
mod output;

mod change;
mod show;

mod context;
mod top;

pub(crate) use command::{Command, run, wait_for};
pub(crate) use connection::connect::ConnectOptions;
pub(crate) use connection::error::RequestError;
pub(crate) use output::printer::Answer;
pub(crate) use show::why::ask as ask_why;
