//! `muster completions`.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

/// Print a completion script, for instance: source <(muster completions bash)
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The shell to print it for
    shell: Shell,
}

pub(crate) fn run(args: &Args) {
    clap_complete::generate(
        args.shell,
        &mut super::Args::command(),
        "muster",
        &mut std::io::stdout(),
    );
}
