//! Histories that break a promise, with the finding of each, beside histories that only look so.

use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::super::audit::Audit;
use super::super::gang_membership::{GANG, LEAST};
use super::super::suspected::{LATE, Moment};
use super::super::watch::Kind::{self, Gang, Job, Node, NodeClaim, Order, Pod, Pool, Queue};

/// When a history begins.
const BEGIN: &str = "2026-01-01T00:00:00Z";

/// A sequence of observed changes.
struct History {
    audit: Audit,
    now: Moment,
}

impl History {
    /// Starts with two nodes of eight GPUs.
    fn new() -> Self {
        let now = Moment { tick: Instant::now(), stamp: BEGIN.parse().expect("a time") };
        let empty = Self { audit: Audit::default(), now };
        empty.see(Node, node("n0", 8)).see(Node, node("n1", 8))
    }

    fn see(self, kind: Kind, object: Value) -> Self {
        self.put(kind, object, true)
    }

    fn gone(self, kind: Kind, object: Value) -> Self {
        self.put(kind, object, false)
    }

    fn put(mut self, kind: Kind, object: Value, is_there: bool) -> Self {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        self.audit.see(kind, object, is_there, self.now);
        self
    }

    fn later(mut self, seconds: u64) -> Self {
        let long = Duration::from_secs(seconds);
        self.now = Moment { tick: self.now.tick + long, stamp: self.now.stamp + long };
        self
    }
}

/// Asserts that the findings of a history, after every suspicion is settled, contain these texts in order.
#[track_caller]
fn check(history: History, known: &[&str]) {
    let mut history = history.later(LATE.as_secs() + 1);
    history.audit.check(history.now);
    assert!(history.audit.is_settled());
    let found = history.audit.findings();
    let is_it = |(one, words): (&String, &&str)| one.contains(words);
    assert!(found.len() == known.len() && found.iter().zip(known).all(is_it), "{found:#?}");
}

fn node(name: &str, gpus: u32) -> Value {
    json!({
        "metadata": {"name": name},
        "status": {
            "allocatable": {"nvidia.com/gpu": gpus.to_string(), "cpu": "64", "pods": "3"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEGIN}],
        },
    })
}

/// An unbound pod of four GPUs.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {
            "schedulerName": "muster",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        },
    })
}

/// The same with this field as well.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let mut at = &mut object;
    for part in path.split('.') {
        at = &mut at[part];
    }
    *at = value;
    object
}

fn on(node: &str, pod: Value) -> Value {
    with(pod, "spec.nodeName", json!(node))
}

fn over(pod: Value) -> Value {
    with(pod, "status.phase", json!("Succeeded"))
}

fn leaving(object: Value) -> Value {
    with(object, "metadata.deletionTimestamp", json!(BEGIN))
}

/// A member of the gang `pair`, by the observer's own label.
fn half(name: &str) -> Value {
    let pod = with(pod(name), "metadata.labels", json!({GANG: "pair"}));
    with(pod, "metadata.annotations", json!({LEAST: "2"}))
}

/// A pod of a Job or a Gang.
fn made(name: &str, kind: &str, owner: &str, uid: &str) -> Value {
    let owner =
        json!({"apiVersion": "v1", "kind": kind, "name": owner, "uid": uid, "controller": true});
    with(pod(name), "metadata.ownerReferences", json!([owner]))
}

#[test]
fn partly_bound_gang_is_found_however_it_ends() {
    let begun = || History::new().see(Pod, half("a")).see(Pod, half("b"));
    let one = || begun().see(Pod, on("n0", half("a")));
    check(one().later(9).see(Pod, on("n1", half("b"))), &[]);
    check(one().later(8), &["pair was bound in part for 12s, 1 of 2 now"]);
    let late = one().later(11).see(Pod, on("n1", half("b")));
    check(late, &["pair was bound in part for 11s, 2 of 2 now"]);
    let gone = one().later(11).gone(Pod, on("n0", half("a")));
    check(gone, &["pair was bound in part for 11s, 0 of 2 now"]);
}

#[test]
fn gang_is_recognised_without_the_observers_label() {
    let in_part = &["was bound in part for 11s"];
    let one_of = |pod: &dyn Fn(&str) -> Value, known: History, findings: &[&str]| {
        let history = known.see(Pod, pod("a")).see(Pod, pod("b")).see(Pod, on("n0", pod("a")));
        check(history.later(7), findings);
    };
    // By annotations of its pods.
    let marks = json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
    let says = |name: &str| with(pod(name), "metadata.annotations", marks.clone());
    one_of(&says, History::new(), in_part);
    let others = |name: &str| with(says(name), "spec.schedulerName", json!("another"));
    one_of(&others, History::new(), &[]);
    // By its Gang.
    let gang = |min: u32| json!({"metadata": {"name": "pair", "namespace": "default"}, "spec": {"roles": [{"name": "worker", "min": min}]}});
    let member = |name: &str| with(pod(name), "metadata.labels", json!({"muster.sh/gang": "pair"}));
    one_of(&member, History::new().see(Gang, gang(2)), in_part);
    one_of(&member, History::new().see(Gang, gang(1)), &[]);
    // By its Job, if that is Indexed and has no controller.
    let job = |mode: &str| json!({"metadata": {"name": "train", "namespace": "default"}, "spec": {"parallelism": 2, "completions": 2, "completionMode": mode}});
    let worker = |name: &str| made(name, "Job", "train", "1");
    one_of(&worker, History::new().see(Job, job("Indexed")), in_part);
    one_of(&worker, History::new().see(Job, job("NonIndexed")), &[]);
    let owner = json!([{"apiVersion": "v1", "kind": "JobSet", "name": "train", "uid": "1", "controller": true}]);
    let of_set = with(job("Indexed"), "metadata.ownerReferences", owner);
    one_of(&worker, History::new().see(Job, of_set), &[]);
}

#[test]
fn whole_gang_that_loses_a_member_is_found() {
    let whole = || History::new().see(Pod, on("n0", half("a"))).see(Pod, on("n1", half("b")));
    check(whole().see(Pod, leaving(on("n1", half("b")))).later(8), &["pair was left in part"]);
    let both =
        whole().see(Pod, leaving(on("n1", half("b")))).see(Pod, leaving(on("n0", half("a"))));
    check(both.later(8), &[]);
    let done = whole().see(Pod, over(on("n0", half("a")))).see(Pod, over(on("n1", half("b"))));
    check(done.gone(Pod, half("a")).later(8), &[]);
}

#[test]
fn gates_removed_in_part_are_found() {
    let gated =
        |name: &str| with(half(name), "spec.schedulingGates", json!([{"name": "muster.sh/gang"}]));
    let history = || History::new().see(Pod, gated("a")).see(Pod, gated("b")).see(Pod, half("a"));
    check(history().later(8), &["pair was ungated in part"]);
    check(history().see(Pod, half("b")).later(8), &[]);
}

#[test]
fn binding_to_an_unready_node_is_found() {
    let unready = |name: &str| with(node(name, 8), "status.conditions", json!([]));
    let ready_at = |since: &str| {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
        with(node("n0", 8), "status.conditions", ready)
    };
    let put = on("n0", pod("a"));
    check(History::new().see(Pod, put.clone()), &[]);
    let never = History::new().later(1).see(Node, unready("n9")).see(Pod, on("n9", pod("a")));
    check(never, &["default/a was bound to n9 at 2026-01-01T00:00:01Z, which was not ready"]);
    let nowhere = ["which was not there", "which has nothing"];
    check(History::new().see(Pod, on("n9", pod("a"))), &nowhere);
    // It was ready soon after; or had been all the time, and the event came late.
    let too_early = || History::new().see(Node, unready("n0")).later(10).see(Pod, put.clone());
    let soon = too_early().see(Node, ready_at("2026-01-01T00:00:11Z"));
    check(soon, &["which was ready only since 2026-01-01T00:00:11Z"]);
    check(too_early().see(Node, ready_at("2026-01-01T00:00:10Z")), &[]);
    // It was ready until just now: the controller could not know.
    check(History::new().see(Node, unready("n0")).later(3).see(Pod, put.clone()), &[]);
    check(too_early(), &["which was not ready"]);
}

#[test]
fn overcommitted_node_is_found() {
    let full = || History::new().see(Pod, on("n0", pod("a"))).see(Pod, on("n0", pod("b")));
    check(full(), &[]);
    let third = || on("n0", pod("c"));
    let gpus = "n0 has 8000 thousandths of nvidia.com/gpu and 12000 are taken, by default/c last";
    check(full().see(Pod, third()), &[gpus]);
    check(full().see(Pod, over(on("n0", pod("a")))).see(Pod, third()), &[]);
    // The event with the GPUs of the node comes late.
    check(full().see(Pod, third()).see(Node, node("n0", 12)), &[]);
    // The number of pods is limited, whatever they request.
    let small = |name: &str| on("n0", with(pod(name), "spec.containers", json!([])));
    let three = || History::new().see(Pod, small("a")).see(Pod, small("b")).see(Pod, small("c"));
    check(three(), &[]);
    check(three().see(Pod, small("d")), &["3000 thousandths of pods and 4000 are taken"]);
}

#[test]
fn pod_requests_are_summed_as_kubernetes_does() {
    let cpu = |amount: u32| json!({"requests": {"cpu": amount.to_string()}});
    let one = |amount: u32| json!([{"name": "main", "resources": cpu(amount)}]);
    let plain = |amount: u32| with(pod("a"), "spec.containers", one(amount));
    let taken = |pod: Value, is_too_much: bool| {
        let known: &[&str] = if is_too_much { &["n0 has 64000 thousandths of cpu"] } else { &[] };
        check(History::new().see(Pod, on("n0", pod)), known);
    };
    taken(plain(64), false);
    taken(plain(65), true);
    // An init container runs before the others, not beside them.
    let init = |amount: u32| json!([{"name": "init", "resources": cpu(amount)}]);
    taken(with(plain(40), "spec.initContainers", init(64)), false);
    taken(with(plain(40), "spec.initContainers", init(65)), true);
    // A sidecar runs beside both.
    let sidecar = json!({"name": "side", "restartPolicy": "Always", "resources": cpu(30)});
    let beside = |first: u32| json!([sidecar, {"name": "init", "resources": cpu(first)}]);
    taken(with(plain(34), "spec.initContainers", beside(34)), false);
    taken(with(plain(34), "spec.initContainers", beside(35)), true);
    taken(with(plain(35), "spec.initContainers", beside(34)), true);
    taken(with(plain(60), "spec.overhead", json!({"cpu": "5"})), true);
    taken(with(plain(5), "spec.resources", cpu(65)), true);
    taken(with(plain(5), "spec.resources", cpu(60)), false);
}

/// A pool of nodes with eight GPUs for 98 an hour.
fn pool(limits: &Value) -> Value {
    let offering = json!({"instanceType": "gpu8", "zone": "a", "capacityType": "spot", "price": 98, "gpu": {"count": 8}});
    json!({"metadata": {"name": "gpu"}, "spec": {"limits": limits, "offerings": [offering], "idleAfter": "10s"}})
}

fn claim(name: &str) -> Value {
    let wants = [
        ("node.kubernetes.io/instance-type", "gpu8"),
        ("topology.kubernetes.io/zone", "a"),
        ("karpenter.sh/capacity-type", "spot"),
    ];
    let wants = wants.map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}));
    json!({
        "metadata": {"name": name, "labels": {"muster.sh/pool": "gpu"}},
        "spec": {"requirements": wants},
    })
}

#[test]
fn pool_over_its_limits_is_found() {
    let two = |limits: Value| {
        History::new()
            .see(Pool, pool(&limits))
            .see(NodeClaim, claim("c0"))
            .see(NodeClaim, claim("c1"))
    };
    check(two(json!({"nodes": 2, "gpus": 16, "hourlySpend": 196})), &[]);
    check(two(json!({})), &[]);
    let nodes = "the pool gpu has 2 nodes of 1 with the claim c1";
    check(two(json!({"nodes": 1})), &[nodes]);
    check(two(json!({"gpus": 15})), &["the pool gpu has 16 GPUs of 15"]);
    check(two(json!({"hourlySpend": "195.5"})), &["the pool gpu has 196 an hour of 195.5"]);
    // An instant over the limit is a violation; a claim that replaces a leaving one is not.
    check(two(json!({"nodes": 1})).gone(NodeClaim, claim("c1")), &[nodes]);
    let third = two(json!({"nodes": 2})).see(NodeClaim, leaving(claim("c0")));
    check(third.see(NodeClaim, claim("c2")), &[]);
    // The event with a higher limit came late.
    check(two(json!({"nodes": 1})).see(Pool, pool(&json!({"nodes": 2}))), &[]);
}

#[test]
fn claim_without_an_order_or_pods_is_found() {
    let requested = || History::new().see(Pool, pool(&json!({}))).see(NodeClaim, claim("c0"));
    check(requested().later(60), &[]);
    check(requested().later(70), &["the claim c0 is unused"]);
    let order = json!({"metadata": {"name": "o"}, "spec": {"claims": [{"name": "c0"}]}});
    check(requested().see(Order, order).later(70), &[]);
    let used = with(claim("c0"), "status.nodeName", json!("n0"));
    check(requested().see(NodeClaim, used).see(Pod, on("n0", pod("a"))).later(70), &[]);
    check(
        requested().see(Pool, with(pool(&json!({})), "spec.warm", json!({"nodes": 1}))).later(70),
        &[],
    );
    check(requested().see(NodeClaim, leaving(claim("c0"))).later(70), &[]);
}

#[test]
fn queue_over_its_limit_is_found() {
    let queue = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let limit = |gpus: u32| queue("team", json!({"limit": {"nvidia.com/gpu": gpus}}));
    let known = |gpus: u32| {
        let below = queue("below", json!({"parent": "team"}));
        History::new().see(Queue, limit(gpus)).see(Queue, below)
    };
    let of = |name: &str, queue: &str| {
        with(pod(name), "metadata.labels", json!({"muster.sh/queue": queue}))
    };
    let both = |history: History, queue: &str| {
        history.see(Pod, on("n0", of("a", "team"))).see(Pod, on("n1", of("b", queue)))
    };
    let over_it = "the queue team has 8000 of 7000 thousandths of nvidia.com/gpu, with default/b";
    check(both(known(8), "team"), &[]);
    check(both(known(7), "team"), &[over_it]);
    check(both(known(7), "below"), &[over_it]);
    check(both(known(7), "other"), &[]);
    // Finished pods do not count; and the event with a higher limit may come late.
    let done = known(7).see(Pod, over(on("n0", of("a", "team"))));
    check(done.see(Pod, on("n1", of("b", "team"))), &[]);
    check(both(known(7), "team").see(Queue, limit(8)), &[]);
    // GPUs of every vendor count together.
    let amd = json!([{"name": "main", "resources": {"limits": {"amd.com/gpu": "4"}}}]);
    let other = with(on("n1", of("b", "team")), "spec.containers", amd);
    let node = with(node("n1", 8), "status.allocatable", json!({"amd.com/gpu": "8", "pods": "3"}));
    let mixed = known(7).see(Node, node).see(Pod, on("n0", of("a", "team"))).see(Pod, other);
    check(mixed, &[over_it]);
    // The Gang names the queue for its pods.
    let gang = json!({"metadata": {"name": "g", "namespace": "default"}, "spec": {"queue": "team", "roles": [{"name": "w", "min": 1}]}});
    let member = |name: &str| with(pod(name), "metadata.labels", json!({"muster.sh/gang": "g"}));
    let history = known(7).see(Gang, gang).see(Pod, on("n0", member("a")));
    check(history.see(Pod, on("n1", member("b"))), &[over_it]);
}

#[test]
fn binding_after_deletion_of_its_gang_is_found() {
    for kind in ["Job", "Gang"] {
        let (old, new) = (made("old", kind, "train", "1"), made("new", kind, "train", "2"));
        let begun = || History::new().see(Pod, on("n0", old.clone()));
        let beside = begun().see(Pod, leaving(on("n0", old.clone())));
        let found = "default/new was bound while default/old was there";
        check(beside.see(Pod, on("n1", new.clone())), &[found]);
        check(begun().gone(Pod, old.clone()).see(Pod, on("n1", new.clone())), &[]);
        check(begun().see(Pod, over(on("n0", old.clone()))).see(Pod, on("n1", new.clone())), &[]);
        check(begun().see(Pod, on("n1", made("b", kind, "train", "1"))), &[]);
        check(begun().see(Pod, on("n1", made("b", kind, "other", "2"))), &[]);
    }
    let gang =
        json!({"metadata": {"name": "train", "namespace": "default", "uid": "1"}, "spec": {}});
    let deleted = || History::new().see(Gang, gang.clone()).gone(Gang, gang.clone());
    let late = on("n0", made("a", "Gang", "train", "1"));
    check(deleted().later(3).see(Pod, late.clone()), &[]);
    check(
        deleted().later(4).see(Pod, late),
        &["default/a was bound 4s after its Gang was deleted"],
    );
}

/// An evicted pod.
fn evicted(pod: Value) -> Value {
    let reported = json!([{"type": "DisruptionTarget", "status": "True"}]);
    leaving(with(pod, "status.conditions", reported))
}

#[test]
fn gang_below_its_minimum_beside_free_capacity_is_found() {
    let whole = || History::new().see(Pod, on("n0", half("a"))).see(Pod, on("n1", half("b")));
    let again = || whole().gone(Pod, on("n1", half("b"))).see(Pod, half("b2"));
    let in_part = "pair was left in part";
    let short = "pair runs with 1 of 2 for 31s, though default/b2 waits and n0 has room";
    check(again().later(5), &[]);
    check(again().later(27), &[in_part, short]);
    // No member waits, or no node has room.
    check(whole().gone(Pod, on("n1", half("b"))).later(27), &[in_part]);
    let full = |history: History| {
        let large = json!([{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]);
        let other = with(on("n1", pod("other")), "spec.containers", large);
        history.see(Pod, other).see(Pod, on("n0", pod("another")))
    };
    check(full(again()).later(27), &[in_part]);
    // A gang that never was whole is bound in part, which is another finding.
    let begun = History::new().see(Pod, on("n0", half("a"))).see(Pod, half("b"));
    check(begun.later(27), &["pair was bound in part"]);
}

#[test]
fn eviction_while_all_waiting_pods_fit_is_found() {
    let member = |name: &str| made(name, "Job", "one", "1");
    let runs = || History::new().see(Pod, on("n0", member("a"))).see(Pod, on("n1", member("b")));
    let waits = || runs().see(Pod, pod("rival"));
    let evict = |history: History| history.see(Pod, evicted(on("n1", member("b"))));
    check(evict(waits().later(4)), &["default/b was evicted though there was room for all"]);
    // There was room for a moment only, or no pod waits, or there is no room, or the whole gang is evicted.
    check(evict(waits().later(2)), &[]);
    check(evict(runs().later(4)), &[]);
    let crowded = waits().see(Pod, on("n0", pod("c"))).see(Pod, on("n1", pod("d")));
    check(evict(crowded.later(4)), &[]);
    check(evict(waits().later(4)).see(Pod, evicted(on("n0", member("a")))), &[]);
}

#[test]
fn eviction_beside_an_empty_seat_is_found() {
    let gang = |seats: u32| {
        let placement = json!([{"role": "w", "node": "n0", "members": seats}]);
        json!({"metadata": {"name": "one.job", "namespace": "default"}, "spec": {},
            "status": {"placement": placement}})
    };
    let member = |name: &str| made(name, "Job", "one", "1");
    let runs = |seats: u32| {
        let history = History::new().see(Gang, gang(seats));
        history.see(Pod, on("n0", member("a"))).see(Pod, on("n1", member("b"))).later(4)
    };
    let evict = |history: History| history.see(Pod, evicted(on("n1", member("b"))));
    check(evict(runs(3)), &["default/b was evicted though its gang had an empty seat"]);
    check(evict(runs(2)), &[]);
    check(evict(runs(3).see(Gang, gang(2))), &[]);
}
