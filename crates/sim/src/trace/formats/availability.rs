//! Recorded availability: `{"metadata": {"gap_seconds": 300}, "data": [16, 16, 3, 0, ...]}`, the number of
//! available machines in one zone, step by step.

use std::io::Read;
use std::path::Path;

use muster_core::time::Span;
use serde::Deserialize;

use crate::cloud::Availability;
use crate::trace::error::TraceError;

#[derive(Deserialize)]
struct Record {
    metadata: Metadata,
    data: Vec<u32>,
}

#[derive(Deserialize)]
struct Metadata {
    gap_seconds: f64,
}

/// Steps shorter than a millisecond cannot be told apart; those of a thousand years are errors.
const GAPS: std::ops::RangeInclusive<f64> = 1e-3..=4e10;

/// Reads a record, gzipped or not.
pub fn read(path: &Path) -> Result<Availability, TraceError> {
    parse(path, crate::trace::parse::open(path)?)
}

/// Reads a record from `input`; `file` is what errors call it.
pub fn parse(file: &Path, mut input: impl Read) -> Result<Availability, TraceError> {
    let mut text = Vec::new();
    input.read_to_end(&mut text).map_err(|error| TraceError::Read {
        file: file.to_owned(),
        line: 1,
        error,
    })?;
    let record: Record = serde_json::from_slice(&text).map_err(|error| bad_json(file, &error))?;
    let wrong = |field, reason| TraceError::Field { file: file.to_owned(), field, reason };
    if !GAPS.contains(&record.metadata.gap_seconds) {
        let reason = "must be above zero, and seconds";
        return Err(wrong("metadata.gap_seconds", reason));
    }
    let step = Span::from_secs_f64(record.metadata.gap_seconds);
    Availability::new(step, record.data).ok_or_else(|| wrong("data", "is empty"))
}

/// The error of the decoder with its place, which the decoder repeats in its text.
fn bad_json(file: &Path, error: &serde_json::Error) -> TraceError {
    let (line, column) = (error.line(), error.column());
    let reason = error.to_string();
    let place = format!(" at line {line} column {column}");
    let reason = reason.strip_suffix(&place).unwrap_or(&reason).to_owned();
    TraceError::Json { file: file.to_owned(), line, column, reason }
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;
    use proptest::prelude::*;

    use super::*;

    fn record(text: &str) -> Result<Availability, TraceError> {
        parse(Path::new("zone.json"), text.as_bytes())
    }

    #[test]
    fn record_with_unknown_fields_is_read() {
        let text = r#"{"metadata": {"gap_seconds": 300, "zone": "a"}, "data": [4, 0], "more": 1}"#;
        let record = record(text).unwrap();
        assert_eq!(record.length(), Span::mins(10));
        assert_eq!((record.at(Time(0)), record.at(Time(300_000))), (4, 0));
    }

    #[test]
    fn bad_records_are_refused_with_file_and_place() {
        let refusal = |text: &str| record(text).unwrap_err().to_string();
        assert_eq!(
            refusal("{\"metadata\": {\"gap_seconds\": 300},\n \"data\": [1, -2]}"),
            "zone.json:2:15: invalid value: integer `-2`, expected u32"
        );
        assert_eq!(refusal("{\"data\": [1]}"), "zone.json:1:13: missing field `metadata`");
        assert_eq!(
            refusal("{\"metadata\": {\"gap_seconds\": 300}, \"data\": [1"),
            "zone.json:1:45: EOF while parsing a list"
        );
        assert_eq!(
            refusal("{\"metadata\": {\"gap_seconds\": 0}, \"data\": [1]}"),
            "zone.json: metadata.gap_seconds: must be above zero, and seconds"
        );
        assert_eq!(
            refusal("{\"metadata\": {\"gap_seconds\": 300}, \"data\": []}"),
            "zone.json: data: is empty"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(?s).{0,300}") {
            let _ = record(&text);
        }
    }
}
