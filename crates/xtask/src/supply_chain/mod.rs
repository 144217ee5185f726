//! The supply chain: bans and licences of the dependency tree, bills of materials, and the list of attack attempts that
//! tests make.

pub(crate) mod attempts;
pub(crate) mod deny;
pub(crate) mod notices;
pub(crate) mod sbom;

#[cfg(test)]
mod images;
mod packages;
pub(crate) mod tool;
