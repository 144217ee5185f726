//! Following a control plane: its event stream, objects kept up to date by it, lists that go on, and waiting for gangs.

pub(crate) mod events;
pub(crate) mod view;

pub(crate) mod wait;
pub(crate) mod watch;
