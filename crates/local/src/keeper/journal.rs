//! What became of a run, written down before anybody is told.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use muster_core::gang::Seat;
use serde::{Deserialize, Serialize};

/// Something that happened in a run. Times are Unix milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A keeper has begun.
    Begun {
        /// When.
        at: i64,
        /// Its process.
        pid: u32,
        /// The system it runs on, until that is started again.
        boot: String,
        /// Whether it can have other members while some go on. Those of older versions cannot.
        #[serde(default)]
        resizes: bool,
        /// Whether it says every few seconds that it is alive. Those of older versions do not.
        #[serde(default)]
        beats: bool,
    },
    /// The system has run out of something that members need to start; this keeper is gone, and another may try later.
    Later {
        /// When.
        at: i64,
        /// Out of what.
        why: String,
    },
    /// The keeper is alive. Told, and never written.
    Beat,
    /// All members wait at the gate; their process groups, by rank.
    Ready {
        /// When.
        at: i64,
        /// A group for each.
        groups: Vec<u32>,
    },
    /// The gate opens. From here on members may have run.
    Opened {
        /// When.
        at: i64,
    },
    /// Every member is through the gate.
    Started {
        /// When the last one was.
        at: i64,
        /// How long after the first, in microseconds.
        spread_us: u64,
    },
    /// Members were told to stop.
    Stopping {
        /// When.
        at: i64,
        /// Why.
        why: String,
    },
    /// It has other members from here on: whoever was to go is gone, and whoever comes may run.
    Resized {
        /// When; later than all before.
        at: i64,
        /// Everybody it has, by number, and where each sits.
        members: Vec<(u32, Seat)>,
        /// The number of whoever comes next.
        next: u32,
    },
    /// A member is over.
    Exited(Exit),
    /// Something that whoever runs the gang should know.
    Warned {
        /// When.
        at: i64,
        /// What.
        what: String,
    },
    /// Nothing is left of the run.
    Ended {
        /// When.
        at: i64,
        /// How.
        ending: Ending,
    },
}

/// How a member ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Exit {
    /// When, in Unix milliseconds.
    pub at: i64,
    /// Its rank.
    pub rank: u32,
    /// What it returned.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Whether it used more memory than it may.
    pub out_of_memory: bool,
    /// Whether it was told to go, while others stay.
    #[serde(default)]
    pub leaving: bool,
}

impl Exit {
    /// Whether it did what it should.
    pub(crate) fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// In words.
    pub(crate) fn in_words(&self) -> String {
        match (self.out_of_memory, self.code, self.signal) {
            (true, ..) => "used more memory than it asked for and was killed".to_owned(),
            (_, Some(code), _) => format!("returned {code}"),
            (_, None, Some(signal)) => format!("was killed by signal {signal}"),
            (_, None, None) => "ended, nobody knows how".to_owned(),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// Its work is done.
    Succeeded,
    /// A member failed, or could not be started; in words.
    Failed(String),
    /// It was told to stop.
    Stopped,
    /// It took longer than it may.
    TimedOut,
}

impl Record {
    fn at(&self) -> i64 {
        match self {
            Self::Begun { at, .. }
            | Self::Ready { at, .. }
            | Self::Opened { at }
            | Self::Started { at, .. }
            | Self::Stopping { at, .. }
            | Self::Resized { at, .. }
            | Self::Warned { at, .. }
            | Self::Later { at, .. }
            | Self::Ended { at, .. } => *at,
            Self::Beat => 0,
            Self::Exited(exit) => exit.at,
        }
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Bytes that are written for good.
    whole: u64,
}

impl Journal {
    /// Goes on with the journal in a directory. What is only half written at its end was never said.
    pub(crate) fn open(directory: &Path) -> std::io::Result<(Self, Vec<Record>)> {
        let path = directory.join(crate::keeper::files::JOURNAL);
        let (known, whole) = records(&bytes(directory)?);
        let file = File::options().append(true).create(true).open(&path)?;
        file.set_len(whole)?;
        Ok((Self { file, whole }, known))
    }

    /// A new journal, wherever it is.
    #[cfg(test)]
    pub(crate) fn at_end_of(directory: &Path) -> Self {
        let path = directory.join(crate::keeper::files::JOURNAL);
        let file = File::options().append(true).create(true).open(path).expect("a journal");
        Self { file, whole: 0 }
    }

    /// Writes something down for good, or leaves the journal as it was: half a line on a full disk is taken back.
    pub(crate) fn write(&mut self, record: &Record) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(record).map_err(std::io::Error::other)?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.whole += line.len() as u64,
            Err(_) => drop(self.file.set_len(self.whole)),
        }
        written
    }
}

/// When a run was last known to be alive, in Unix milliseconds: its keeper says so every few seconds by touching its lock,
/// and with all it writes.
pub(crate) fn last_alive(directory: &Path) -> i64 {
    let touched = std::fs::metadata(directory.join(crate::keeper::files::LOCK))
        .and_then(|about| about.modified());
    let since = touched.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let touched = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    let written = read(directory).unwrap_or_default().iter().map(Record::at).max();
    touched.max(written).unwrap_or(0)
}

/// No journal is longer. Members run where it is, and may write to it.
const LONGEST: u64 = 64 << 20;

/// All that was written of a run.
pub(crate) fn read(directory: &Path) -> std::io::Result<Vec<Record>> {
    Ok(records(&bytes(directory)?).0)
}

fn bytes(directory: &Path) -> std::io::Result<Vec<u8>> {
    let file = match File::open(directory.join(crate::keeper::files::JOURNAL)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The records at the beginning of a journal, and how many bytes they take up. What follows the first line that is not a whole
/// record was never said: a disk that was full, or lost its power, may have left anything there.
///
/// The bytes are counted in the journal itself. Written anew, a record of an older version may be longer.
pub(crate) fn records(journal: &[u8]) -> (Vec<Record>, u64) {
    let (mut records, mut whole) = (Vec::new(), 0);
    for line in journal.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let Ok(record) = serde_json::from_slice(text) else { break };
        records.push(record);
        whole += line.len() as u64;
    }
    (records, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_of_an_older_version_goes_on_where_it_ended() {
        let directory = std::env::temp_dir().join(format!("muster-journal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        // Before `resizes` and `leaving`, and with the beginning of a line that was cut off, of no known encoding.
        let old = b"{\"begun\":{\"at\":1,\"pid\":2,\"boot\":\"b\"}}\n{\"opened\":{\"at\":2}}\n{\"war\xff\xfe";
        std::fs::write(directory.join(crate::keeper::files::JOURNAL), old).expect("written");
        let (mut journal, known) = Journal::open(&directory).expect("opened");
        assert_eq!(known.len(), 2);
        journal.write(&Record::Opened { at: 3 }).expect("written");
        let read = read(&directory).expect("read");
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(read.last(), Some(&Record::Opened { at: 3 }), "{read:?}");
        assert_eq!(read.len(), 3);
    }
}
