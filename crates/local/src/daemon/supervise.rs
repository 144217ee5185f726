//! Attending to a keeper: hearing what it says, telling it what to do, and noticing that it is stopped or gone.
//!
//! That a run has ended is told only when its keeper is gone and nothing is left of its processes: until then its seats are
//! taken. A keeper says every few seconds that it is alive. One that is silent is continued, in case a worker has stopped
//! it, and killed when it is silent again.

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

/// How long a keeper that was started by another process may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one that was started by this process may take.
const START: Duration = Duration::from_secs(60);
/// How long a keeper may be silent. It says every two seconds that it is alive.
const SILENCE: Duration = Duration::from_secs(30);
/// How long one that is continued has to say something.
const SECOND_CHANCE: Duration = Duration::from_secs(10);
/// A keeper that is silent again within this time is killed.
const AGAIN: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(5);
/// How often processes that cannot be killed are looked at.
const STUCK: Duration = Duration::from_secs(2);

/// A keeper that is a child of this process.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pub(crate) pid: Option<u32>,
    /// Done when the process is, with what it returned.
    pub(crate) done: JoinHandle<Option<i32>>,
}

/// The run that is attended to.
#[derive(Debug)]
pub(crate) struct SupervisedRun {
    pub(crate) run: u64,
    pub(crate) directory: PathBuf,
    pub(crate) group: Option<RunCgroup>,
}

/// What was heard of a keeper.
#[derive(Default)]
struct Observed {
    /// That nothing is left of the run. Told last.
    ended: Option<Record>,
    alive_until: Option<i64>,
    /// Why it was ended by this process, if it was.
    killed: Option<&'static str>,
    unsent: Option<Order>,
}

/// Attends to the keeper of a run until it is gone, ends what it left behind, and says so last.
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
            // Members can put a socket of their own in its place.
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
        // One that has only stopped listening to us is asked again.
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
        // It may have said its last words when nobody listened.
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

/// Hears a keeper until it says no more.
async fn listen(
    run: u64,
    directory: &Path,
    connection: &mut KeeperConnection,
    orders: &mut UnboundedReceiver<Order>,
    tell: &UnboundedSender<Input>,
    heard: &mut Observed,
) {
    // Older keepers do not say that they are alive. What the journal says of it is no news.
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

/// Waits until the keeper listens. `None` when there is none.
async fn connect(directory: &Path, keeper: Option<&KeeperProcess>) -> Option<KeeperConnection> {
    let began = Instant::now();
    loop {
        // Asked before anything else: one that ends meanwhile is looked for once more.
        let exited = keeper.is_some_and(|keeper| keeper.done.is_finished());
        if let Ok(connection) = KeeperConnection::connect(directory).await {
            return Some(connection);
        }
        let over = journal::read(directory).unwrap_or_default();
        if over.iter().any(|record| matches!(record, Record::Ended { .. })) && !is_locked(directory)
        {
            return None;
        }
        // One that has begun and let go of its lock is gone. One that has not begun may still be starting.
        let begun = !over.is_empty();
        let late = keeper.is_none() && began.elapsed() > PATIENCE;
        if (begun || exited || late) && !is_locked(directory) {
            return None;
        }
        if began.elapsed() > START {
            // It lives, and does not listen.
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
