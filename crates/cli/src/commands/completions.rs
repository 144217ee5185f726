//! `muster completions`.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use crate::stdout;

/// Print a completion script for your shell.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(muster completions bash)                                        this shell only
  muster completions bash > ~/.local/share/bash-completion/completions/muster
  muster completions zsh > ~/.zfunc/_muster                                with ~/.zfunc in $fpath
  muster completions fish > ~/.config/fish/completions/muster.fish";

pub(crate) fn run(args: &Args) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Args::command(), "muster", &mut script);
    stdout::raw(&String::from_utf8_lossy(&script));
}
