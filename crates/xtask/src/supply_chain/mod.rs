//! What Muster is built from (what may be in the dependency tree, its licences, its bill of materials), and the list of attempts
//! that tests make to do harm.

pub(crate) mod attempts;
pub(crate) mod deny;
pub(crate) mod notices;
pub(crate) mod sbom;

#[cfg(test)]
mod images;
mod packages;
pub(crate) mod tool;

/// The platform that binaries and images are built for. Crates for other platforms are in `Cargo.lock` and in no build.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
