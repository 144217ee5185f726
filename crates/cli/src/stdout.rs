//! Standard output, whose reader may close it at any time (`muster run ... | head`).

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// The exit code that a shell reports for a program that ends by SIGPIPE: 128 + 13.
const SIGPIPE_EXIT: i32 = 141;

/// Prints one line and flushes it. Ends the program quietly when the reader has closed the pipe.
pub(crate) fn line(text: impl Display) {
    raw(&clean(&format!("{text}\n")));
}

/// Prints a text.
pub(crate) fn write(text: &str) {
    raw(&clean(text));
}

/// A text without control sequences, except colours, tabs and line ends. Names and messages of others are part of
/// everything that is printed.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let next = rest.chars().next().unwrap_or_default();
        let taken = match colour(rest) {
            Some(length) => &rest[..length],
            None if matches!(next, '\n' | '\t' | '\r') => &rest[..1],
            None => "",
        };
        shown.push_str(taken);
        if taken.is_empty() {
            shown.extend(next.escape_unicode());
            rest = &rest[next.len_utf8()..];
        } else {
            rest = &rest[taken.len()..];
        }
    }
    shown.push_str(rest);
    shown.into()
}

/// A text for one cell of a table: without control characters and line ends.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match steers(one) {
            true => shown.extend(one.escape_unicode()),
            false => shown.push(one),
        }
    }
    shown.into()
}

/// Control characters, and characters that change the direction of text.
fn steers(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of a leading escape sequence that only sets a colour.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|one: char| !one.is_ascii_digit() && one != ';')?;
    inner[end..].starts_with('m').then_some(end + 3)
}

/// Prints a text unchanged: output of workers, and scripts.
pub(crate) fn raw(text: &str) {
    let mut out = std::io::stdout().lock();
    let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(SIGPIPE_EXIT);
    }
    eprintln!("error: standard output cannot be written: {error}");
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_other_than_colours_are_escaped() {
        assert_eq!(clean("\u{1b}[1;32mRunning\u{1b}[0m\tx\n"), "\u{1b}[1;32mRunning\u{1b}[0m\tx\n");
        assert_eq!(clean("a\u{1b}[2Jb\u{7}"), "a\\u{1b}[2Jb\\u{7}");
        assert_eq!(clean("\u{1b}]0;title\u{9c}"), "\\u{1b}]0;title\\u{9c}");
        assert_eq!(clean("\u{202e}gnp"), "\\u{202e}gnp");
        assert_eq!(clean("\u{1b}["), "\\u{1b}[");
    }

    #[test]
    fn table_cells_have_one_line_and_no_colours() {
        assert_eq!(cell("a\nb\u{1b}[31m"), "a\\u{a}b\\u{1b}[31m");
        assert_eq!(cell("plain grün"), "plain grün");
    }
}
