//! Tables whose first row names the columns: which columns a table has, and its rows by column.

use std::io::BufRead;
use std::path::Path;

use crate::trace::error::TraceError;
use crate::trace::parse::cell::CellError;
use crate::trace::parse::lines::{Lines, Place};
use crate::trace::parse::split;

/// A column one kind of table may have.
pub(crate) trait Column: Copy + 'static {
    /// All of them; each stands at its `index`.
    const ALL: &'static [Self];
    /// Required columns.
    const REQUIRED: &'static [Self];
    /// Whether unknown columns are refused. In a table written for Muster they are misspelt; in the log of another system
    /// they are of no interest.
    const STRICT: bool;

    /// Where it stands in `ALL`.
    fn index(self) -> usize;
    /// Its names; the first is the canonical one, the others are known spellings.
    fn names(self) -> &'static [&'static str];

    /// Its first name.
    fn name(self) -> &'static str {
        self.names()[0]
    }
    /// The column of this name, and its canonical spelling. Case does not matter.
    fn named(name: &str) -> Option<(Self, &'static str)> {
        let spelt = |column: &Self| {
            column.names().iter().copied().find(|known| known.eq_ignore_ascii_case(name))
        };
        Self::ALL.iter().find_map(|column| Some((*column, spelt(column)?)))
    }
}

/// Declares the columns of one kind of table, each with its spellings, the canonical one first.
macro_rules! columns {
    (
        $(#[$doc:meta])*
        $vis:vis enum $name:ident, strict: $strict:literal, required: [$($required:ident),*],
        $($column:ident: $($spelling:literal)|+,)+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name {
            $($column,)+
        }

        impl $crate::trace::parse::columns::Column for $name {
            const ALL: &'static [Self] = &[$(Self::$column,)+];
            const REQUIRED: &'static [Self] = &[$(Self::$required,)*];
            const STRICT: bool = $strict;

            fn index(self) -> usize {
                self as usize
            }
            fn names(self) -> &'static [&'static str] {
                match self {
                    $(Self::$column => &[$($spelling,)+],)+
                }
            }
        }
    };
}
pub(crate) use columns;

/// Where each column stands in the rows of one table, and what it is called there.
pub(crate) struct Columns {
    places: Vec<Option<(usize, &'static str)>>,
    width: usize,
}

impl Columns {
    /// Reads the row of names. An unknown column is refused in a table written for Muster, because a
    /// misspelt `estimate` that is silently left out would change every result.
    fn find<C: Column>(file: &Path, names: &[String]) -> Result<Self, TraceError> {
        let file = || file.to_owned();
        let mut columns = Self { places: vec![None; C::ALL.len()], width: names.len() };
        for (place, name) in names.iter().enumerate() {
            match C::named(name) {
                Some((column, column_name)) => {
                    let known = columns.places[column.index()].replace((place, column_name));
                    if known.is_some() {
                        let (file, column) = (file(), column_name);
                        return Err(TraceError::RepeatedColumn { file, column });
                    }
                }
                None if C::STRICT => {
                    let known = C::ALL.iter().map(|column| column.name()).collect::<Vec<_>>();
                    return Err(TraceError::UnknownColumn {
                        file: file(),
                        column: name.clone(),
                        known: known.join(", "),
                    });
                }
                None => {}
            }
        }
        match C::REQUIRED.iter().find(|column| columns.places[column.index()].is_none()) {
            Some(column) => Err(TraceError::MissingColumn { file: file(), column: column.name() }),
            None => Ok(columns),
        }
    }
}

/// Calls `each` with every row but the first. Empty lines are no rows.
pub(crate) fn rows<C: Column>(
    file: &Path,
    input: impl BufRead,
    mut each: impl FnMut(&Row<'_>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut lines = Lines::new(file, input);
    let mut cells = Vec::new();
    let mut columns = None;
    while let Some((place, text)) = lines.next()? {
        if text.is_empty() {
            continue;
        }
        split::split(place, &text, &mut cells)?;
        match &columns {
            None => columns = Some(Columns::find::<C>(file, &cells)?),
            Some(columns) => each(&Row::new(place, columns, &cells)?)?,
        }
    }
    if columns.is_none() {
        Columns::find::<C>(file, &[])?;
    }
    Ok(())
}

/// One row, its cells found by column.
pub(crate) struct Row<'a> {
    place: &'a Place,
    columns: &'a Columns,
    cells: &'a [String],
}

impl<'a> Row<'a> {
    fn new(
        place: &'a Place,
        columns: &'a Columns,
        cells: &'a [String],
    ) -> Result<Self, TraceError> {
        if cells.len() != columns.width {
            return Err(place.bad_count(cells.len(), columns.width));
        }
        Ok(Self { place, columns, cells })
    }
    /// The line it is on.
    pub(crate) fn line(&self) -> u64 {
        self.place.line
    }
    /// Whether the table has a column at all.
    pub(crate) fn has(&self, column: impl Column) -> bool {
        self.columns.places[column.index()].is_some()
    }
    /// What is written in a column; `None` when nothing is, or there is no such column.
    pub(crate) fn get(&self, column: impl Column) -> Option<&'a str> {
        let (place, _) = self.columns.places[column.index()]?;
        Some(self.cells[place].as_str()).filter(|text| !text.is_empty())
    }
    /// A value that may be left out.
    pub(crate) fn optional<T>(
        &self,
        column: impl Column,
        parse: impl FnOnce(&str) -> Result<T, CellError>,
    ) -> Result<Option<T>, TraceError> {
        let Some(text) = self.get(column) else { return Ok(None) };
        parse(text).map(Some).map_err(|reason| self.bad(column, text, reason))
    }
    /// A value that may not.
    pub(crate) fn required<T>(
        &self,
        column: impl Column,
        parse: impl FnOnce(&str) -> Result<T, CellError>,
    ) -> Result<T, TraceError> {
        self.optional(column, parse)?.ok_or_else(|| self.bad(column, "", CellError::Empty))
    }
    /// The error for a value of this row, under the name the table has for the column.
    pub(crate) fn bad(&self, column: impl Column, value: &str, reason: CellError) -> TraceError {
        let place = self.columns.places[column.index()];
        self.place.bad_cell(place.map_or(column.name(), |(_, name)| name), value, reason)
    }
}
