//! The current status: a few lines under the timeline that are redrawn in place.
//!
//! Nothing is drawn unless the output is a terminal.

use std::time::Duration;

use console::Term;

use crate::stdout;

/// How often the status is redrawn.
pub(crate) const REDRAW: Duration = Duration::from_millis(100);

/// Text is not wrapped to fewer columns than these; the terminal breaks it instead.
const NARROWEST: usize = 24;

/// The status lines. Lines printed through this stay above them.
pub(crate) struct StatusLines {
    /// Buffered, so that nothing flickers. `None` when the output is not a terminal.
    term: Option<Term>,
    shown: Vec<String>,
}

impl StatusLines {
    pub(crate) fn new() -> Self {
        let term = Term::buffered_stdout();
        Self { term: term.is_term().then_some(term), shown: Vec::new() }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.term.is_some()
    }

    /// Prints a permanent line. On a narrow screen the text is wrapped with a hanging indent.
    pub(crate) fn print(&self, head: &str, text: &str) {
        let Some(term) = &self.term else {
            return stdout::line(format!("{head}{text}").trim_end());
        };
        let indent = console::measure_text_width(head);
        let room = usize::from(term.size().1).saturating_sub(indent);
        let margin = format!("\n{}", " ".repeat(indent));
        let line = format!("{head}{}", wrap(text, room).join(&margin));
        self.draw(term, &self.shown, Some(&line));
    }

    /// Replaces the status lines. If there are more than fit on the screen, the first are shown.
    pub(crate) fn show(&mut self, lines: &[String]) {
        let Some(term) = &self.term else { return };
        let (height, width) = term.size();
        // The timeline keeps half of the screen.
        let rows = lines.len().min(usize::from(height / 2).max(2));
        let cut = |line| {
            console::truncate_str(line, usize::from(width).saturating_sub(1), "…").into_owned()
        };
        let mut fits: Vec<String> = lines[..rows].iter().map(|line| cut(line)).collect();
        if lines.len() > rows {
            fits[rows - 1] = format!("  ... and {} more", lines.len() - rows + 1);
        }
        if fits != self.shown {
            self.draw(term, &fits, None);
            self.shown = fits;
        }
    }

    /// Clears the status lines.
    pub(crate) fn clear(&mut self) {
        self.show(&[]);
    }

    /// Clears the status lines, prints a line if there is one, and draws `lines` below it.
    ///
    /// Errors of the terminal are ignored: the run goes on without it.
    fn draw(&self, term: &Term, lines: &[String], print: Option<&str>) {
        let drawn = || -> std::io::Result<()> {
            term.move_cursor_up(self.shown.len())?;
            term.write_str("\r")?;
            term.clear_to_end_of_screen()?;
            for line in print.into_iter().chain(lines.iter().map(String::as_str)) {
                term.write_line(line)?;
            }
            term.flush()
        };
        let _ = drawn();
    }
}

/// Breaks a plain text at spaces into lines of at most `room` columns, where that is possible.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let width = console::measure_text_width;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if room < NARROWEST || width(line) + 1 + width(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn text_is_wrapped_at_spaces() {
        let text = "one order for 8 x p5.48xlarge in us-east-1a";
        assert_eq!(wrap(text, 80), [text]);
        assert_eq!(wrap(text, 30), ["one order for 8 x p5.48xlarge", "in us-east-1a"]);
        assert_eq!(wrap(text, 5), [text], "too narrow to be of use");
    }
}
