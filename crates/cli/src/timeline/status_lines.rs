//! Where everything stands right now: a few lines under the timeline that are drawn over and over.
//!
//! Nothing is drawn unless a person watches, on a terminal.

use std::time::Duration;

use console::Term;

use crate::stdout;

/// How often a board that is watched wants to be drawn.
pub(crate) const REDRAW: Duration = Duration::from_millis(100);

/// Text is not squeezed into fewer columns than these; the terminal breaks it wherever it likes.
const NARROWEST: usize = 24;

/// The board. What is printed through it stays above it.
pub(crate) struct Board {
    /// Written to in one go, so that nothing flickers. None when nobody watches.
    term: Option<Term>,
    shown: Vec<String>,
}

impl Board {
    pub(crate) fn new() -> Self {
        let term = Term::buffered_stdout();
        Self { term: term.is_term().then_some(term), shown: Vec::new() }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.term.is_some()
    }

    /// Prints a line that stays. On a screen too narrow for it, the text goes on below where it began.
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

    /// Shows these lines instead of those before. Of more than fit on the screen, the first are shown.
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

    /// Wipes the board.
    pub(crate) fn clear(&mut self) {
        self.show(&[]);
    }

    /// Wipes what is shown, prints a line if there is one, and shows `lines` below it.
    ///
    /// A terminal that is gone takes the board with it; the run goes on.
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
    fn text_is_broken_at_spaces() {
        let text = "one order for 8 x p5.48xlarge in us-east-1a";
        assert_eq!(wrap(text, 80), [text]);
        assert_eq!(wrap(text, 30), ["one order for 8 x p5.48xlarge", "in us-east-1a"]);
        assert_eq!(wrap(text, 5), [text], "too narrow to be of use");
    }
}
