//! Attending to a keeper: hearing what it says, telling it what to do, and noticing that it is gone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use super::Input;
use crate::clock::wall_now;
use crate::keeper::{Keeping, LOCK, Order, Record, kill_left_over, last_alive, read_journal};

/// How long a keeper that was started by somebody else may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Attends to the keeper of a run until it is gone, ends what it left behind, and says so last. `keeper` is done when the
/// process is, where it is a child of this one.
pub(super) async fn attend(
    run: u64,
    directory: PathBuf,
    keeper: Option<JoinHandle<()>>,
    mut orders: UnboundedReceiver<Order>,
    tell: UnboundedSender<Input>,
) {
    let (mut ended, mut alive_until) = (false, None);
    let mut unsent: Option<Order> = None;
    loop {
        if let Some(mut keeping) = connect(&directory, keeper.as_ref()).await {
            if let Some(order) = unsent.take() {
                let _ = keeping.tell(&order).await;
            }
            loop {
                tokio::select! {
                    record = keeping.next() => match record {
                        Some(record) => {
                            ended |= matches!(record, Record::Ended { .. });
                            let _ = tell.send(Input::Kept { run, record });
                        }
                        None => break,
                    },
                    Some(order) = orders.recv() => {
                        if keeping.tell(&order).await.is_err() {
                            unsent = Some(order);
                            break;
                        }
                    }
                }
            }
            alive_until = Some(wall_now());
        }
        // One that has only stopped listening to us is asked again.
        let of = directory.clone();
        let gone = tokio::task::spawn_blocking(move || kill_left_over(&of)).await;
        if ended || gone.unwrap_or(true) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    if !ended {
        // It may have said its last words when nobody listened.
        for record in read_journal(&directory).unwrap_or_default() {
            let _ = tell.send(Input::Kept { run, record });
        }
    }
    let alive_until = alive_until.unwrap_or_else(|| last_alive(&directory));
    let _ = tell.send(Input::KeeperGone { run, alive_until, why: None });
}

/// Waits until the keeper listens. `None` when there is none.
async fn connect(directory: &Path, keeper: Option<&JoinHandle<()>>) -> Option<Keeping> {
    let began = tokio::time::Instant::now();
    loop {
        // Asked before anything else: one that ends meanwhile is looked for once more.
        let exited = keeper.is_some_and(JoinHandle::is_finished);
        if let Ok(keeping) = Keeping::connect(directory).await {
            return Some(keeping);
        }
        let over = read_journal(directory).unwrap_or_default();
        if over.iter().any(|record| matches!(record, Record::Ended { .. })) {
            return None;
        }
        // One that has begun and let go of its lock is gone. One that has not begun may still be starting.
        let begun = !over.is_empty();
        let late = keeper.is_none() && began.elapsed() > PATIENCE;
        if (begun || exited || late) && !is_locked(directory) {
            return None;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a keeper lives.
pub(super) fn is_locked(directory: &Path) -> bool {
    let lock = std::fs::File::open(directory.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}
