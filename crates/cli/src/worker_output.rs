//! What workers print, as they do.

use std::sync::Arc;
use std::time::Duration;

use muster_local::Local;
use muster_server::{GangName, Host, Kind, WhichLogs};

use crate::commands::run;

/// How often it is looked whether a gang has started, or started again.
const LOOK: Duration = Duration::from_millis(50);

/// Hands on every line that a gang's members print, run after run, until it is over.
pub(crate) async fn echo(local: Arc<Local>, name: String, mut line: impl FnMut(&str)) {
    let Some((namespace, short)) = name.split_once('/') else { return };
    let gang = GangName { namespace: namespace.to_owned(), name: short.to_owned() };
    for attempt in 1.. {
        let which = WhichLogs { attempt: Some(attempt), follow: true, ..WhichLogs::default() };
        let mut printed = loop {
            // Asked first: a run that begins just before the gang is over is not missed.
            let over = run::is_over(local.board().get(Kind::Gang, &name).as_deref());
            match local.logs(gang.clone(), which.clone()).await {
                Ok(printed) => break printed,
                Err(_) if over => return,
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        };
        while let Some(part) = printed.recv().await {
            for text in part.text.lines() {
                line(&format!("[{short} {} {}] {text}", part.role, part.member));
            }
        }
    }
}
