//! Why a trace was refused, and exactly where.

use std::io;
use std::path::PathBuf;

use crate::trace::parse::cell::CellError;

/// Why a trace was refused.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file does not exist or may not be read.
    #[error("{}: cannot be opened: {error}", file.display())]
    Open {
        /// The trace.
        file: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Reading stopped in the middle, as with a truncated gzip file.
    #[error("{}:{line}: cannot be read: {error}", file.display())]
    Read {
        /// The trace.
        file: PathBuf,
        /// The line that did not arrive.
        line: u64,
        /// The error of the system or the decoder.
        error: io::Error,
    },
    /// A line longer than any trace has; this is no text file.
    #[error("{}:{line}: the line is longer than {limit} bytes; is this a trace?", file.display())]
    LongLine {
        /// The trace.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The most a line may have.
        limit: usize,
    },
    /// Too few or too many columns.
    #[error("{}:{line}: {found} columns where {wanted} belong", file.display())]
    ColumnCount {
        /// The trace.
        file: PathBuf,
        /// The line.
        line: u64,
        /// How many there are.
        found: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// A quoted cell of a table has no end on its line.
    #[error("{}:{line}: a double quote is opened and not closed on this line", file.display())]
    OpenQuote {
        /// The trace.
        file: PathBuf,
        /// The line.
        line: u64,
    },
    /// One value that cannot be what its column says.
    #[error("{}:{line}: column {column}: `{value}` {reason}", file.display())]
    Cell {
        /// The trace.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column, by name and where it has one by number.
        column: &'static str,
        /// What is written there, cut short when it is long.
        value: String,
        /// What is wrong with it.
        reason: CellError,
    },
    /// A table has an unknown column.
    #[error("{}: unknown column `{column}`: known are {known}", file.display())]
    UnknownColumn {
        /// The trace.
        file: PathBuf,
        /// The column.
        column: String,
        /// Those a table may have.
        known: String,
    },
    /// A table has a column twice.
    #[error("{}: column `{column}` is there twice", file.display())]
    RepeatedColumn {
        /// The trace.
        file: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A table lacks a column it must have.
    #[error("{}: column `{column}` is missing", file.display())]
    MissingColumn {
        /// The trace.
        file: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A JSON file that is not what it should be.
    #[error("{}:{line}:{column}: {reason}", file.display())]
    Json {
        /// The trace.
        file: PathBuf,
        /// The line.
        line: usize,
        /// The letter in it.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A value of a JSON file that cannot be.
    #[error("{}: {field}: {reason}", file.display())]
    Field {
        /// The trace.
        file: PathBuf,
        /// Which value.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Something to replay, but no jobs.
    #[error("{}: this is {what}, not a trace of jobs: give it with {option}", file.display())]
    NotJobs {
        /// The trace.
        file: PathBuf,
        /// What it is.
        what: &'static str,
        /// Where it belongs.
        option: &'static str,
    },
    /// Not the name of a format.
    #[error("`{0}` is not a trace format: known are swf, csv, log, pods")]
    UnknownFormat(String),
}
