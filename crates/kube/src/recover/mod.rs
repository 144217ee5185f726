#[cfg(any(test, feature = "cluster"))]
pub(crate) mod injected_faults;
pub(crate) mod learned;
pub(crate) mod offering_health;
pub(crate) mod panic;
pub(crate) mod quarantine;
pub(crate) mod rebuild;
pub(crate) mod timestamps;
