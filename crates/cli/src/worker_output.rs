//! Streams the output of workers.

use std::sync::Arc;
use std::time::Duration;

use muster_local::Local;
use muster_server::{GangName, Host, Kind, WhichLogs};

use crate::commands::run;

/// How often a start or restart of a gang is checked for.
const POLL: Duration = Duration::from_millis(50);

/// Passes every line of output of a gang's members to `line`, run after run, until the gang is over.
pub(crate) async fn stream_output(local: Arc<Local>, name: String, mut line: impl FnMut(&str)) {
    let Some((namespace, short)) = name.split_once('/') else { return };
    let gang = GangName { namespace: namespace.to_owned(), name: short.to_owned() };
    for attempt in 1.. {
        let which = WhichLogs { attempt: Some(attempt), follow: true, ..WhichLogs::default() };
        let mut printed = loop {
            // Checked before reading the logs: a run that begins just before the gang is over is not missed.
            let over = run::is_over(local.board().get(Kind::Gang, &name).as_deref());
            match local.logs(gang.clone(), which.clone()).await {
                Ok(printed) => break printed,
                Err(_) if over => return,
                Err(_) => tokio::time::sleep(POLL).await,
            }
        };
        while let Some(part) = printed.recv().await {
            for text in part.text.lines() {
                line(&format!("[{short} {} {}] {text}", part.role, part.member));
            }
        }
    }
}
