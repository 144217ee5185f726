//! Stores what the World has learned and no object shows, in ConfigMaps of Muster's own namespace: how much queues have used, how
//! long users' gangs really ran, how much was demanded of pools.
//!
//! Without it every new leader would compute fair shares from its own start, and forecast without the weeks before. It is written
//! every ten seconds where it has changed; what a leader has not written when it is killed is lost, and is not worth more.
//! Not here: anything that decisions depend on for correctness. That is stored before it is acted on.

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

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::host::Host;

/// The time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// The label of the ConfigMaps, with the content of each.
const CONTENT: &str = "muster.sh/learned-state";
/// The ConfigMap with everything that does not grow with time.
const SUMMARY: &str = "muster-memory";
/// The label with the pool whose demand a ConfigMap has.
const POOL: &str = "muster.sh/pool";
/// Users that are stored. With ten runs of forty bytes each they take half of what an object may have.
const USERS_MAX: usize = 1_000;

/// What was loaded, and what is stored.
#[derive(Debug, Default)]
pub(crate) struct LearnedState {
    /// What the previous leader stored, until it is applied to the World.
    loaded: Option<Remembered>,
    written: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    written_at: Option<Instant>,
}

/// One ConfigMap.
struct LearnedObject {
    name: Arc<str>,
    pool: Option<Arc<str>>,
    data: BTreeMap<String, String>,
}

impl Host {
    /// Reads what the previous leader stored. Without the right to read it, Muster starts with nothing.
    pub(crate) async fn load_learned_state(&mut self) {
        let config_maps = self.config_maps();
        let with_label = ListParams::default().labels(CONTENT);
        match self.writer.request(|| config_maps.list(&with_label)).await {
            Ok(found) => {
                for object in &found.items {
                    let data = object.data.clone().unwrap_or_default();
                    self.learned.written.insert(object.name_any().into(), data);
                }
                self.learned.loaded = Some(read(&found.items));
            }
            Err(ApiError::NotLeader) => {}
            Err(error) => tracing::warn!(%error, "the learned state cannot be read"),
        }
    }

    /// Applies what the previous leader stored to the World.
    pub(crate) fn recover_learned_state(&mut self) {
        if let Some(loaded) = self.learned.loaded.take() {
            self.apply_event(&Event::Remembered(Box::new(loaded)));
        }
    }

    /// Writes what the World has learned, where that has changed.
    pub(crate) fn write_learned_state(&mut self) {
        if self.learned.written_at.is_some_and(|at| at.elapsed() < WRITE_INTERVAL) {
            return;
        }
        self.learned.written_at = Some(Instant::now());
        for object in learned_objects(&self.world.remembered()) {
            if self.learned.written.get(&object.name) != Some(&object.data) {
                self.write_learned_object(object);
            }
        }
    }

    fn write_learned_object(&mut self, object: LearnedObject) {
        let write_key: Arc<str> = format!("memory {}", object.name).into();
        if self.ordered_writes.is_busy(&write_key) {
            return;
        }
        let owner = object.pool.as_ref().and_then(|pool| self.object_named(KindRole::Pool, pool));
        let owner = owner.and_then(|pool| {
            let uid = pool.metadata.uid.clone()?;
            Some(json!([{"apiVersion": "muster.sh/v1alpha1", "kind": "Pool", "name": pool.name_any(), "uid": uid}]))
        });
        let manifest = config_map(&object, owner.as_ref());
        self.learned.written.insert(object.name.clone(), object.data);
        let (writer, config_maps, name) = (self.writer.clone(), self.config_maps(), object.name);
        self.ordered_writes.write(&write_key, async move {
            writer.when_bindings_are_done().await;
            let mut written = writer.patch(&config_maps, &name, &manifest).await.map(drop);
            if let Err(ApiError::NotFound) = written
                && let Ok(new) = serde_json::from_value::<ConfigMap>(manifest)
            {
                written = writer.create(&config_maps, &new).await.map(drop);
            }
            match written {
                Ok(()) | Err(ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(name = &*name, %error, "the learned state was not written");
                }
            }
        });
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.writer.client.clone(), &self.config.namespace)
    }
}

/// The learned state as objects. A pool's data changes only with its arrivals.
fn learned_objects(remembered: &Remembered) -> Vec<LearnedObject> {
    let mut latest: Vec<_> = remembered.users.iter().collect();
    latest.sort_by_key(|(_, runs)| runs.last().map(|run| std::cmp::Reverse(run.ended)));
    latest.truncate(USERS_MAX);
    let users: BTreeMap<_, _> = latest.into_iter().collect();
    let summary = BTreeMap::from([
        ("at".to_owned(), timestamp(remembered.at)),
        ("queues".to_owned(), json!(remembered.queues).to_string()),
        ("users".to_owned(), json!(users).to_string()),
    ]);
    let is_idle = remembered.queues.is_empty() && users.is_empty();
    let summary =
        (!is_idle).then(|| LearnedObject { name: SUMMARY.into(), pool: None, data: summary });
    let pools = remembered.pools.iter().map(|(pool, past)| LearnedObject {
        name: format!("muster-demand-{pool}").into(),
        pool: Some(pool.clone()),
        data: demand(past),
    });
    summary.into_iter().chain(pools).collect()
}

/// Arrivals, one line each: milliseconds since the previous one, and thousandths of a node.
///
/// `until` is the time of the last arrival: nothing is written while none comes, and a gang found later than that is a new
/// arrival.
fn demand(past: &PastDemand) -> BTreeMap<String, String> {
    let (mut before, mut lines) = (past.since, String::new());
    for arrival in &past.arrivals {
        let passed = arrival.at.since(before).0;
        lines.push_str(&format!("{passed} {}\n", arrival.nodes_milli));
        before = before.max(arrival.at);
    }
    BTreeMap::from([
        ("since".to_owned(), timestamp(past.since)),
        ("until".to_owned(), timestamp(before)),
        ("arrivals".to_owned(), lines),
    ])
}

/// Reads the objects. Invalid ones are logged and ignored.
fn read(config_maps: &[ConfigMap]) -> Remembered {
    let mut remembered = Remembered::default();
    for object in config_maps {
        let data = object.data.clone().unwrap_or_default();
        let valid = match object.labels().get(POOL) {
            Some(pool) => read_demand(&data).map(|past| {
                remembered.pools.insert(pool.as_str().into(), past);
            }),
            None => read_summary(&data, &mut remembered),
        };
        if let Err(why) = valid {
            tracing::warn!(
                object = object.name_any(),
                why,
                "a learned state is invalid and ignored"
            );
        }
    }
    remembered
}

fn read_summary(data: &BTreeMap<String, String>, into: &mut Remembered) -> Result<(), String> {
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

/// The manifest of a ConfigMap.
fn config_map(object: &LearnedObject, owner: Option<&Value>) -> Value {
    let mut labels = json!({CONTENT: if object.pool.is_some() { "demand" } else { "all" }});
    if let Some(pool) = &object.pool {
        labels[POOL] = json!(pool);
    }
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object.name, "labels": labels, "ownerReferences": owner},
        "data": object.data,
    })
}

fn timestamp(at: Time) -> String {
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
        let all = learned_objects(remembered);
        all.iter()
            .map(|object| serde_json::from_value(config_map(object, None)).expect("good"))
            .collect()
    }

    #[test]
    fn learned_state_is_read_back_as_written() {
        let all = objects(&remembered());
        assert_eq!(all.len(), 2);
        assert_eq!(read(&all), remembered());
    }

    #[test]
    fn demand_of_a_pool_is_plain_text() {
        let all = objects(&remembered());
        let pool = all
            .iter()
            .find(|object| object.name_any() == "muster-demand-gpu")
            .expect("a ConfigMap");
        let data = pool.data.as_ref().expect("data");
        assert_eq!(data["since"], "2023-11-14T22:13:20Z");
        assert_eq!(data["until"], "2023-11-14T22:14:30Z");
        assert_eq!(data["arrivals"], "10000 8000\n0 125\n60000 0\n");
    }

    #[test]
    fn demand_of_a_pool_without_arrivals_is_not_rewritten() {
        let mut later = remembered();
        let before = learned_objects(&later);
        (later.at, later.pools.get_mut("gpu").expect("a pool").until) = (at(900), at(900));
        let after = learned_objects(&later);
        assert_eq!(before[1].data, after[1].data);
        assert_ne!(before[0].data, after[0].data, "usage decays");
    }

    #[test]
    fn invalid_learned_state_is_ignored() {
        for (object, key, value, left) in [
            (0, "queues", "{", (0, 0, 1)),
            (0, "users", "[1]", (0, 0, 1)),
            (0, "at", "yesterday", (0, 0, 1)),
            (1, "arrivals", "10 x", (1, 1, 0)),
            (1, "arrivals", "-10 5", (1, 1, 0)),
            (1, "since", "", (1, 1, 0)),
        ] {
            let mut all = objects(&remembered());
            all[object].data.as_mut().expect("data").insert(key.to_owned(), value.to_owned());
            let read = read(&all);
            let found = (read.queues.len(), read.users.len(), read.pools.len());
            assert_eq!(found, left, "{key}: {value}");
        }
    }
}
