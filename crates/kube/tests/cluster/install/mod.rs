//! Installs the chart and the CRDs on a real API server: manifests, rights, validation, upgrade.

pub(crate) mod chart;
mod crds;
mod rbac;
