//! What members have printed, and what they are printing.

mod pages;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use muster_server::{GangName, LogPart, Logs, Refused, WhichLogs};
use tokio::sync::mpsc;

use crate::keeper::{Record, RunPlan, page_of, read_journal};
use crate::store::Store;
use pages::Pages;

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);
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
    let (attempt, run) = (which.attempt, which.run);
    let found = tokio::task::spawn_blocking(move || find(&data, &database, &name, (attempt, run)));
    let run = found.await.map_err(|error| Refused::Unavailable(error.to_string()))??;
    let members = run.plan.members.len();
    if let Some(rank) = which.member.filter(|rank| *rank as usize >= members) {
        return Err(Refused::NotFound(format!("{gang} has {members} members, and none is {rank}")));
    }
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || tell(&run, &which, &send));
    Ok(receive)
}

/// A run whose logs are read.
struct Run {
    number: u64,
    directory: PathBuf,
    plan: RunPlan,
    store: Store,
}

/// A gang's latest run, or its so-manieth, or the one with this number of any gang of its name.
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
    Ok(Run { number, directory, plan, store })
}

fn tell(run: &Run, which: &WhichLogs, send: &mpsc::Sender<LogPart>) {
    let mut streams = streams(run, &run.plan, 0, which);
    let (mut seen, mut written) = (run.plan.members.len(), run.plan_written());
    loop {
        // Members that come while others go on are added at the end.
        let again = run.plan_written();
        if again != written
            && let Ok(plan) = RunPlan::read(&run.directory)
        {
            streams.extend(self::streams(run, &plan, seen, which));
            (seen, written) = (plan.members.len(), again);
        }
        // Asked before the last look: what was printed by then is seen.
        let over = !which.follow || run.is_over();
        if !streams.iter_mut().all(|stream| stream.go_on(over, send)) || over {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// What these members print, but for the first so many.
fn streams(run: &Run, plan: &RunPlan, skip: usize, which: &WhichLogs) -> Vec<Stream> {
    let members = plan.members.iter().skip(skip);
    let wanted = members.filter(|member| which.member.is_none_or(|rank| member.rank == rank));
    let mut streams = Vec::new();
    for member in wanted {
        for stderr in [false, true] {
            let pages = Pages::open(page_of(&run.directory, member.rank, stderr), which.tail);
            streams.push(Stream { member: member.rank, role: member.role.clone(), stderr, pages });
        }
    }
    streams
}

impl Run {
    fn plan_written(&self) -> Option<std::time::SystemTime> {
        let about = std::fs::metadata(self.directory.join(crate::keeper::PLAN));
        about.and_then(|about| about.modified()).ok()
    }

    /// Whether nothing more will be printed: its keeper says so, or the control plane does of a keeper that was killed.
    fn is_over(&self) -> bool {
        let journal = read_journal(&self.directory).unwrap_or_default();
        let ended = journal.iter().any(|record| matches!(record, Record::Ended { .. }));
        ended || self.store.has_ended(self.number).unwrap_or(true)
    }
}

/// One stream of one member.
struct Stream {
    member: u32,
    role: Arc<str>,
    stderr: bool,
    pages: Pages,
}

impl Stream {
    /// Tells what has come since, in whole lines; at the end also half of one. `false` when nobody reads.
    fn go_on(&mut self, over: bool, send: &mpsc::Sender<LogPart>) -> bool {
        while let Some(text) = self.pages.next(over) {
            let part = LogPart {
                member: self.member,
                role: self.role.clone(),
                stderr: self.stderr,
                text: String::from_utf8_lossy(&text).into_owned(),
            };
            if send.blocking_send(part).is_err() {
                return false;
            }
        }
        !send.is_closed()
    }
}
