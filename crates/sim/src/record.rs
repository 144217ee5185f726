//! Recordings: every event and every plan, line by line.
//!
//! A recording can be replayed: a World is built from the same events, the planner runs at the same times, and every plan
//! must be the same, byte for byte. So a decision of a production cluster can be reproduced on a laptop.

use std::io::{BufRead, Write};

use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::{Event, Plan, World};
use muster_plan::{Policy, plan, world_for};
use serde::{Deserialize, Serialize};

/// The version of the format; a reader refuses what it does not know.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
enum Line {
    /// The World before the first event.
    Start { version: u32, levels: Levels, policy: Policy },
    /// An event applied to the World. Refused events are recorded too: they must be refused again.
    Event { at: Time, event: Event },
    /// The planner's plan.
    Plan { at: Time, plan: Plan },
}

/// Writes a recording as the simulation goes.
pub struct Recorder {
    out: Box<dyn Write>,
    error: Option<std::io::Error>,
    plans: u64,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("plans", &self.plans).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recording into `out`, which should be buffered.
    pub fn new(out: Box<dyn Write>) -> Self {
        Self { out, error: None, plans: 0 }
    }
    pub(crate) fn start(&mut self, levels: &Levels, policy: &Policy) {
        self.line(&Line::Start {
            version: VERSION,
            levels: levels.clone(),
            policy: policy.clone(),
        });
    }
    pub(crate) fn event(&mut self, at: Time, event: &Event) {
        self.line(&Line::Event { at, event: event.clone() });
    }
    pub(crate) fn plan(&mut self, at: Time, plan: &Plan) {
        self.plans += 1;
        self.line(&Line::Plan { at, plan: plan.clone() });
    }
    /// Writes out what is buffered and says how many plans were recorded, or the first error there was.
    pub fn finish(&mut self) -> std::io::Result<u64> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.plans),
        }
    }

    fn line(&mut self, line: &Line) {
        if self.error.is_some() {
            return; // the first error is kept and reported at the end
        }
        let written = serde_json::to_writer(&mut self.out, line).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|()| self.out.write_all(b"\n")) {
            self.error = Some(error);
        }
    }
}

/// The result of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Replay {
    /// Events applied.
    pub events: u64,
    /// Plans made again and found the same, byte for byte.
    pub plans: u64,
    /// The first plan that was not the same.
    pub difference: Option<Difference>,
}

/// Where a replay departed from its recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The line of the recording.
    pub line: usize,
    /// The plan's time.
    pub at: Time,
    /// What was recorded.
    pub recorded: String,
    /// What was planned now.
    pub planned: String,
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line.
        line: usize,
        /// What went wrong.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: not a line of a recording: {source}")]
    Malformed {
        /// The line.
        line: usize,
        /// What went wrong.
        source: serde_json::Error,
    },
    /// The first line is missing or from another version.
    #[error("line 1: not a recording of version {VERSION}")]
    NotARecording,
}

/// Plans every cycle of a recording again.
///
/// # Errors
/// When the recording cannot be read; a plan that differs is not an error but the result.
pub fn replay(input: impl BufRead) -> Result<Replay, ReplayError> {
    let mut found = Replay { events: 0, plans: 0, difference: None };
    let mut begun: Option<(World, Policy)> = None;
    for (i, text) in input.lines().enumerate() {
        let line = i + 1;
        let text = text.map_err(|source| ReplayError::Read { line, source })?;
        let read = serde_json::from_str(&text)
            .map_err(|source| ReplayError::Malformed { line, source })?;
        match (read, &mut begun) {
            (Line::Start { version: VERSION, levels, policy }, None) => {
                begun = Some((world_for(&policy, levels), policy));
            }
            (Line::Event { at, event }, Some((world, _))) => {
                // A refusal is part of the recording and changes nothing but the time.
                let _ = world.apply(at, &event);
                found.events += 1;
            }
            (Line::Plan { at, .. }, Some((world, policy))) => {
                let again = Line::Plan { at, plan: plan(world, at, policy) };
                let planned = serde_json::to_string(&again).expect("plans are plain data");
                if planned != text {
                    found.difference = Some(Difference { line, at, recorded: text, planned });
                    return Ok(found);
                }
                found.plans += 1;
            }
            (Line::Start { .. }, _) | (_, None) => return Err(ReplayError::NotARecording),
        }
    }
    if begun.is_none() { Err(ReplayError::NotARecording) } else { Ok(found) }
}
