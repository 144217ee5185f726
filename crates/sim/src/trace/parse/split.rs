//! One line of a table, cut at its commas.
//!
//! The `csv` crate is not used here: it lets cells span lines and counts lines from where it stopped last, so
//! that after blank lines or Windows line ends an error would name the wrong one.

use crate::trace::error::TraceError;
use crate::trace::parse::lines::Place;

/// Cuts `line` into `cells`, without the white space around them. A cell in double quotes may hold commas,
/// and a doubled quote stands for one.
pub(crate) fn split(place: &Place, line: &str, cells: &mut Vec<String>) -> Result<(), TraceError> {
    cells.clear();
    let mut cell = String::new();
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if quoted => quoted = false,
            '"' if cell.trim().is_empty() => quoted = true,
            ',' if !quoted => cells.push(take_trimmed(&mut cell)),
            letter => cell.push(letter),
        }
    }
    if quoted {
        return Err(place.open_quote());
    }
    cells.push(take_trimmed(&mut cell));
    Ok(())
}

fn take_trimmed(cell: &mut String) -> String {
    let trimmed = cell.trim().to_owned();
    cell.clear();
    trimmed
}
