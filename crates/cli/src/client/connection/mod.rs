//! Connections to a control plane: which one is asked and with which credential (`contexts`, `connect`), and how a request
//! is sent and answered (`address`, `wire`, `lines`, `error`, `api`).

pub(crate) mod connect;
pub(crate) mod contexts;

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod lines;
pub(crate) mod wire;

pub(crate) mod api;
