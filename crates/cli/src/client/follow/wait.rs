//! Waits until gangs are over, and prints their phases and the output of their members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_server::Kind;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::RequestError;
use crate::client::follow::events::{EventStream, StreamEvent};
use crate::client::output::columns;
use crate::client::output::output_prefix::{LogSelection, Prefix, print};

/// The number of tries to read the logs of a run that has just begun, and the delay between them.
const LOG_TRIES: usize = 20;
const LOG_RETRY: Duration = Duration::from_millis(200);

/// What is printed while waiting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printing {
    /// Each phase, on standard error.
    pub(crate) phases: bool,
    /// The output of the members.
    pub(crate) logs: Option<(LogSelection, Prefix)>,
}

/// The status of a gang that is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct GangStatus {
    /// Its phase, as printed.
    pub(crate) phase: String,
    /// Its status message.
    pub(crate) message: String,
    /// Nodes or members that are ready.
    ready: String,
    /// Whether it is over, and then whether it succeeded.
    pub(crate) over: Option<bool>,
    /// The run whose logs were printed last.
    printed: Option<Run>,
    /// Whether that run was still running when last observed.
    runs: bool,
}

/// The identity of a run of a gang.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    /// When it began; empty at first, and corrected once all members have reported.
    since: String,
    restarts: String,
}

/// The result of observing a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    /// Its phase has changed, or the number of ready nodes or members.
    moved: bool,
    /// There is a run whose logs were not printed yet.
    run: bool,
}

impl GangStatus {
    /// Observes the current object of the gang; `None` when it was removed.
    fn observe(&mut self, gang: Option<&Value>) -> Seen {
        let Some(gang) = gang else {
            let moved = self.over.is_none();
            if moved {
                self.over = Some(false);
                (self.phase, self.message) = ("Gone".to_owned(), "it was deleted".to_owned());
            }
            return Seen { moved, run: false };
        };
        let text = |field: &str| columns::text(gang, field);
        let (phase, ready) = (columns::phase(gang), text("/status/progress"));
        let moved = (&phase, &ready) != (&self.phase, &self.ready);
        let known = text("/status/phase");
        self.over = match &*known {
            "Succeeded" => Some(true),
            "Failed" => Some(false),
            _ => None,
        };
        (self.phase, self.ready, self.message) = (phase, ready, text("/status/message"));
        let runs = matches!(&*known, "Running" | "Stopping");
        let run = Run { since: text("/status/runningSince"), restarts: text("/status/restarts") };
        let new = (runs || self.over.is_some()) && self.is_new(run, runs);
        self.runs = runs;
        Seen { moved, run: new }
    }

    /// Whether this is another run than the one whose logs were printed last. Marks it as printed.
    fn is_new(&mut self, run: Run, runs: bool) -> bool {
        let new = match &self.printed {
            None => true,
            Some(known) if known.restarts != run.restarts => true,
            // The run goes on, or has just ended. A run that has a start time does not lose it.
            Some(known) if self.runs => run.since.is_empty() && !known.since.is_empty(),
            // A new run has begun; or it ended while the gang waited for its next start.
            Some(known) => runs || known.since != run.since,
        };
        self.printed = Some(run);
        new
    }

    /// One line about the gang.
    fn line(&self, name: &str) -> String {
        let Self { phase, message, ready, .. } = self;
        let ready = match &**phase {
            "Provisioning" | "Admitted" => format!(" {ready}"),
            _ => String::new(),
        };
        let because = match &**phase {
            "Running" | "Admitted" | "Succeeded" | "Provisioning" => String::new(),
            _ if message.is_empty() => String::new(),
            _ => format!(": {}", message.lines().next().unwrap_or_default()),
        };
        format!("{name} {}{ready}{because}", phase.to_lowercase())
    }
}

/// Waits until all of these gangs are over, and returns their last status.
pub(crate) async fn wait_for_gangs(
    api: &Arc<Api>,
    names: &[String],
    printing: &Printing,
) -> Result<BTreeMap<String, GangStatus>, RequestError> {
    let mut statuses: BTreeMap<String, GangStatus> =
        names.iter().map(|name| (name.clone(), GangStatus::default())).collect();
    let mut logs = JoinSet::new();
    let wanted = match names {
        [only] => {
            let (namespace, name) = only.split_once('/').unwrap_or(("default", only));
            Query::default().with("kind", "Gang").with("namespace", namespace).with("name", name)
        }
        _ => Query::default().with("kind", "Gang"),
    };
    let newest = api.newest().await?;
    let mut events = EventStream::after(api, wanted, newest);
    observe_all(api, &mut statuses, printing, &mut logs).await?;
    while statuses.values().any(|status| status.over.is_none()) {
        let (name, gang) = match events.next().await? {
            StreamEvent::Set { kind: Kind::Gang, name, object, .. } => (name, Some(object)),
            StreamEvent::Gone { kind: Kind::Gang, name, .. } => (name, None),
            StreamEvent::Gap { .. } => {
                observe_all(api, &mut statuses, printing, &mut logs).await?;
                continue;
            }
            _ => continue,
        };
        if let Some(status) = statuses.get_mut(&name) {
            let seen = status.observe(gang.as_ref());
            react(api, &name, status, seen, printing, &mut logs);
        }
    }
    // The last output is still being printed.
    while logs.join_next().await.is_some() {}
    Ok(statuses)
}

async fn observe_all(
    api: &Arc<Api>,
    statuses: &mut BTreeMap<String, GangStatus>,
    printing: &Printing,
    logs: &mut JoinSet<()>,
) -> Result<(), RequestError> {
    for (name, status) in statuses {
        let gang = match api.one(Kind::Gang, name).await {
            Ok(gang) => Some(gang),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let seen = status.observe(gang.as_ref());
        react(api, name, status, seen, printing, logs);
    }
    Ok(())
}

fn react(
    api: &Arc<Api>,
    name: &str,
    status: &GangStatus,
    seen: Seen,
    printing: &Printing,
    logs: &mut JoinSet<()>,
) {
    if seen.moved && printing.phases {
        eprintln!("{}", status.line(name));
    }
    let Some((which, prefix)) = printing.logs.clone().filter(|_| seen.run) else { return };
    let (api, name) = (api.clone(), name.to_owned());
    let over = status.over.is_some();
    logs.spawn(async move {
        for _ in 0..LOG_TRIES {
            match print(api.clone(), name.clone(), which.clone(), prefix.clone()).await {
                // The gang was over before it ran.
                Err(error) if error.is_not_found() && over => return,
                // The run has only just begun.
                Err(error) if error.is_not_found() => sleep(LOG_RETRY).await,
                Err(error) => return eprintln!("the logs of {name} are interrupted: {error}"),
                Ok(()) => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gang(phase: &str, ready: &str, since: Option<&str>) -> Value {
        json!({"status": {"phase": phase, "progress": ready, "runningSince": since, "message": "so"}})
    }

    #[test]
    fn each_run_and_each_phase_is_printed_once() {
        let mut status = GangStatus::default();
        let mut observe = |phase, ready, since| status.observe(Some(&gang(phase, ready, since)));
        let (changed, begun) = (Seen { moved: true, run: false }, Seen { moved: true, run: true });
        assert_eq!(observe("Waiting", "0/8", None), changed);
        assert_eq!(observe("Waiting", "0/8", None), Seen::default());
        assert_eq!(observe("Provisioning", "3/8", None), changed);
        assert_eq!(observe("Running", "8/8", None), begun);
        assert_eq!(observe("Running", "8/8", Some("t1")), Seen::default());
        assert_eq!(observe("Running", "8/8", Some("t2")), Seen::default(), "it was set right");
        assert_eq!(observe("Stopping", "8/8", Some("t2")), changed);
        assert_eq!(observe("Waiting", "0/8", Some("t2")), changed);
        assert_eq!(observe("Running", "8/8", None), begun);
        assert_eq!(observe("Running", "8/8", Some("t3")), Seen::default());
        assert_eq!(
            observe("Running", "8/8", None),
            Seen { moved: false, run: true },
            "again, unseen"
        );
        assert_eq!(observe("Succeeded", "0/8", Some("t4")), changed);
        assert_eq!(status.over, Some(true));
    }

    #[test]
    fn gang_cancelled_while_waiting_again_is_not_printed_again() {
        let mut status = GangStatus::default();
        assert!(status.observe(Some(&gang("Running", "8/8", Some("t1")))).run);
        assert!(!status.observe(Some(&gang("Waiting", "0/8", Some("t1")))).run);
        assert!(!status.observe(Some(&gang("Failed", "0/8", Some("t1")))).run);
    }

    #[test]
    fn gang_that_ended_before_it_was_observed_is_printed() {
        let mut status = GangStatus::default();
        assert!(status.observe(Some(&gang("Failed", "0/8", Some("t1")))).run);
        assert_eq!(status.over, Some(false));
        assert_eq!(status.line("a/b"), "a/b failed: so");
    }

    #[test]
    fn deleted_gang_counts_as_unsuccessful() {
        let mut status = GangStatus::default();
        status.observe(Some(&gang("Waiting", "0/8", None)));
        assert_eq!(status.observe(None), Seen { moved: true, run: false });
        assert_eq!((status.over, status.phase.as_str()), (Some(false), "Gone"));
        let mut done = GangStatus::default();
        done.observe(Some(&gang("Succeeded", "0/8", Some("t"))));
        assert_eq!(done.observe(None), Seen::default());
        assert_eq!(done.over, Some(true), "it was done before");
    }
}
