pub(crate) mod constraints;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod gang;
pub(crate) mod objects;
pub(crate) mod provision;
pub(crate) mod recover;
pub(crate) mod schedule;
pub(crate) mod status;
