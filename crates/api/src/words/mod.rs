pub mod figures;
pub(crate) mod verdicts;

pub use verdicts::{gang, gangs, kept, rollback, stop, target, verdict};
