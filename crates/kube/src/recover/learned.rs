//! What the World knows and nobody could see by looking, written down in ConfigMaps of Muster's own namespace: how much
//! queues have used, how long users' gangs really ran, what was asked of pools.
//!
//! Without it every new leader would be fair from the hour it began, and expect nothing of the weeks before. It is written
//! every ten seconds where it has changed; what a leader has not written when it is killed is lost, and is not worth more.
//! Deliberately not here: anything that is acted on. That is written down before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use muster_api::instant;
use muster_core::Event;
use muster_core::demand::Arrival;
use muster_core::remembered::{PastDemand, Remembered};
use muster_core::time::{Span, Time};
use serde_json::{Value, json};

use crate::api::retry::Said;
use crate::cache::kinds::KindRole;
use crate::host::Host;

/// How often it is written at most.
const PAUSE: Duration = Duration::from_secs(10);
/// Marks the objects it is in, with what each of them is about.
const ABOUT: &str = "muster.sh/learned-state";
/// Where everything is that does not grow with time.
const SMALL: &str = "muster-memory";
/// The pool that an object is about.
const POOL: &str = "muster.sh/pool";
/// Users that are remembered. With ten runs of forty bytes each they take half of what an object may have.
const USERS_MAX: usize = 1_000;

/// What is remembered, and what of it is written.
#[derive(Debug, Default)]
pub(crate) struct LearnedState {
    /// What whoever led before knew, until the World is told.
    recalled: Option<Remembered>,
    written: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    at: Option<Instant>,
}

/// One object of what is remembered.
struct Note {
    name: Arc<str>,
    pool: Option<Arc<str>>,
    data: BTreeMap<String, String>,
}

impl Host {
    /// Asks what whoever led before knew. Muster does without if it may not know.
    pub(crate) async fn recall(&mut self) {
        let notes = self.notes();
        let about = ListParams::default().labels(ABOUT);
        match self.writer.ask(|| notes.list(&about)).await {
            Ok(found) => {
                for note in &found.items {
                    let data = note.data.clone().unwrap_or_default();
                    self.learned.written.insert(note.name_any().into(), data);
                }
                self.learned.recalled = Some(read(&found.items));
            }
            Err(Said::NotLeader) => {}
            Err(said) => tracing::warn!(%said, "what was learnt before cannot be read"),
        }
    }

    /// Tells the World what the one before it knew.
    pub(crate) fn recover_learned_state(&mut self) {
        if let Some(recalled) = self.learned.recalled.take() {
            self.apply_event(&Event::Remembered(Box::new(recalled)));
        }
    }

    /// Writes down what the World knows, where that has changed.
    pub(crate) fn write_learned_state(&mut self) {
        if self.learned.at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.learned.at = Some(Instant::now());
        for note in notes(&self.world.remembered()) {
            if self.learned.written.get(&note.name) != Some(&note.data) {
                self.write_note(note);
            }
        }
    }

    fn write_note(&mut self, note: Note) {
        let lane: Arc<str> = format!("memory {}", note.name).into();
        if self.ordered_writes.is_busy(&lane) {
            return;
        }
        let owner = note.pool.as_ref().and_then(|pool| self.object_named(KindRole::Pool, pool));
        let owner = owner.and_then(|pool| {
            let uid = pool.metadata.uid.clone()?;
            Some(json!([{"apiVersion": "muster.sh/v1alpha1", "kind": "Pool", "name": pool.name_any(), "uid": uid}]))
        });
        let object = written(&note, owner.as_ref());
        self.learned.written.insert(note.name.clone(), note.data);
        let (hands, notes, name) = (self.writer.clone(), self.notes(), note.name);
        self.ordered_writes.write(&lane, async move {
            hands.when_bindings_are_done().await;
            let mut said = hands.patch(&notes, &name, &object).await.map(drop);
            if let Err(Said::Gone) = said
                && let Ok(new) = serde_json::from_value::<ConfigMap>(object)
            {
                said = hands.create(&notes, &new).await.map(drop);
            }
            match said {
                Ok(()) | Err(Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(name = &*name, %said, "what was learnt is not written down");
                }
            }
        });
    }

    fn notes(&self) -> Api<ConfigMap> {
        Api::namespaced(self.writer.client.clone(), &self.config.namespace)
    }
}

/// What is remembered, as objects. What changes with every instant is left out where nothing else has changed.
fn notes(remembered: &Remembered) -> Vec<Note> {
    let mut latest: Vec<_> = remembered.users.iter().collect();
    latest.sort_by_key(|(_, runs)| runs.last().map(|run| std::cmp::Reverse(run.ended)));
    latest.truncate(USERS_MAX);
    let users: BTreeMap<_, _> = latest.into_iter().collect();
    let small = BTreeMap::from([
        ("at".to_owned(), said(remembered.at)),
        ("queues".to_owned(), json!(remembered.queues).to_string()),
        ("users".to_owned(), json!(users).to_string()),
    ]);
    let is_idle = remembered.queues.is_empty() && users.is_empty();
    let small = (!is_idle).then(|| Note { name: SMALL.into(), pool: None, data: small });
    let pools = remembered.pools.iter().map(|(pool, past)| Note {
        name: format!("muster-demand-{pool}").into(),
        pool: Some(pool.clone()),
        data: demand(past),
    });
    small.into_iter().chain(pools).collect()
}

/// Who came, a line each: milliseconds after the one before, and thousandths of a node.
///
/// Up to when is the last of them: nothing is written where nobody came, and who is found later than that is news.
fn demand(past: &PastDemand) -> BTreeMap<String, String> {
    let (mut before, mut lines) = (past.since, String::new());
    for arrival in &past.arrivals {
        let passed = arrival.at.since(before).0;
        lines.push_str(&format!("{passed} {}\n", arrival.nodes_milli));
        before = before.max(arrival.at);
    }
    BTreeMap::from([
        ("since".to_owned(), said(past.since)),
        ("until".to_owned(), said(before)),
        ("arrivals".to_owned(), lines),
    ])
}

/// What was written down. What cannot be understood is told and done without.
fn read(notes: &[ConfigMap]) -> Remembered {
    let mut remembered = Remembered::default();
    for note in notes {
        let data = note.data.clone().unwrap_or_default();
        let understood = match note.labels().get(POOL) {
            Some(pool) => read_demand(&data).map(|past| {
                remembered.pools.insert(pool.as_str().into(), past);
            }),
            None => read_small(&data, &mut remembered),
        };
        if let Err(why) = understood {
            tracing::warn!(note = note.name_any(), why, "what was learnt before is not understood");
        }
    }
    remembered
}

fn read_small(data: &BTreeMap<String, String>, into: &mut Remembered) -> Result<(), String> {
    let of = |name: &str| data.get(name).ok_or_else(|| format!("{name} is missing"));
    let at = instant(of("at")?).map_err(|why| format!("at: {why}"))?;
    let queues = serde_json::from_str(of("queues")?).map_err(|why| format!("queues: {why}"))?;
    let users = serde_json::from_str(of("users")?).map_err(|why| format!("users: {why}"))?;
    (into.at, into.queues, into.users) = (at, queues, users);
    Ok(())
}

fn read_demand(data: &BTreeMap<String, String>) -> Result<PastDemand, String> {
    let of = |name: &str| data.get(name).ok_or_else(|| format!("{name} is missing"));
    let at = |name: &str| instant(of(name)?).map_err(|why| format!("{name}: {why}"));
    let (since, until) = (at("since")?, at("until")?);
    let mut arrivals = Vec::new();
    let mut last = since;
    for (number, line) in of("arrivals")?.lines().enumerate() {
        let (passed, nodes) = line
            .split_once(' ')
            .and_then(|(passed, nodes)| Some((passed.parse().ok()?, nodes.parse().ok()?)))
            .ok_or_else(|| format!("arrivals: line {} is not two numbers", number + 1))?;
        last += Span(passed);
        arrivals.push(Arrival { at: last, nodes_milli: nodes });
    }
    Ok(PastDemand { since, until, arrivals })
}

/// The object of a note.
fn written(note: &Note, owner: Option<&Value>) -> Value {
    let mut labels = json!({ABOUT: if note.pool.is_some() { "demand" } else { "all" }});
    if let Some(pool) = &note.pool {
        labels[POOL] = json!(pool);
    }
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": note.name, "labels": labels, "ownerReferences": owner},
        "data": note.data,
    })
}

fn said(at: Time) -> String {
    Timestamp::from_millisecond(at.0).map(|at| at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use muster_core::history::Run;
    use muster_core::remembered::PastUse;

    use crate::recover::learned::*;

    fn at(secs: i64) -> Time {
        Time(1_700_000_000_000 + secs * 1_000)
    }

    fn remembered() -> Remembered {
        let run = Run { ended: at(50), lasted: Span::secs(40), estimate: None, members: 2 };
        let used = PastUse { gpu_milli: 1_500, amounts: [("cpu".into(), 9)].into() };
        let arrival = |secs, nodes_milli| Arrival { at: at(secs), nodes_milli };
        let arrivals = vec![arrival(10, 8_000), arrival(10, 125), arrival(70, 0)];
        Remembered {
            at: at(100),
            queues: [("research".into(), used)].into(),
            users: [("ann".into(), vec![run])].into(),
            pools: [("gpu".into(), PastDemand { since: at(0), until: at(70), arrivals })].into(),
        }
    }

    fn objects(remembered: &Remembered) -> Vec<ConfigMap> {
        let all = notes(remembered);
        all.iter().map(|note| serde_json::from_value(written(note, None)).expect("good")).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = objects(&remembered());
        assert_eq!(all.len(), 2);
        assert_eq!(read(&all), remembered());
    }

    #[test]
    fn what_was_asked_of_a_pool_is_plain_text() {
        let all = objects(&remembered());
        let pool = all.iter().find(|note| note.name_any() == "muster-demand-gpu").expect("a note");
        let data = pool.data.as_ref().expect("data");
        assert_eq!(data["since"], "2023-11-14T22:13:20Z");
        assert_eq!(data["until"], "2023-11-14T22:14:30Z");
        assert_eq!(data["arrivals"], "10000 8000\n0 125\n60000 0\n");
    }

    #[test]
    fn nothing_is_written_of_a_pool_that_nobody_came_to_however_long() {
        let mut later = remembered();
        let before = notes(&later);
        (later.at, later.pools.get_mut("gpu").expect("a pool").until) = (at(900), at(900));
        let after = notes(&later);
        assert_eq!(before[1].data, after[1].data);
        assert_ne!(before[0].data, after[0].data, "what queues have used fades");
    }

    #[test]
    fn what_is_not_understood_is_done_without() {
        for (note, key, value, left) in [
            (0, "queues", "{", (0, 0, 1)),
            (0, "users", "[1]", (0, 0, 1)),
            (0, "at", "yesterday", (0, 0, 1)),
            (1, "arrivals", "10 x", (1, 1, 0)),
            (1, "arrivals", "-10 5", (1, 1, 0)),
            (1, "since", "", (1, 1, 0)),
        ] {
            let mut all = objects(&remembered());
            all[note].data.as_mut().expect("data").insert(key.to_owned(), value.to_owned());
            let read = read(&all);
            let found = (read.queues.len(), read.users.len(), read.pools.len());
            assert_eq!(found, left, "{key}: {value}");
        }
    }
}
