//! Attending to a keeper: hearing what it says, telling it what to do, and noticing that it is gone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::Input;
use crate::keeper::{Keeping, LOCK, Order, Record, read_journal};

/// How long a keeper that was just started may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Attends to the keeper of a run until it is gone, and says so last.
pub(super) async fn attend(
    run: u64,
    directory: PathBuf,
    mut orders: UnboundedReceiver<Order>,
    tell: UnboundedSender<Input>,
) {
    let mut ended = false;
    if let Some(mut keeping) = connect(&directory).await {
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
                        break;
                    }
                }
            }
        }
    }
    if !ended {
        // It may have said its last words when nobody listened.
        for record in read_journal(&directory).unwrap_or_default() {
            let _ = tell.send(Input::Kept { run, record });
        }
    }
    let _ = tell.send(Input::KeeperGone { run });
}

/// Waits until the keeper listens. `None` when there is none.
async fn connect(directory: &Path) -> Option<Keeping> {
    let began = tokio::time::Instant::now();
    loop {
        if let Ok(keeping) = Keeping::connect(directory).await {
            return Some(keeping);
        }
        let over = read_journal(directory).unwrap_or_default();
        if over.iter().any(|record| matches!(record, Record::Ended { .. })) {
            return None;
        }
        // One that has begun and let go of its lock is gone. One that has not begun may still be starting.
        let begun = !over.is_empty();
        if (begun && !is_locked(directory)) || began.elapsed() > PATIENCE {
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
