//! Resize: let elastic gangs grow into what is left.
//!
//! Read in this order: which gangs could have more members and what each would gain, which gang gets the next member,
//! and the resizes that come of it.

mod progress;

mod candidates;
mod distribute;
mod resize;

pub(crate) use candidates::below_maximum;
pub(crate) use progress::{behind, left};
pub(crate) use resize::grow;
