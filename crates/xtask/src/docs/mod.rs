//! The documentation: sections written from the product, the site, the README's picture, and tests that hold every page
//! against the product.

mod command;

mod fields;
mod help;
mod sections;

mod picture;
mod site;

mod page;
mod programs;

#[cfg(test)]
mod tests;

pub(crate) use command::{Args, run};
