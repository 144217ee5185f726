//! The commands that do their work in this process, one file each. The commands that send requests to a control plane
//! are in `client`.

pub(crate) mod run;

pub(crate) mod token;
pub(crate) mod up;

pub(crate) mod rehearse;
pub(crate) mod replay;
pub(crate) mod simulate;

pub(crate) mod check;
pub(crate) mod crds;
pub(crate) mod why_kube;

pub(crate) mod completions;
pub(crate) mod internal;
