//! Streams the output of a run's members to a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use muster_server::{GangName, LogPart, LogQuery, Logs, Refused};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::keeper::files;
use crate::keeper::journal::{self, Record};
use crate::keeper::output::log_file::log_path;
use crate::keeper::run_plan::RunPlan;
use crate::logs::rotated_log::RotatedLog;
use crate::store::database::Store;

/// Polling interval of followed files: short after new output, longer while there is none.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Parts that are queued for the client.
const AHEAD: usize = 2;
/// Bytes per poll, about.
const READ_BYTES: usize = 128 << 10;
/// Open files per member: two streams, and rotated files of them.
const FILES_EACH: u32 = 4;

/// Permits for open log files. A gang may have many members, and the process needs files for other things too.
#[derive(Clone, Debug)]
pub(crate) struct LogFiles(Arc<Semaphore>);

impl LogFiles {
    /// The share of a process with this many file descriptors.
    pub(crate) fn of(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new((limit / 4).clamp(64, 16_384))))
    }

    fn take(&self, members: usize) -> Option<OwnedSemaphorePermit> {
        let files = u32::try_from(members).ok()?.checked_mul(FILES_EACH)?;
        self.0.clone().try_acquire_many_owned(files).ok()
    }
}

/// Opens the logs of a gang's run.
pub(crate) async fn logs(
    data: PathBuf,
    database: PathBuf,
    files: LogFiles,
    gang: GangName,
    which: LogQuery,
) -> Result<Logs, Refused> {
    let name = gang.to_string();
    let (attempt, run) = (which.attempt, which.run);
    let found = tokio::task::spawn_blocking(move || find(&data, &database, &name, (attempt, run)));
    let run = found.await.map_err(|error| Refused::Unavailable(error.to_string()))??;
    let members = run.plan.members.len();
    if let Some(rank) = which.member.filter(|rank| *rank as usize >= members) {
        return Err(Refused::NotFound(format!("{gang} has {members} members, and none is {rank}")));
    }
    let wanted = if which.member.is_some() { 1 } else { members };
    let held = files.take(wanted).ok_or_else(|| {
        let why = format!("too many logs are read at once for those of {wanted} members: name one");
        Refused::Unavailable(why)
    })?;
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::spawn(send_parts(LogReader::new(run, which, held), send));
    Ok(receive)
}

/// A run whose logs are read.
struct Run {
    number: u64,
    directory: PathBuf,
    plan: RunPlan,
    database: PathBuf,
}

/// Finds a gang's latest run, its n-th run, or the run with this number of any gang of its name.
fn find(
    data: &Path,
    database: &Path,
    name: &str,
    (attempt, asked): (Option<u32>, Option<u64>),
) -> Result<Run, Refused> {
    let failed = |error: crate::StoreError| Refused::Unavailable(error.to_string());
    let store = Store::reader(database).map_err(failed)?;
    let missing = || Refused::NotFound(format!("gang {name} does not exist"));
    let uid = store.gang_called(name).map_err(failed)?.ok_or_else(missing)?;
    let runs = store.runs_of(uid).map_err(failed)?;
    let all = store.runs_named(name).map_err(failed)?;
    let run = match attempt {
        _ if asked.is_some() => all.iter().find(|run| Some(**run) == asked),
        Some(attempt) => (attempt as usize).checked_sub(1).and_then(|at| runs.get(at)),
        None => runs.last(),
    };
    let never = || match attempt {
        _ if asked.is_some() => {
            let kept: Vec<String> = all.iter().map(u64::to_string).collect();
            let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
            format!("{name} has no such run; those that are kept: {kept}")
        }
        Some(_) => format!("{name} was started {} times", runs.len()),
        None => format!("{name} has not started yet"),
    };
    let number = *run.ok_or_else(|| Refused::NotFound(never()))?;
    let directory = data.join("runs").join(number.to_string());
    let plan = RunPlan::read(&directory).map_err(|_| Refused::NotFound(never()))?;
    Ok(Run { number, directory, plan, database: database.to_owned() })
}

/// Sends existing output, then new output. A thread is occupied only while files are read.
async fn send_parts(mut reader: LogReader, send: mpsc::Sender<LogPart>) {
    let mut wait = POLL.0;
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let seen = reader.read_more();
            (reader, seen)
        });
        let Ok((again, seen)) = looked.await else { return };
        reader = again;
        wait = if seen.parts.is_empty() { (wait * 2).min(POLL.1) } else { POLL.0 };
        for part in seen.parts {
            if send.send(part).await.is_err() {
                return;
            }
        }
        if seen.more {
            continue;
        }
        if seen.over {
            return;
        }
        tokio::select! {
            () = send.closed() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// A reader of a run's logs.
struct LogReader {
    run: Run,
    which: LogQuery,
    streams: Vec<Stream>,
    /// Known members, and when their plan was written.
    seen: usize,
    written: Option<std::time::SystemTime>,
    begun: bool,
    _files: OwnedSemaphorePermit,
}

/// The result of one poll.
struct ReadResult {
    parts: Vec<LogPart>,
    /// Whether more can be read at once.
    more: bool,
    over: bool,
}

impl LogReader {
    fn new(run: Run, which: LogQuery, files: OwnedSemaphorePermit) -> Self {
        let (seen, written) = (run.plan.members.len(), run.plan_written());
        Self { run, which, streams: Vec::new(), seen, written, begun: false, _files: files }
    }

    fn read_more(&mut self) -> ReadResult {
        if !std::mem::replace(&mut self.begun, true) {
            self.streams = streams(&self.run, &self.run.plan, 0, &self.which);
        }
        // Members that join in a resize are appended.
        let again = self.run.plan_written();
        if again != self.written
            && let Ok(plan) = RunPlan::read(&self.run.directory)
        {
            self.streams.extend(streams(&self.run, &plan, self.seen, &self.which));
            (self.seen, self.written) = (plan.members.len(), again);
        }
        // Checked before the last read, so that all output until then is included.
        let over = !self.which.follow || self.run.is_over();
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for stream in &mut self.streams {
            while bytes < READ_BYTES {
                let Some(part) = stream.next(over) else { break };
                bytes += part.text.len();
                parts.push(part);
            }
            if bytes >= READ_BYTES {
                return ReadResult { parts, more: true, over };
            }
        }
        ReadResult { parts, more: false, over }
    }
}

/// The streams of these members, without the first `skip`.
fn streams(run: &Run, plan: &RunPlan, skip: usize, which: &LogQuery) -> Vec<Stream> {
    let members = plan.members.iter().skip(skip);
    let wanted = members.filter(|member| which.member.is_none_or(|rank| member.rank == rank));
    let mut streams = Vec::new();
    for member in wanted {
        for stderr in [false, true] {
            let rotated_log =
                RotatedLog::open(log_path(&run.directory, member.rank, stderr), which.tail);
            streams.push(Stream {
                member: member.rank,
                role: member.role.clone(),
                stderr,
                rotated_log,
            });
        }
    }
    streams
}

impl Run {
    fn plan_written(&self) -> Option<std::time::SystemTime> {
        let about = std::fs::metadata(self.directory.join(files::PLAN));
        about.and_then(|about| about.modified()).ok()
    }

    /// Whether no more output will come: by the journal, or by the database for a keeper that was killed.
    fn is_over(&self) -> bool {
        let journal = journal::read(&self.directory).unwrap_or_default();
        let ended = journal.iter().any(|record| matches!(record, Record::Ended { .. }));
        let by_database = || Store::reader(&self.database)?.has_ended(self.number);
        ended || by_database().unwrap_or(true)
    }
}

/// One stream of one member.
struct Stream {
    member: u32,
    role: Arc<str>,
    stderr: bool,
    rotated_log: RotatedLog,
}

impl Stream {
    /// New output in whole lines; at the end also a partial one.
    fn next(&mut self, over: bool) -> Option<LogPart> {
        let text = self.rotated_log.next(over)?;
        Some(LogPart {
            member: self.member,
            role: self.role.clone(),
            stderr: self.stderr,
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }
}
