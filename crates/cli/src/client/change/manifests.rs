//! Reads manifests to be sent to the control plane, and maps its findings back to files and lines.

use std::io::Read;
use std::path::{Path, PathBuf};

use muster_api::Finding;

use crate::client::connection::error::RequestError;
use crate::exit::{BadInput, UsageError};

/// The file name that stands for standard input.
const STDIN: &str = "-";

/// Files, concatenated into one text.
pub(crate) struct Manifests {
    pub(crate) text: String,
    /// The media type of the text.
    pub(crate) content: &'static str,
    /// The position of each file in the text.
    pieces: Vec<Piece>,
}

/// One file in the text.
struct Piece {
    file: String,
    /// The line of the text at which the file begins, from 1.
    first: usize,
}

/// Reads all files; `-` is standard input.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Manifests> {
    let mut texts = Vec::new();
    for file in files {
        let name =
            if file == Path::new(STDIN) { "standard input" } else { &*file.to_string_lossy() };
        let text = match name {
            "standard input" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map(|_| text)
            }
            _ => std::fs::read_to_string(file),
        };
        let text = text.map_err(|error| UsageError(format!("{name} cannot be read: {error}")))?;
        texts.push((name.to_owned(), text));
    }
    Ok(join(texts))
}

/// Concatenates files. A single JSON file stays JSON, so that a list in it is read as one.
fn join(texts: Vec<(String, String)>) -> Manifests {
    let json = matches!(&*texts, [(name, _)] if name.ends_with(".json"));
    let content = if json { "application/json" } else { "application/yaml" };
    let (mut all, mut pieces) = (String::new(), Vec::new());
    for (file, text) in texts {
        if !all.is_empty() {
            all.push_str("---\n");
        }
        pieces.push(Piece { file, first: all.lines().count() + 1 });
        all.push_str(text.trim_start_matches('\u{feff}'));
        if !all.ends_with('\n') {
            all.push('\n');
        }
    }
    Manifests { text: all, content, pieces }
}

impl Manifests {
    /// Turns an error into one for the user. Findings get the file and the line that they came from.
    pub(crate) fn explain(&self, error: RequestError) -> anyhow::Error {
        match error {
            RequestError::Refused(refusal) if !refusal.findings.is_empty() => {
                let found = refusal.findings.into_iter().map(|finding| self.place(finding));
                BadInput(found.collect()).into()
            }
            error => error.into(),
        }
    }

    fn place(&self, finding: Finding) -> Finding {
        let piece = self.pieces.iter().rev().find(|piece| piece.first <= finding.line);
        match piece {
            Some(Piece { file, first }) => {
                Finding { file: (&**file).into(), line: finding.line - first + 1, ..finding }
            }
            None => finding,
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_api::Severity;

    use super::*;

    #[test]
    fn findings_are_mapped_to_files_and_lines() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let all = join(vec![
            file("a.yaml", "kind: Queue\nspec: {}"),
            file("b.yaml", "\u{feff}kind: Pool\nspec:\n  x: 1\n"),
        ]);
        assert_eq!(all.text, "kind: Queue\nspec: {}\n---\nkind: Pool\nspec:\n  x: 1\n");
        let place = |line| {
            let finding = Finding {
                file: "manifests".into(),
                line,
                column: 1,
                field: String::new(),
                reason: String::new(),
                severity: Severity::Error,
            };
            let placed = all.place(finding);
            (placed.file.to_string(), placed.line)
        };
        assert_eq!(place(2), ("a.yaml".to_owned(), 2));
        assert_eq!(place(4), ("b.yaml".to_owned(), 1));
        assert_eq!(place(6), ("b.yaml".to_owned(), 3));
    }

    #[test]
    fn single_json_file_is_sent_as_json() {
        let named = |name: &str| (name.to_owned(), "[]".to_owned());
        assert_eq!(join(vec![named("a.json")]).content, "application/json");
        assert_eq!(join(vec![named("a.json"), named("b.json")]).content, "application/yaml");
    }
}
