//! The audit log: who did what to which object, and with what outcome; one JSON object a line, only ever added to.
//!
//! It is bounded: a file that is full is turned over, and the oldest goes. Requests without a credential are not in it, or
//! whoever has none could turn it over; of what is refused to a caller, one line in ten seconds says how often.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use muster_api::crd::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of one file.
const FILE_BYTES: u64 = 16 << 20;
/// Files before the current one.
const FILES: u32 = 3;
/// Lines that wait to be written.
const AHEAD: usize = 1_024;
/// How often a refusal of the same kind is written.
const PAUSE: Duration = Duration::from_secs(10);

/// Something that was done, or refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// When it was answered.
    pub at: Stamp,
    /// The caller.
    pub caller: Arc<str>,
    /// What was asked: the identifier of the operation, such as `cancelGang`.
    pub verb: String,
    /// To which objects.
    pub object: String,
    /// The HTTP status of the answer.
    pub outcome: u16,
    /// How often the same was refused since the last line about it; absent when once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// An audit log that is written.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    send: SyncSender<Message>,
    refused: Mutex<Refusals>,
}

/// By caller and verb: when a refusal was last written, and how many came since.
type Refusals = BTreeMap<(Arc<str>, String), (Instant, u64)>;

enum Message {
    Record(AuditRecord),
    Flush(SyncSender<()>),
}

impl AuditLog {
    /// Opens the log in a file, which is made for its owner alone.
    ///
    /// # Errors
    /// When it cannot be opened, or there can be no thread to write it.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut file = LogFile::open(path)?;
        let (send, receive) = sync_channel(AHEAD);
        let run = move || write_all(&mut file, &receive);
        std::thread::Builder::new().name("audit".to_owned()).spawn(run)?;
        Ok(Self { path: path.to_owned(), send, refused: Mutex::default() })
    }

    /// Writes a record, soon. Nobody waits for the disk.
    pub(crate) fn note(&self, mut record: AuditRecord) {
        if matches!(record.outcome, 403 | 429) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            let of = (record.caller.clone(), record.verb.clone());
            let (last, count) = refused.entry(of).or_insert((Instant::now(), 0));
            *count += 1;
            if *count > 1 && last.elapsed() < PAUSE {
                return;
            }
            record.times = Some(*count - 1).filter(|times| *times > 1);
            (*last, *count) = (Instant::now(), 1);
        }
        if let Err(TrySendError::Full(_)) = self.send.try_send(Message::Record(record)) {
            tracing::warn!("the audit log cannot be written as fast as requests come");
        }
    }

    /// Waits until all that was noted is written.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.send.send(Message::Flush(done)).is_ok() {
            let _ = written.recv_timeout(Duration::from_secs(5));
        }
    }

    /// The newest records, the oldest of them first.
    pub(crate) fn last(
        &self,
        most: usize,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Vec<AuditRecord> {
        self.flush();
        let mut found: std::collections::VecDeque<AuditRecord> = std::collections::VecDeque::new();
        for number in (0..=FILES).rev() {
            let Ok(file) = std::fs::File::open(numbered(&self.path, number)) else { continue };
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            for record in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if wanted(&record) {
                    if found.len() == most {
                        found.pop_front();
                    }
                    found.push_back(record);
                }
            }
        }
        found.into()
    }
}

fn write_all(file: &mut LogFile, records: &Receiver<Message>) {
    while let Ok(message) = records.recv() {
        match message {
            Message::Record(record) => {
                if let Err(error) = file.add(&record) {
                    tracing::error!(%error, ?record, "the audit log cannot be written");
                }
            }
            Message::Flush(done) => drop(done.send(())),
        }
    }
}

struct LogFile {
    path: PathBuf,
    file: std::fs::File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    fn add(&mut self, record: &AuditRecord) -> std::io::Result<()> {
        let mut line = serde_json::to_string(record).map_err(std::io::Error::other)?;
        line.push('\n');
        if self.bytes + line.len() as u64 > FILE_BYTES {
            for number in (0..FILES).rev() {
                let _ =
                    std::fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1));
            }
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    match number {
        0 => path.to_owned(),
        _ => PathBuf::from(format!("{}.{number}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;

    use super::*;

    fn record(verb: &str, outcome: u16) -> AuditRecord {
        AuditRecord {
            at: Stamp(Time(0)),
            caller: "eve".into(),
            verb: verb.into(),
            object: "x".repeat(1_000),
            outcome,
            times: None,
        }
    }

    #[test]
    fn what_is_refused_a_thousand_times_does_not_push_out_what_was_done() {
        let path = std::env::temp_dir().join(format!("muster-audit-{}", std::process::id()));
        let log = AuditLog::open(&path).unwrap();
        log.note(record("apply", 200));
        for _ in 0..1_000 {
            log.note(record("cancelGang", 403));
        }
        let all = log.last(100, |_| true);
        assert_eq!(all.iter().map(|one| &*one.verb).collect::<Vec<_>>(), ["apply", "cancelGang"]);
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn files_are_turned_over_and_stay_within_their_bound() {
        let directory = std::env::temp_dir().join(format!("muster-audits-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("audit.jsonl");
        let mut file = LogFile::open(&path).unwrap();
        for _ in 0..5 {
            file.bytes = FILE_BYTES;
            file.add(&record("apply", 200)).unwrap();
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1 + FILES as usize);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
