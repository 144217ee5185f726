//! `cargo xtask prose`: counts mannered comments and checks the sizes and names that the house rules bound.

mod layout;
mod run;
mod subject;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use run::{Args, run};
