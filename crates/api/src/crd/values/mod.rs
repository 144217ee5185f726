//! Single values of the schemas, with their patterns and bounds: texts, durations, quantities, timestamps.

pub(crate) mod text;

pub(crate) mod duration;

pub(crate) mod amount;
pub(crate) mod stamp;
