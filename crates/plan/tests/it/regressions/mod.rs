//! Cases that once went wrong, here or in other schedulers.

mod mended;
mod other_schedulers;
