//! Waiting for gangs until they are over, and printing meanwhile how they stand and what they print.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_server::Kind;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::AskError;
use crate::client::follow::events::{Events, News};
use crate::client::output::columns;
use crate::client::output::output_prefix::{Prefix, Which, print};

/// How often the logs of a run are looked for that has just begun, and how soon again.
const TRIES: usize = 20;
const SOON: Duration = Duration::from_millis(200);

/// What is printed meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    /// Each phase, on standard error.
    pub(crate) phases: bool,
    /// What members print.
    pub(crate) logs: Option<(Which, Prefix)>,
}

/// How a gang stands that somebody waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// Its phase in a word.
    pub(crate) phase: String,
    /// What is said about it.
    pub(crate) message: String,
    /// Nodes or members that are ready.
    ready: String,
    /// Whether it is over, and whether it did what it should.
    pub(crate) over: Option<bool>,
    /// The run whose logs were printed last.
    printed: Option<Run>,
    /// Whether that run still lasts, as far as was seen.
    runs: bool,
}

/// What tells one run of a gang from the next.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    /// When it began; empty at first, and set right once all members have told.
    since: String,
    restarts: String,
}

/// What a look at a gang leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    /// Its phase is another, or as many more are ready.
    moved: bool,
    /// There is a run whose logs were not printed yet.
    run: bool,
}

impl Standing {
    /// Looks at the gang as it is now; nothing when it is gone.
    fn look(&mut self, gang: Option<&Value>) -> Seen {
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

    /// Whether a run is another than the one whose logs were printed last. From now on it is not.
    fn is_new(&mut self, run: Run, runs: bool) -> bool {
        let new = match &self.printed {
            None => true,
            Some(known) if known.restarts != run.restarts => true,
            // It goes on, or has just ended. Nobody unlearns when it began.
            Some(known) if self.runs => run.since.is_empty() && !known.since.is_empty(),
            // It has begun again; or it ended while it waited to.
            Some(known) => runs || known.since != run.since,
        };
        self.printed = Some(run);
        new
    }

    /// One line about it.
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

/// Waits until all of these gangs are over, and tells how they stand then.
pub(crate) async fn attend(
    api: &Arc<Api>,
    names: &[String],
    meanwhile: &Meanwhile,
) -> Result<BTreeMap<String, Standing>, AskError> {
    let mut standings: BTreeMap<String, Standing> =
        names.iter().map(|name| (name.clone(), Standing::default())).collect();
    let mut logs = JoinSet::new();
    let wanted = match names {
        [only] => {
            let (namespace, name) = only.split_once('/').unwrap_or(("default", only));
            Query::default().with("kind", "Gang").with("namespace", namespace).with("name", name)
        }
        _ => Query::default().with("kind", "Gang"),
    };
    let newest = api.newest().await?;
    let mut events = Events::after(api, wanted, newest);
    look_at_all(api, &mut standings, meanwhile, &mut logs).await?;
    while standings.values().any(|standing| standing.over.is_none()) {
        let (name, gang) = match events.next().await? {
            News::Set { kind: Kind::Gang, name, object, .. } => (name, Some(object)),
            News::Gone { kind: Kind::Gang, name, .. } => (name, None),
            News::Gap { .. } => {
                look_at_all(api, &mut standings, meanwhile, &mut logs).await?;
                continue;
            }
            _ => continue,
        };
        if let Some(standing) = standings.get_mut(&name) {
            let seen = standing.look(gang.as_ref());
            act(api, &name, standing, seen, meanwhile, &mut logs);
        }
    }
    // What was printed last is still on its way.
    while logs.join_next().await.is_some() {}
    Ok(standings)
}

async fn look_at_all(
    api: &Arc<Api>,
    standings: &mut BTreeMap<String, Standing>,
    meanwhile: &Meanwhile,
    logs: &mut JoinSet<()>,
) -> Result<(), AskError> {
    for (name, standing) in standings {
        let gang = match api.one(Kind::Gang, name).await {
            Ok(gang) => Some(gang),
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(error),
        };
        let seen = standing.look(gang.as_ref());
        act(api, name, standing, seen, meanwhile, logs);
    }
    Ok(())
}

fn act(
    api: &Arc<Api>,
    name: &str,
    standing: &Standing,
    seen: Seen,
    meanwhile: &Meanwhile,
    logs: &mut JoinSet<()>,
) {
    if seen.moved && meanwhile.phases {
        eprintln!("{}", standing.line(name));
    }
    let Some((which, prefix)) = meanwhile.logs.clone().filter(|_| seen.run) else { return };
    let (api, name) = (api.clone(), name.to_owned());
    let over = standing.over.is_some();
    logs.spawn(async move {
        for _ in 0..TRIES {
            match print(api.clone(), name.clone(), which.clone(), prefix.clone()).await {
                // It was over before it ran.
                Err(error) if error.is_missing() && over => return,
                // It has only just begun.
                Err(error) if error.is_missing() => sleep(SOON).await,
                Err(error) => return eprintln!("the logs of {name} end here: {error}"),
                Ok(()) => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::client::follow::wait::*;

    fn gang(phase: &str, ready: &str, since: Option<&str>) -> Value {
        json!({"status": {"phase": phase, "progress": ready, "runningSince": since, "message": "so"}})
    }

    #[test]
    fn each_run_is_printed_once_and_each_step_told_once() {
        let mut standing = Standing::default();
        let mut look = |phase, ready, since| standing.look(Some(&gang(phase, ready, since)));
        let (told, begun) = (Seen { moved: true, run: false }, Seen { moved: true, run: true });
        assert_eq!(look("Waiting", "0/8", None), told);
        assert_eq!(look("Waiting", "0/8", None), Seen::default());
        assert_eq!(look("Provisioning", "3/8", None), told);
        assert_eq!(look("Running", "8/8", None), begun);
        assert_eq!(look("Running", "8/8", Some("t1")), Seen::default());
        assert_eq!(look("Running", "8/8", Some("t2")), Seen::default(), "it was set right");
        assert_eq!(look("Stopping", "8/8", Some("t2")), told);
        assert_eq!(look("Waiting", "0/8", Some("t2")), told);
        assert_eq!(look("Running", "8/8", None), begun);
        assert_eq!(look("Running", "8/8", Some("t3")), Seen::default());
        assert_eq!(look("Running", "8/8", None), Seen { moved: false, run: true }, "again, unseen");
        assert_eq!(look("Succeeded", "0/8", Some("t4")), told);
        assert_eq!(standing.over, Some(true));
    }

    #[test]
    fn a_gang_that_is_cancelled_while_it_waits_again_is_not_printed_again() {
        let mut standing = Standing::default();
        assert!(standing.look(Some(&gang("Running", "8/8", Some("t1")))).run);
        assert!(!standing.look(Some(&gang("Waiting", "0/8", Some("t1")))).run);
        assert!(!standing.look(Some(&gang("Failed", "0/8", Some("t1")))).run);
    }

    #[test]
    fn a_gang_that_was_too_quick_to_be_seen_running_is_printed_all_the_same() {
        let mut standing = Standing::default();
        assert!(standing.look(Some(&gang("Failed", "0/8", Some("t1")))).run);
        assert_eq!(standing.over, Some(false));
        assert_eq!(standing.line("a/b"), "a/b failed: so");
    }

    #[test]
    fn a_gang_that_is_deleted_did_not_do_what_it_should() {
        let mut standing = Standing::default();
        standing.look(Some(&gang("Waiting", "0/8", None)));
        assert_eq!(standing.look(None), Seen { moved: true, run: false });
        assert_eq!((standing.over, standing.phase.as_str()), (Some(false), "Gone"));
        let mut done = Standing::default();
        done.look(Some(&gang("Succeeded", "0/8", Some("t"))));
        assert_eq!(done.look(None), Seen::default());
        assert_eq!(done.over, Some(true), "it was done before");
    }
}
