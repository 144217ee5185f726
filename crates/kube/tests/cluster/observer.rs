//! An auditor: its own watch, its own books. It sees only what anybody could see, and says where a promise broke.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Node, NodeCondition, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use muster_core::quantity::Quantity as Exact;
use tokio::task::JoinSet;

use crate::owed::{self, Owed};

/// The longest that a gang may be bound in part, or have some of its gates: each is a single request, and the last follows
/// the first.
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Books {
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<String, Pod>,
    /// Pods that have Muster's gate, or had it.
    gated: BTreeSet<String>,
    /// Since when a gang is bound in part, or has lost its gates in part.
    partial: BTreeMap<Stage, Instant>,
    /// Gangs that have been whole once: members that are done do not make them partial.
    whole: BTreeSet<Stage>,
    broken: Vec<String>,
    /// Pods put on nodes that were not known to be ready: the two come by different ways, so that is looked at again.
    doubtful: Vec<Doubt>,
    /// The longest that any gang was bound, or let go, in part.
    window: Duration,
    /// What claims are owed to.
    owed: Owed,
    /// When somebody was first seen on a node.
    first_bound: Option<Instant>,
    /// Pods of each gang that were told to make way.
    sent_away: BTreeMap<String, BTreeSet<String>>,
}

/// A gang, and what of it is counted.
type Stage = (String, &'static str);

struct Doubt {
    pod: String,
    node: String,
    at: Timestamp,
    since: Instant,
}

/// How long news of a node may take longer than news of a pod.
const LATE: Duration = Duration::from_secs(3);

/// Watches everything until it is asked.
pub(crate) struct Observer {
    books: Arc<Mutex<Books>>,
    _tasks: JoinSet<()>,
}

/// The label by which tests tell the observer which pods are one gang, and the annotation that says how many are the
/// least it may run with.
pub(crate) const GANG: &str = "observer/gang";
pub(crate) const LEAST: &str = "observer/least";
/// Members that are bound and not told to go: who was whole goes on with its least, or not at all.
const LEFT: &str = "left";
/// What holds pods of other schedulers until there is room for all of them.
const GATE: &str = "muster.sh/gang";

impl Observer {
    pub(crate) fn start(client: Client) -> Self {
        let books = Arc::new(Mutex::new(Books::default()));
        let mut tasks = JoinSet::new();
        let seen = books.clone();
        let pods: Api<Pod> = Api::all(client.clone());
        tasks.spawn(async move {
            let stream = watcher(pods, Config::default()).default_backoff();
            futures::pin_mut!(stream);
            while let Some(event) = stream.next().await {
                let mut books = seen.lock().expect("nobody panics with it");
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => books.pod(pod),
                    Ok(Event::Delete(pod)) => books.pod_gone(&pod),
                    _ => {}
                }
            }
        });
        let seen = books.clone();
        for kind in owed::kinds() {
            let (seen, plural) = (books.clone(), kind.plural.clone());
            let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            tasks.spawn(async move {
                let stream = watcher(objects, Config::default()).default_backoff();
                futures::pin_mut!(stream);
                while let Some(event) = stream.next().await {
                    let mut books = seen.lock().expect("nobody panics with it");
                    match event {
                        Ok(Event::Apply(one) | Event::InitApply(one)) => {
                            books.owed.see(&plural, one, true);
                        }
                        Ok(Event::Delete(one)) => books.owed.see(&plural, one, false),
                        _ => {}
                    }
                }
            });
        }
        let nodes: Api<Node> = Api::all(client);
        tasks.spawn(async move {
            let stream = watcher(nodes, Config::default()).default_backoff();
            futures::pin_mut!(stream);
            while let Some(event) = stream.next().await {
                let mut books = seen.lock().expect("nobody panics with it");
                match event {
                    Ok(Event::Apply(node) | Event::InitApply(node)) => books.node(node),
                    Ok(Event::Delete(node)) => books.node_gone(&node.name_any()),
                    _ => {}
                }
            }
        });
        Self { books, _tasks: tasks }
    }

    /// Everything that was not as promised.
    pub(crate) async fn findings(&self) -> Vec<String> {
        tokio::time::sleep(LATE + Duration::from_millis(100)).await;
        let mut books = self.books.lock().expect("nobody panics with it");
        books.look();
        books.broken.clone()
    }

    /// The longest that any gang was bound, or let go, in part.
    pub(crate) fn window(&self) -> Duration {
        self.books.lock().expect("nobody panics with it").window
    }

    /// When somebody was first seen on a node.
    pub(crate) fn first_bound(&self) -> Option<Instant> {
        self.books.lock().expect("nobody panics with it").first_bound
    }

    /// When the claim of a node was seen to be given back.
    pub(crate) fn returned(&self, node: &str) -> Option<Instant> {
        self.books.lock().expect("nobody panics with it").owed.returned(node)
    }

    /// How many pods of a gang were told to make way.
    pub(crate) fn sent_away(&self, gang: &str) -> usize {
        let books = self.books.lock().expect("nobody panics with it");
        books.sent_away.get(gang).map_or(0, BTreeSet::len)
    }
}

impl Books {
    fn pod(&mut self, pod: Pod) {
        let key = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        let was_bound = self.pods.get(&key).is_some_and(|pod| node_of(pod).is_some());
        let node = node_of(&pod).map(str::to_owned);
        if has_gate(&pod) {
            self.gated.insert(key.clone());
        }
        if is_sent_away(&pod) {
            let gang = pod.labels().get(GANG).cloned().unwrap_or_default();
            self.sent_away.entry(gang).or_default().extend(pod.uid());
        }
        self.pods.insert(key.clone(), pod);
        if let Some(node) = node.filter(|_| !was_bound) {
            self.bound(&key, &node);
        }
        self.look();
    }

    fn pod_gone(&mut self, pod: &Pod) {
        let key = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        self.pods.remove(&key);
        self.gated.remove(&key);
        self.look();
    }

    /// A node has changed. If it is not ready any more, who was put on it before is looked at while it is known how it
    /// was.
    fn node(&mut self, node: Node) {
        let name = node.name_any();
        let was_ready = self.nodes.get(&name).is_some_and(|node| ready_since(node).is_some());
        if was_ready && ready_since(&node).is_none() {
            self.settle_doubts(|doubt| doubt.node == name);
        }
        self.nodes.insert(name, node);
    }

    /// A node is no more: who was put on it is looked at while it is known how it was.
    fn node_gone(&mut self, name: &str) {
        self.settle_doubts(|doubt| doubt.node == name);
        self.nodes.remove(name);
    }

    /// Somebody has just been put on a node: it must be ready, and have room.
    fn bound(&mut self, key: &str, name: &str) {
        let (pod, node_name) = (key.to_owned(), name.to_owned());
        let (at, since) = (Timestamp::now(), Instant::now());
        self.first_bound.get_or_insert(since);
        self.doubtful.push(Doubt { pod, node: node_name, at, since });
        let Some(node) = self.nodes.get(name) else { return };
        let here = || self.pods.values().filter(|pod| node_of(pod) == Some(name) && !is_over(pod));
        let there = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let there = |what: &str| there.and_then(|all| all.get(what)).map_or(0, amount);
        for what in ["nvidia.com/gpu", "cpu", "memory", "pods"] {
            let taken: u64 = match what {
                "pods" => here().count() as u64 * 1_000,
                _ => here().map(|pod| asked(pod, what)).sum(),
            };
            let there = there(what);
            if taken > there {
                self.broken.push(format!(
                    "{name} has {there} thousandths of {what} and {taken} are taken, by {key} last"
                ));
            }
        }
    }

    /// Nodes were ready when somebody was put on them.
    fn settle_doubts(&mut self, is_due: impl Fn(&Doubt) -> bool) {
        let ready_since = |name: &str| ready_since(self.nodes.get(name)?);
        let (late, mut open): (Vec<Doubt>, Vec<Doubt>) =
            std::mem::take(&mut self.doubtful).into_iter().partition(is_due);
        for doubt in late {
            let ready = ready_since(&doubt.node);
            if ready.is_none_or(|since| since > doubt.at) {
                let Doubt { pod, node, at, .. } = doubt;
                let why = match ready {
                    Some(since) => format!("ready only since {since}"),
                    None if self.nodes.contains_key(&node) => "not ready".to_owned(),
                    None => "gone".to_owned(),
                };
                self.broken.push(format!("{pod} was bound to {node} at {at}, which was {why}"));
            }
        }
        self.doubtful.append(&mut open);
    }

    /// Every gang is bound whole, or not at all, or on its way between the two; and so with its gates.
    fn look(&mut self) {
        self.settle_doubts(|doubt| doubt.since.elapsed() > LATE);
        let live = self.pods.values().filter(|pod| !is_over(pod));
        let used: BTreeSet<&str> = live.filter_map(node_of).collect();
        let unowed = self.owed.look(&used);
        self.broken.extend(unowed);
        let mut counts: BTreeMap<Stage, (u32, u32)> = BTreeMap::new();
        let mut at_work: BTreeSet<&str> = BTreeSet::new();
        for (key, pod) in &self.pods {
            let Some(gang) = pod.labels().get(GANG) else { continue };
            if node_of(pod).is_some() && !is_over(pod) {
                at_work.insert(gang);
            }
            let least = pod.annotations().get(LEAST).and_then(|least| least.parse().ok());
            let lifted = self.gated.contains(key).then(|| ("let go", !has_gate(pod)));
            let bound = node_of(pod).is_some();
            let left = bound && pod.metadata.deletion_timestamp.is_none();
            for (stage, is_there) in lifted.into_iter().chain([("bound", bound), (LEFT, left)]) {
                let count = counts.entry((gang.clone(), stage)).or_insert((0, least.unwrap_or(1)));
                count.0 += u32::from(is_there);
            }
        }
        let now = Instant::now();
        for (stage, (count, least)) in counts {
            // When all of it is done, its pods go one by one with their nodes.
            let count = if stage.1 == LEFT && !at_work.contains(&*stage.0) { 0 } else { count };
            if count >= least {
                self.whole.insert(stage.clone());
                if let Some(since) = self.partial.remove(&stage) {
                    self.window = self.window.max(now - since);
                }
            } else if count == 0 {
                self.partial.remove(&stage);
                self.whole.remove(&stage);
            } else if self.whole.contains(&stage) == (stage.1 == LEFT) {
                let since = *self.partial.entry(stage.clone()).or_insert(now);
                if now - since > WINDOW {
                    let ((gang, what), long) = (&stage, now - since);
                    self.broken.push(format!("{gang} has {count} of {least} {what} for {long:?}"));
                    self.partial.insert(stage, now);
                }
            }
        }
    }
}

fn is_sent_away(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "DisruptionTarget" && one.status == "True")
}

fn has_gate(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.is_some_and(|gates| gates.iter().any(|gate| gate.name == GATE))
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Since when a node is ready. Servers tell it to the second.
pub(crate) fn ready_since(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = |one: &&NodeCondition| one.type_ == "Ready" && one.status == "True";
    Some(conditions?.iter().find(ready)?.last_transition_time.as_ref()?.0)
}

/// What the containers of a pod ask for, in thousandths: requests, or limits where there are none.
fn asked(pod: &Pod, what: &str) -> u64 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let one = |container: &Container| {
        let resources = container.resources.as_ref()?;
        let said = |all: &Option<BTreeMap<String, Quantity>>| all.as_ref()?.get(what).map(amount);
        said(&resources.requests).or_else(|| said(&resources.limits))
    };
    containers.filter_map(one).sum()
}

fn amount(quantity: &Quantity) -> u64 {
    quantity.0.parse::<Exact>().ok().and_then(Exact::ceil_milli).unwrap_or(0)
}
