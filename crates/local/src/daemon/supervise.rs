//! Supervises a keeper: receives its records, sends it orders, and detects that it is stopped or gone.
//!
//! The end of a run is reported only when its keeper is gone and none of its processes is left: until then its seats
//! are taken. A keeper sends a heartbeat every few seconds. A silent keeper gets SIGCONT, in case a worker has stopped
//! it, and is killed when it falls silent again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::daemon::inputs::Input;
use crate::keeper::files::{LATER, LOCK};
use crate::keeper::journal::{self, Record, last_alive};
use crate::keeper::processes::cgroup::RunCgroup;
use crate::keeper::processes::leftovers::{Leftovers, kill_keeper, kill_leftovers};
use crate::keeper::socket::client::{KeeperConnection, Order};
use crate::system::clock::wall_now;

/// How long a keeper that another process started may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a keeper that this process started may take to listen.
const START: Duration = Duration::from_secs(60);
/// Heartbeat timeout. A keeper sends one every two seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a continued keeper has to send something.
const SECOND_CHANCE: Duration = Duration::from_secs(10);
/// A keeper that falls silent again within this time is killed.
const AGAIN: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(5);
/// How often unkillable processes are checked.
const STUCK: Duration = Duration::from_secs(2);

/// A keeper that is a child of this process.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pub(crate) pid: Option<u32>,
    /// Completes when the process exits, with its exit code.
    pub(crate) done: JoinHandle<Option<i32>>,
}

/// The run of a supervised keeper.
#[derive(Debug)]
pub(crate) struct SupervisedRun {
    pub(crate) run: u64,
    pub(crate) directory: PathBuf,
    pub(crate) group: Option<RunCgroup>,
}

/// What is known of a keeper.
#[derive(Default)]
struct Observed {
    /// The record that the run has ended. Reported last.
    ended: Option<Record>,
    alive_until: Option<i64>,
    /// Why this process killed it, if it did.
    killed: Option<&'static str>,
    unsent: Option<Order>,
}

/// Supervises the keeper of a run until it is gone, kills its leftovers, and reports that last.
pub(crate) async fn supervise(
    of: SupervisedRun,
    keeper: Option<KeeperProcess>,
    mut orders: UnboundedReceiver<Order>,
    tell: UnboundedSender<Input>,
) {
    let SupervisedRun { run, directory, group } = of;
    let mut heard = Observed::default();
    loop {
        if let Some(mut connection) = connect(&directory, keeper.as_ref()).await {
            // Members could put a socket of their own in its place.
            let child = keeper.as_ref().filter(|keeper| !keeper.done.is_finished());
            let other = child.and_then(|child| child.pid).zip(connection.pid());
            if other.is_some_and(|(launched, listens)| launched != listens) {
                heard.killed = Some("a process other than its keeper listened in its place");
                kill_keeper(&directory);
            } else {
                listen(run, &directory, &mut connection, &mut orders, &tell, &mut heard).await;
                heard.alive_until = Some(wall_now());
            }
        }
        // A keeper that only closed the connection is connected to again.
        let (place, of) = (directory.clone(), group.clone());
        let left = tokio::task::spawn_blocking(move || kill_leftovers(&place, of.as_ref())).await;
        match left.unwrap_or(Leftovers::Nothing) {
            Leftovers::Nothing => break,
            Leftovers::Keeper => tokio::time::sleep(LOOK).await,
            Leftovers::Some(count) => {
                tracing::warn!(run, count, "processes of an ended run cannot be killed");
                tokio::time::sleep(STUCK).await;
            }
        }
    }
    let returned = match keeper {
        Some(keeper) => timeout(SECOND_CHANCE, keeper.done).await.ok().and_then(Result::ok),
        None => None,
    };
    match heard.ended {
        Some(record) => drop(tell.send(Input::KeeperRecord { run, record })),
        // Its last records may have been written while no control plane was connected.
        None => {
            for record in journal::read(&directory).unwrap_or_default() {
                let _ = tell.send(Input::KeeperRecord { run, record });
            }
        }
    }
    let alive_until = heard.alive_until.unwrap_or_else(|| last_alive(&directory));
    let later = returned.flatten() == Some(i32::from(LATER));
    let why = heard.killed.map(str::to_owned);
    let _ = tell.send(Input::KeeperGone { run, alive_until, why, later });
}

/// Receives records of a keeper until the connection ends.
async fn listen(
    run: u64,
    directory: &Path,
    connection: &mut KeeperConnection,
    orders: &mut UnboundedReceiver<Order>,
    tell: &UnboundedSender<Input>,
    heard: &mut Observed,
) {
    // Older keepers send no heartbeats. The journal may say so, but its records are not news.
    let known = journal::read(directory).unwrap_or_default();
    let mut beats = known.iter().any(|record| matches!(record, Record::Begun { beats: true, .. }));
    let (mut patience, mut resumed) = (Instant::now() + SILENCE, None::<Instant>);
    let mut next: Option<Order> = heard.unsent.take();
    loop {
        if let Some(order) = next.take()
            && !matches!(timeout(SILENCE, connection.send(&order)).await, Ok(Ok(())))
        {
            heard.unsent = Some(order);
            return;
        }
        tokio::select! {
            biased;
            record = connection.next() => {
                patience = Instant::now() + SILENCE;
                match record {
                    None => return,
                    Some(Record::Beat) => beats = true,
                    Some(record @ Record::Ended { .. }) => heard.ended = Some(record),
                    Some(record) => drop(tell.send(Input::KeeperRecord { run, record })),
                }
            }
            Some(order) = orders.recv() => next = Some(order),
            () = sleep_until(patience), if beats => {
                let before = resumed.replace(Instant::now());
                if before.is_some_and(|at| at.elapsed() < AGAIN) {
                    tracing::error!(run, "its keeper was silent twice and is killed");
                    heard.killed = Some("its keeper was stopped or did not answer, and was killed with its members");
                    connection.kill();
                    return;
                }
                tracing::warn!(run, "its keeper is silent and is continued");
                connection.resume();
                patience = Instant::now() + SECOND_CHANCE;
            }
        }
    }
}

/// Waits until the keeper listens. `None` if there is none.
async fn connect(directory: &Path, keeper: Option<&KeeperProcess>) -> Option<KeeperConnection> {
    let began = Instant::now();
    loop {
        // Checked first: a keeper that exits meanwhile is looked for once more.
        let exited = keeper.is_some_and(|keeper| keeper.done.is_finished());
        if let Ok(connection) = KeeperConnection::connect(directory).await {
            return Some(connection);
        }
        let over = journal::read(directory).unwrap_or_default();
        if over.iter().any(|record| matches!(record, Record::Ended { .. })) && !is_locked(directory)
        {
            return None;
        }
        // A keeper that has begun and released its lock is gone. One that has not begun may still be starting.
        let begun = !over.is_empty();
        let late = keeper.is_none() && began.elapsed() > PATIENCE;
        if (begun || exited || late) && !is_locked(directory) {
            return None;
        }
        if began.elapsed() > START {
            // It lives, but does not listen.
            kill_keeper(directory);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a keeper lives.
pub(crate) fn is_locked(directory: &Path) -> bool {
    let lock = std::fs::File::open(directory.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}
