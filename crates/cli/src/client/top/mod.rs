//! `muster top`: nodes, queues and gangs, live.

mod command;

mod rows;

mod draw;
mod screen;

pub(crate) use command::{Args, run};
