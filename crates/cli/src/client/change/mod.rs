//! The commands that change objects of a control plane.

pub(crate) mod manifests;
pub(crate) mod submit;

pub(crate) mod cancel;
pub(crate) mod hold;
pub(crate) mod named_gangs;
pub(crate) mod scale;

pub(crate) mod delete;
