//! Commands that simulate nothing: help, manifests, CRDs, and the client of a control plane.

mod client;
mod crds;
mod help;
mod manifests;
