//! `muster simulate`: demand and supply from manifests, traces or generators, run in virtual time under one policy or several.

mod command;

mod inputs;
mod supply;
mod traces;

mod outputs;
mod rows;

mod packing;

pub(crate) use command::{Args, run};
