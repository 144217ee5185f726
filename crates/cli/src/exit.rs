//! Exit codes: 0 for success, 2 for wrong input, 3 when a gang that was waited for did not succeed, 4 for a timeout of
//! that wait, 1 for everything else.

use std::process::ExitCode;

use muster_api::{Finding, Severity};

use crate::client::RequestError;
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

/// The command line, a trace or a recording is wrong; nothing was run.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A gang that was waited for did not succeed.
#[derive(Debug)]
pub(crate) struct Unsuccessful(pub(crate) String);

impl std::fmt::Display for Unsuccessful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsuccessful {}

/// The timeout of a wait has passed.
#[derive(Debug)]
pub(crate) struct WaitTimeout(pub(crate) String);

impl std::fmt::Display for WaitTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WaitTimeout {}

/// Prints the error of a result, and returns its exit code.
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
    if error.is::<WaitTimeout>() {
        return ExitCode::from(4);
    }
    let asked = error.downcast_ref::<RequestError>();
    let misused = error.is::<UsageError>() || asked.is_some_and(RequestError::is_usage_error);
    if misused { ExitCode::from(2) } else { ExitCode::FAILURE }
}
