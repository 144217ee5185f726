//! `cargo xtask docs`: one subcommand for each thing that is made.

use clap::{Args as ClapArgs, Subcommand};
use muster_testkit::testbed;

use super::{picture, sections, site};

/// Write generated sections, build the site, draw the README's picture.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write the generated sections of docs/ from the types, the help texts and the chart
    Write,
    /// Build the site with mdBook, installed once, into target/book
    Build,
    /// Run the quick start and draw docs/images/quickstart.svg from what happened
    Picture,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match args.what {
        What::Write => sections::write(testbed::workspace()),
        What::Build => site::build(testbed::workspace()),
        What::Picture => picture::write(testbed::workspace()),
    }
}
