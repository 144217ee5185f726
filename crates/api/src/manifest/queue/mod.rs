//! Reads `kind: Queue`: the spec, its guarantee and limits, and what it allows its gangs to declare.

pub(crate) mod queue_spec;
pub(crate) mod quota;

mod allowed;
