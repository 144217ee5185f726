//! Standard output, where the reader may leave at any time (`muster run ... | head`).

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// What a shell reports for a program that ends because nobody reads it any more: 128 + SIGPIPE.
const NOBODY_READS: i32 = 141;

/// Prints one line, at once. Ends the program quietly when nobody reads any more.
pub(crate) fn line(text: impl Display) {
    raw(&clean(&format!("{text}\n")));
}

/// Prints a text.
pub(crate) fn write(text: &str) {
    raw(&clean(text));
}

/// A text in which nothing steers a terminal but colours, tabs and ends of lines. What others have named or written is
/// part of all that is shown.
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

/// A text that is one cell of a table: nothing in it steers a terminal, and it has no lines.
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

/// Control characters, and those that turn the direction of what follows.
fn steers(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of a sequence at the beginning that sets a colour, and nothing else.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|one: char| !one.is_ascii_digit() && one != ';')?;
    inner[end..].starts_with('m').then_some(end + 3)
}

/// Prints a text as it is: what workers print, and scripts.
pub(crate) fn raw(text: &str) {
    let mut out = std::io::stdout().lock();
    let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(NOBODY_READS);
    }
    eprintln!("error: standard output cannot be written: {error}");
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use crate::stdout::*;

    #[test]
    fn nothing_that_is_shown_steers_a_terminal_but_colours() {
        assert_eq!(clean("\u{1b}[1;32mRunning\u{1b}[0m\tx\n"), "\u{1b}[1;32mRunning\u{1b}[0m\tx\n");
        assert_eq!(clean("a\u{1b}[2Jb\u{7}"), "a\\u{1b}[2Jb\\u{7}");
        assert_eq!(clean("\u{1b}]0;title\u{9c}"), "\\u{1b}]0;title\\u{9c}");
        assert_eq!(clean("\u{202e}gnp"), "\\u{202e}gnp");
        assert_eq!(clean("\u{1b}["), "\\u{1b}[");
    }

    #[test]
    fn a_cell_has_one_line_and_no_colours_of_its_own() {
        assert_eq!(cell("a\nb\u{1b}[31m"), "a\\u{a}b\\u{1b}[31m");
        assert_eq!(cell("plain grün"), "plain grün");
    }
}
