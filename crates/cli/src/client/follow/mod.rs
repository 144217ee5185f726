//! Follows a control plane: its event stream, a view that events keep up to date, `--watch`, and waiting for gangs.

pub(crate) mod events;
pub(crate) mod view;

pub(crate) mod wait;
pub(crate) mod watch;
