//! What members have printed, and what they are printing.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use muster_server::{GangName, LogPart, Logs, Refused, WhichLogs};
use tokio::sync::mpsc;

use crate::keeper::{Record, RunPlan, numbered, page_of, read_journal};
use crate::store::Store;

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that are told at once, at most.
const PART: usize = 64 << 10;
/// Parts that wait for whoever reads.
const AHEAD: usize = 16;

/// The logs of a gang's run.
pub(crate) async fn logs(
    data: PathBuf,
    database: PathBuf,
    gang: GangName,
    which: WhichLogs,
) -> Result<Logs, Refused> {
    let name = gang.to_string();
    let attempt = which.attempt;
    let found = tokio::task::spawn_blocking(move || find(&data, &database, &name, attempt));
    let (directory, plan) =
        found.await.map_err(|error| Refused::Unavailable(error.to_string()))??;
    if let Some(rank) = which.member.filter(|rank| *rank as usize >= plan.members.len()) {
        let members = plan.members.len();
        return Err(Refused::NotFound(format!("{gang} has {members} members, and none is {rank}")));
    }
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || tell(&directory, &plan, &which, &send));
    Ok(receive)
}

/// The directory of a gang's latest run, or of its so-manieth.
fn find(
    data: &Path,
    database: &Path,
    name: &str,
    attempt: Option<u32>,
) -> Result<(PathBuf, RunPlan), Refused> {
    let failed = |error: crate::StoreError| Refused::Unavailable(error.to_string());
    let store = Store::reader(database).map_err(failed)?;
    let missing = || Refused::NotFound(format!("gang {name} does not exist"));
    let uid = store.gang_called(name).map_err(failed)?.ok_or_else(missing)?;
    let runs = store.runs_of(uid).map_err(failed)?;
    let run = match attempt {
        Some(attempt) => (attempt as usize).checked_sub(1).and_then(|at| runs.get(at)),
        None => runs.last(),
    };
    let never = || match attempt {
        Some(_) => format!("{name} was started {} times", runs.len()),
        None => format!("{name} has not started yet"),
    };
    let run = run.ok_or_else(|| Refused::NotFound(never()))?;
    let directory = data.join("runs").join(run.to_string());
    let plan = RunPlan::read(&directory).map_err(|_| Refused::NotFound(never()))?;
    Ok((directory, plan))
}

/// One stream of one member, and how far it was told.
struct Stream {
    member: u32,
    role: Arc<str>,
    stderr: bool,
    path: PathBuf,
    at: u64,
}

fn tell(directory: &Path, plan: &RunPlan, which: &WhichLogs, send: &mpsc::Sender<LogPart>) {
    let members = plan.members.iter();
    let wanted = members.filter(|member| which.member.is_none_or(|rank| member.rank == rank));
    let mut streams: Vec<Stream> = Vec::new();
    for member in wanted {
        for stderr in [false, true] {
            let path = page_of(directory, member.rank, stderr);
            let (rank, role) = (member.rank, member.role.clone());
            streams.push(Stream { member: rank, role, stderr, path, at: 0 });
        }
    }
    for stream in &mut streams {
        if !stream.begin(which.tail, plan.limits.files, send) {
            return;
        }
    }
    if !which.follow {
        return;
    }
    loop {
        // Asked before the last look: what was printed by then is seen.
        let over = is_over(directory);
        if !streams.iter_mut().all(|stream| stream.go_on(send)) || over {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn is_over(directory: &Path) -> bool {
    let journal = read_journal(directory).unwrap_or_default();
    journal.iter().any(|record| matches!(record, Record::Ended { .. }))
}

impl Stream {
    /// Tells what is there; the last lines of it, if no more are wanted. `false` when nobody reads.
    fn begin(&mut self, tail: Option<usize>, older: u32, send: &mpsc::Sender<LogPart>) -> bool {
        let mut text = Vec::new();
        for number in (1..=older).rev() {
            if let Ok(page) = std::fs::read(numbered(&self.path, number)) {
                text.extend(page);
            }
        }
        if let Ok(page) = std::fs::read(&self.path) {
            self.at = page.len() as u64;
            text.extend(page);
        }
        let from = tail.map_or(0, |lines| last_lines(&text, lines));
        self.send(&text[from..], send)
    }

    /// Tells what has come since.
    fn go_on(&mut self, send: &mpsc::Sender<LogPart>) -> bool {
        let mut text = Vec::new();
        let size = std::fs::metadata(&self.path).map_or(0, |about| about.len());
        if size < self.at {
            // The page was turned over: its rest is on the one before.
            let _ = read_from(&numbered(&self.path, 1), self.at, &mut text);
            self.at = 0;
        }
        if read_from(&self.path, self.at, &mut text).is_ok() {
            let size = std::fs::metadata(&self.path).map_or(0, |about| about.len());
            self.at = size.max(self.at);
        }
        self.send(&text, send)
    }

    fn send(&self, mut text: &[u8], send: &mpsc::Sender<LogPart>) -> bool {
        while !text.is_empty() {
            let most = text.len().min(PART);
            // Whole lines where there are any.
            let end = match text[..most].iter().rposition(|byte| *byte == b'\n') {
                Some(at) => at + 1,
                None => most,
            };
            let part = LogPart {
                member: self.member,
                role: self.role.clone(),
                stderr: self.stderr,
                text: String::from_utf8_lossy(&text[..end]).into_owned(),
            };
            if send.blocking_send(part).is_err() {
                return false;
            }
            text = &text[end..];
        }
        !send.is_closed()
    }
}

fn read_from(path: &Path, at: u64, text: &mut Vec<u8>) -> std::io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    file.read_to_end(text).map(drop)
}

/// Where the last so many lines begin.
fn last_lines(text: &[u8], lines: usize) -> usize {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    if lines == 0 {
        return text.len();
    }
    let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).nth(lines - 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_the_last_lines() {
        let text = b"a\nb\nc\n";
        let last = |lines| std::str::from_utf8(&text[last_lines(text, lines)..]).expect("text");
        assert_eq!([last(0), last(1), last(2), last(9)], ["", "c\n", "b\nc\n", "a\nb\nc\n"]);
        assert_eq!(&text[last_lines(&text[..5], 1)..5], b"c");
    }
}
