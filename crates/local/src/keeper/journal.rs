//! The journal of a run: every record is written before it is sent.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use muster_core::gang::Seat;
use serde::{Deserialize, Serialize};

use crate::keeper::files;

/// A record of a run. Times are Unix milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A keeper has begun.
    Begun {
        /// When.
        at: i64,
        /// Its process id.
        pid: u32,
        /// The boot id of the system.
        boot: String,
        /// Whether it can replace members while others run on. Older keepers cannot.
        #[serde(default)]
        resizes: bool,
        /// Whether it sends heartbeats. Older keepers do not.
        #[serde(default)]
        beats: bool,
    },
    /// The system is out of a resource that members need to start; this keeper exits, and another may try later.
    Later {
        /// When.
        at: i64,
        /// Which resource.
        why: String,
    },
    /// Heartbeat. Sent, and never written.
    Beat,
    /// All members wait at the gate; their process groups, by rank.
    Ready {
        /// When.
        at: i64,
        /// One process group per member.
        groups: Vec<u32>,
    },
    /// The gate opens. From here on members may have run.
    Opened {
        /// When.
        at: i64,
    },
    /// Every member has passed the gate.
    Started {
        /// When the last one passed.
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
    /// It has other members from here on: the leaving ones have exited, and the joining ones may run.
    Resized {
        /// When; later than all earlier records of this kind.
        at: i64,
        /// All members, by number, and their seats.
        members: Vec<(u32, Seat)>,
        /// The next member number.
        next: u32,
    },
    /// A member has exited.
    Exited(Exit),
    /// A warning for the owner of the gang.
    Warned {
        /// When.
        at: i64,
        /// What.
        what: String,
    },
    /// The run has ended; none of its processes is left.
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
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Whether it exceeded its memory limit.
    pub out_of_memory: bool,
    /// Whether it was leaving in a resize.
    #[serde(default)]
    pub leaving: bool,
}

impl Exit {
    /// Whether it succeeded.
    pub(crate) fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// In words.
    pub(crate) fn in_words(&self) -> String {
        match (self.out_of_memory, self.code, self.signal) {
            (true, ..) => "used more memory than it asked for and was killed".to_owned(),
            (_, Some(code), _) => format!("returned {code}"),
            (_, None, Some(signal)) => format!("was killed by signal {signal}"),
            (_, None, None) => "ended for an unknown reason".to_owned(),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// It succeeded.
    Succeeded,
    /// A member failed, or could not be started; with the reason.
    Failed(String),
    /// It was told to stop.
    Stopped,
    /// It exceeded its time limit.
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

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Bytes that are written completely.
    whole: u64,
}

impl Journal {
    /// Opens the journal in a directory. A partial line at its end is discarded.
    pub(crate) fn open(directory: &Path) -> std::io::Result<(Self, Vec<Record>)> {
        let path = directory.join(files::JOURNAL);
        let (known, whole) = records(&bytes(directory)?);
        let file = File::options().append(true).create(true).open(&path)?;
        file.set_len(whole)?;
        Ok((Self { file, whole }, known))
    }

    /// A new journal in a directory.
    #[cfg(test)]
    pub(crate) fn at_end_of(directory: &Path) -> Self {
        let path = directory.join(files::JOURNAL);
        let file = File::options().append(true).create(true).open(path).expect("a journal");
        Self { file, whole: 0 }
    }

    /// Writes a record durably, or leaves the journal unchanged: a partial line on a full disk is truncated.
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

/// When a run was last known to be alive, in Unix milliseconds: its keeper touches its lock every few seconds, and
/// every record has a time.
pub(crate) fn last_alive(directory: &Path) -> i64 {
    let touched = std::fs::metadata(directory.join(files::LOCK)).and_then(|about| about.modified());
    let since = touched.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let touched = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    let written = read(directory).unwrap_or_default().iter().map(Record::at).max();
    touched.max(written).unwrap_or(0)
}

/// Maximum size of a journal. Members run in its directory, and may write to it.
const LONGEST: u64 = 64 << 20;

/// All records of a run.
pub(crate) fn read(directory: &Path) -> std::io::Result<Vec<Record>> {
    Ok(records(&bytes(directory)?).0)
}

fn bytes(directory: &Path) -> std::io::Result<Vec<u8>> {
    let file = match File::open(directory.join(files::JOURNAL)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The records at the beginning of a journal, and their length in bytes. Everything after the first incomplete record
/// is ignored: a full disk or a power cut may have left anything there.
///
/// The length is counted in the journal itself. Serialized again, a record of an older version may be longer.
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
    fn journal_of_an_older_version_is_continued() {
        let directory = std::env::temp_dir().join(format!("muster-journal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        // Before `resizes` and `leaving`, and with a truncated line at the end that is not UTF-8.
        let old = b"{\"begun\":{\"at\":1,\"pid\":2,\"boot\":\"b\"}}\n{\"opened\":{\"at\":2}}\n{\"war\xff\xfe";
        std::fs::write(directory.join(files::JOURNAL), old).expect("written");
        let (mut journal, known) = Journal::open(&directory).expect("opened");
        assert_eq!(known.len(), 2);
        journal.write(&Record::Opened { at: 3 }).expect("written");
        let read = read(&directory).expect("read");
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(read.last(), Some(&Record::Opened { at: 3 }), "{read:?}");
        assert_eq!(read.len(), 3);
    }
}
