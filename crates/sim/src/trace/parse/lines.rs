//! Numbered lines of a trace, one at a time in one reused buffer.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::trace::error::TraceError;
use crate::trace::parse::cell::{CellError, shortened};

/// A line of a real trace has a few hundred bytes. The bound keeps a wrong file from filling the memory.
const LONGEST: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a trace line by line and knows where it is.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    place: Place,
}

/// A line of a file, for errors.
#[derive(Debug)]
pub(crate) struct Place {
    file: PathBuf,
    pub(crate) line: u64,
}

impl Place {
    /// The error for one value of this line.
    pub(crate) fn bad_cell(
        &self,
        column: &'static str,
        value: &str,
        reason: CellError,
    ) -> TraceError {
        let Self { file, line } = self;
        TraceError::Cell {
            file: file.clone(),
            line: *line,
            column,
            value: shortened(value),
            reason,
        }
    }
    /// The error for a line of another width.
    pub(crate) fn bad_count(&self, found: usize, wanted: usize) -> TraceError {
        TraceError::ColumnCount { file: self.file.clone(), line: self.line, found, wanted }
    }
    /// The error for a cell that never ends.
    pub(crate) fn open_quote(&self) -> TraceError {
        TraceError::OpenQuote { file: self.file.clone(), line: self.line }
    }
}

impl<R: BufRead> Lines<R> {
    /// Lines of `input`, called `file` in errors.
    pub(crate) fn new(file: &Path, input: R) -> Self {
        Self { input, buffer: Vec::new(), place: Place { file: file.to_owned(), line: 0 } }
    }

    /// The next line without surrounding white space, or `None` at the end. Old logs have Latin-1 names in
    /// their comments, so what is not UTF-8 is replaced rather than refused; as a number it fails anyway.
    pub(crate) fn next(&mut self) -> Result<Option<(&Place, Cow<'_, str>)>, TraceError> {
        self.place.line += 1;
        let Place { file, line } = &self.place;
        self.buffer.clear();
        let mut bounded = self.input.by_ref().take(LONGEST as u64 + 1);
        let length = bounded
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| TraceError::Read { file: file.clone(), line: *line, error })?;
        if length == 0 {
            return Ok(None);
        }
        if length > LONGEST {
            return Err(TraceError::LongLine { file: file.clone(), line: *line, limit: LONGEST });
        }
        let bytes = match self.buffer.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if *line == 1 => rest,
            _ => &self.buffer,
        };
        Ok(Some((&self.place, String::from_utf8_lossy(bytes.trim_ascii()))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_are_numbered_and_trimmed_whatever_ends_them() {
        let mut lines = Lines::new(Path::new("t"), "\u{feff}one\r\n\n  two".as_bytes());
        let mut seen = Vec::new();
        while let Some((place, text)) = lines.next().unwrap() {
            seen.push((place.line, text.into_owned()));
        }
        assert_eq!(seen, [(1, "one".to_owned()), (2, String::new()), (3, "two".to_owned())]);
    }

    #[test]
    fn endless_line_is_refused_before_it_fills_the_memory() {
        let mut lines = Lines::new(Path::new("t"), BufReader::new(std::io::repeat(b'x')));
        assert!(matches!(lines.next(), Err(TraceError::LongLine { line: 1, .. })));
    }
}
