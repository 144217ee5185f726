//! One line of a workload log.

use muster_core::time::{Span, Time};

use crate::trace::error::TraceError;
use crate::trace::parse::cell;
use crate::trace::parse::cell::CellError;
use crate::trace::parse::lines::Place;
use crate::trace::skipped::SkipReason;

/// A job of the log; `None` where a value is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its number, unique in the log.
    pub id: u64,
    /// When it arrived, counted from the start of the log.
    pub submit: Time,
    /// How long it waited on the machine, or in the simulation, that wrote the log.
    pub wait: Option<Span>,
    /// How long it ran.
    pub run: Span,
    /// The processors it got, or where that is not known those it asked for.
    pub processors: u32,
    /// The time its user asked for.
    pub requested: Option<Span>,
    /// Its user.
    pub user: Option<u64>,
    /// The queue it was in.
    pub queue: Option<u64>,
}

/// Columns in a line.
const WIDTH: usize = 18;

/// A column that is read: its number in the format's definition, and what to call it.
#[derive(Clone, Copy)]
struct Column(usize, &'static str);

const ID: Column = Column(1, "1 (job number)");
const SUBMIT: Column = Column(2, "2 (submit time)");
const WAIT: Column = Column(3, "3 (wait time)");
const RUN: Column = Column(4, "4 (run time)");
const ALLOCATED: Column = Column(5, "5 (allocated processors)");
const REQUESTED: Column = Column(8, "8 (requested processors)");
const REQUESTED_TIME: Column = Column(9, "9 (requested time)");
const STATUS: Column = Column(11, "11 (status)");
const USER: Column = Column(12, "12 (user)");
const QUEUE: Column = Column(15, "15 (queue)");

/// Status of lines that describe a stretch between two swaps of a job, not a job.
const PARTIAL: std::ops::RangeInclusive<i64> = 2..=4;

/// Reads one line: a record, or why it is skipped. Anything that is no number is an error, also in records that would
/// be skipped.
pub(crate) fn parse(place: &Place, line: &str) -> Result<Result<Record, SkipReason>, TraceError> {
    let row = Row::split(place, line)?;
    let id =
        row.read(ID, |text| u64::try_from(cell::whole(text)?).map_err(|_| CellError::Negative))?;
    let submit = row.read(SUBMIT, cell::seconds_if_known)?;
    let wait = row.read(WAIT, cell::seconds_if_known)?;
    let run = row.read(RUN, cell::seconds_if_known)?;
    let allocated = row.read(ALLOCATED, processors)?;
    let requested_processors = row.read(REQUESTED, processors)?;
    let requested =
        row.read(REQUESTED_TIME, cell::seconds_if_known)?.filter(|span| *span > Span::ZERO);
    let status = row.read(STATUS, cell::whole)?;
    let user = row.read(USER, number_if_known)?;
    let queue = row.read(QUEUE, number_if_known)?;
    if PARTIAL.contains(&status) {
        return Ok(Err(SkipReason::Partial));
    }
    let Some(submit) = submit else { return Ok(Err(SkipReason::NoSubmitTime)) };
    let Some(run) = run else { return Ok(Err(SkipReason::NoRunTime)) };
    let Some(processors) = allocated.or(requested_processors) else {
        return Ok(Err(SkipReason::NoProcessors));
    };
    Ok(Ok(Record {
        id,
        submit: Time::ZERO + submit,
        wait,
        run,
        processors,
        requested,
        user,
        queue,
    }))
}

/// A line cut into its columns.
struct Row<'a> {
    place: &'a Place,
    cells: [&'a str; WIDTH],
}

impl<'a> Row<'a> {
    fn split(place: &'a Place, line: &'a str) -> Result<Self, TraceError> {
        let mut cells = [""; WIDTH];
        let mut found = 0;
        for cell in line.split_ascii_whitespace() {
            if let Some(slot) = cells.get_mut(found) {
                *slot = cell;
            }
            found += 1;
        }
        if found == WIDTH { Ok(Self { place, cells }) } else { Err(place.bad_count(found, WIDTH)) }
    }

    fn read<T>(
        &self,
        Column(number, name): Column,
        parse: impl FnOnce(&str) -> Result<T, CellError>,
    ) -> Result<T, TraceError> {
        let text = self.cells[number - 1];
        parse(text).map_err(|reason| self.place.bad_cell(name, text, reason))
    }
}

/// A count of processors; `None` for zero and the format's `-1`.
fn processors(text: &str) -> Result<Option<u32>, CellError> {
    match cell::whole(text)? {
        ..=0 => Ok(None),
        count => u32::try_from(count).map(Some).map_err(|_| CellError::TooLarge),
    }
}

/// A number standing for a name; `None` for the format's `-1`.
fn number_if_known(text: &str) -> Result<Option<u64>, CellError> {
    Ok(u64::try_from(cell::whole(text)?).ok())
}
