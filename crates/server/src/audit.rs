//! The audit log: caller, operation, object and outcome of every change; one JSON object per line, append-only.
//!
//! The log is bounded: a full file is rotated, and the oldest file is deleted. Requests without a credential are not
//! logged; otherwise any client could rotate the log away. Repeated refusals of one caller are logged once in ten
//! seconds, with a count.

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

/// Maximum bytes of one file.
const FILE_BYTES: u64 = 16 << 20;
/// Rotated files that are kept beside the current one.
const FILES: u32 = 3;
/// Records queued for writing, at most.
const AHEAD: usize = 1_024;
/// Minimum interval between two log lines for the same kind of refusal.
const PAUSE: Duration = Duration::from_secs(10);

/// One operation that was done or refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// When it was answered.
    pub at: Stamp,
    /// The caller.
    pub caller: Arc<str>,
    /// The operation's identifier, such as `cancelGang`.
    pub verb: String,
    /// The objects it was applied to.
    pub object: String,
    /// The HTTP status of the answer.
    pub outcome: u16,
    /// How often the same was refused since the last line about it; absent if once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// An open audit log.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    send: SyncSender<Message>,
    refused: Mutex<Refusals>,
}

/// By caller and verb: when a refusal was last logged, and the number of refusals since.
type Refusals = BTreeMap<(Arc<str>, String), (Instant, u64)>;

enum Message {
    Record(AuditRecord),
    Flush(SyncSender<()>),
}

impl AuditLog {
    /// Opens the log file, creating it with owner-only permissions.
    ///
    /// # Errors
    /// If the file cannot be opened, or the writer thread cannot be started.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut file = LogFile::open(path)?;
        let (send, receive) = sync_channel(AHEAD);
        let run = move || write_all(&mut file, &receive);
        std::thread::Builder::new().name("audit".to_owned()).spawn(run)?;
        Ok(Self { path: path.to_owned(), send, refused: Mutex::default() })
    }

    /// Queues a record for writing. Requests never wait for the disk.
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

    /// Waits until all queued records are written.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.send.send(Message::Flush(done)).is_ok() {
            let _ = written.recv_timeout(Duration::from_secs(5));
        }
    }

    /// The newest matching records, oldest first.
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
    fn thousand_refusals_do_not_rotate_out_the_audit_log() {
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
    fn audit_files_are_rotated_within_their_limit() {
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
