//! What Muster is built from: what may be in the dependency tree, under which licences it is passed on, and what is in it.

pub(crate) mod deny;
pub(crate) mod notices;
pub(crate) mod sbom;

#[cfg(test)]
mod images;
mod packages;
mod tool;

/// The platform that binaries and images are built for. Crates for other platforms are in `Cargo.lock` and in no build.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
