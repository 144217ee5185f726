pub(crate) mod gang;
pub(crate) mod merge;
pub(crate) mod missing_members;
pub(crate) mod roles;

pub use gang::{Assembled, Member, Unassembled, assemble};
pub use merge::{Side, labels, unite};
