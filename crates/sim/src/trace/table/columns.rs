//! Which columns a table has, and its rows by column.

use std::path::Path;

use crate::trace::lines::Place;
use crate::trace::{CellError, TraceError};

/// A column a table may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Submit,
    Run,
    Members,
    Min,
    Name,
    Gpus,
    Cpu,
    Memory,
    Queue,
    User,
    Priority,
    Estimate,
    Topology,
    Deadline,
    CostOfWaiting,
}

impl Column {
    const ALL: [Self; 15] = [
        Self::Submit,
        Self::Run,
        Self::Members,
        Self::Min,
        Self::Name,
        Self::Gpus,
        Self::Cpu,
        Self::Memory,
        Self::Queue,
        Self::User,
        Self::Priority,
        Self::Estimate,
        Self::Topology,
        Self::Deadline,
        Self::CostOfWaiting,
    ];
    const REQUIRED: [Self; 3] = [Self::Submit, Self::Run, Self::Members];

    fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit_s",
            Self::Run => "run_s",
            Self::Members => "members",
            Self::Min => "min",
            Self::Name => "name",
            Self::Gpus => "gpus",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Queue => "queue",
            Self::User => "user",
            Self::Priority => "priority",
            Self::Estimate => "estimate_s",
            Self::Topology => "topology",
            Self::Deadline => "deadline_s",
            Self::CostOfWaiting => "cost_of_waiting",
        }
    }
}

/// Where each column stands in the rows of one table.
pub(super) struct Columns {
    places: [Option<usize>; Column::ALL.len()],
    width: usize,
}

impl Columns {
    /// Reads the row of names. A column nobody knows is refused, because a misspelt `estimate` that is
    /// silently left out would change every result.
    pub(super) fn find(file: &Path, names: &[String]) -> Result<Self, TraceError> {
        let file = || file.to_owned();
        let mut columns = Self { places: [None; Column::ALL.len()], width: names.len() };
        for (place, name) in names.iter().enumerate() {
            let Some(column) = Column::ALL.into_iter().find(|column| column.name() == name) else {
                let known = Column::ALL.map(Column::name).join(", ");
                return Err(TraceError::UnknownColumn {
                    file: file(),
                    column: name.clone(),
                    known,
                });
            };
            if columns.places[column as usize].replace(place).is_some() {
                return Err(TraceError::RepeatedColumn { file: file(), column: column.name() });
            }
        }
        match Column::REQUIRED.into_iter().find(|column| columns.places[*column as usize].is_none())
        {
            Some(column) => Err(TraceError::MissingColumn { file: file(), column: column.name() }),
            None => Ok(columns),
        }
    }
}

/// One row, its cells found by column.
pub(super) struct Row<'a> {
    place: &'a Place,
    columns: &'a Columns,
    cells: &'a [String],
}

impl<'a> Row<'a> {
    pub(super) fn new(
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
    pub(super) fn line(&self) -> u64 {
        self.place.line
    }
    /// What is written in a column; `None` when nothing is, or there is no such column.
    pub(super) fn get(&self, column: Column) -> Option<&'a str> {
        let place = self.columns.places[column as usize]?;
        Some(self.cells[place].as_str()).filter(|text| !text.is_empty())
    }
    /// A value that may be left out.
    pub(super) fn optional<T>(
        &self,
        column: Column,
        parse: impl FnOnce(&str) -> Result<T, CellError>,
    ) -> Result<Option<T>, TraceError> {
        let Some(text) = self.get(column) else { return Ok(None) };
        parse(text).map(Some).map_err(|reason| self.bad(column, text, reason))
    }
    /// A value that may not.
    pub(super) fn required<T>(
        &self,
        column: Column,
        parse: impl FnOnce(&str) -> Result<T, CellError>,
    ) -> Result<T, TraceError> {
        self.optional(column, parse)?.ok_or_else(|| self.bad(column, "", CellError::Empty))
    }
    /// The error for a value of this row.
    pub(super) fn bad(&self, column: Column, value: &str, reason: CellError) -> TraceError {
        self.place.bad_cell(column.name(), value, reason)
    }
}
