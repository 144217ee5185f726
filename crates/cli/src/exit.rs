//! How the command ends: 0 when all is well, 2 when the input is wrong, 3 when a gang did not succeed that was waited
//! for, 4 when waiting took too long, 1 for everything else.

use std::process::ExitCode;

use muster_api::{Finding, Severity};

use crate::client::AskError;
use crate::figures::count;
use crate::stdout;

/// The input is wrong; nothing was run.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) Vec<Finding>);

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut errors = 0;
        for finding in &self.0 {
            match finding.severity {
                Severity::Error => {
                    errors += 1;
                    writeln!(f, "error: {finding}")?;
                }
                Severity::Warning => writeln!(f, "warning: {finding}")?,
            }
        }
        write!(f, "{}, nothing was run", count(errors, "error"))
    }
}

impl std::error::Error for BadInput {}

/// Something about the command line, a trace or a recording is wrong; nothing was run.
#[derive(Debug)]
pub(crate) struct Misused(pub(crate) String);

impl std::fmt::Display for Misused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misused {}

/// A gang that was waited for did not do what it should.
#[derive(Debug)]
pub(crate) struct Unsuccessful(pub(crate) String);

impl std::fmt::Display for Unsuccessful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsuccessful {}

/// Somebody did not want to wait any longer.
#[derive(Debug)]
pub(crate) struct TimeUp(pub(crate) String);

impl std::fmt::Display for TimeUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeUp {}

/// The exit code for a result, after saying what went wrong.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if let Some(BadInput(_)) = error.downcast_ref() {
        eprintln!("{}", stdout::clean(&error.to_string()));
        return ExitCode::from(2);
    }
    eprintln!("error: {}", stdout::clean(&format!("{error:#}")));
    if error.is::<Unsuccessful>() {
        return ExitCode::from(3);
    }
    if error.is::<TimeUp>() {
        return ExitCode::from(4);
    }
    let asked = error.downcast_ref::<AskError>();
    let misused = error.is::<Misused>() || asked.is_some_and(AskError::is_misuse);
    if misused { ExitCode::from(2) } else { ExitCode::FAILURE }
}
