//! Connections to a control plane: selecting it and its credential (`connect`, `contexts`), and sending requests
//! (`address`, `wire`, `lines`, `error`, `api`).

pub(crate) mod connect;
pub(crate) mod contexts;

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod lines;
pub(crate) mod wire;

pub(crate) mod api;
