//! Nodes, pools and queues from words.

use std::sync::Arc;

use muster_core::World;
use muster_core::constraint::{Effect, Labels, Taint};
use muster_core::id::ClaimId;
use muster_core::money::Money;
use muster_core::node::NodeSpec;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::proactive::{Buffer, Consolidate, ForecastSpec, Schedule, Timeouts};
use muster_core::queue::{Namespaces, NonPreemptible, QueueSpec};
use muster_core::resource::{CPU, MEMORY, NamedAmounts};
use muster_core::time::Span;
use muster_core::topology::{HOSTNAME, Levels};
use muster_testkit::build;

/// `a[1..3]` is a1, a2 and a3.
pub(super) fn expand(name: &str) -> Vec<String> {
    let Some((stem, rest)) = name.split_once('[') else { return vec![name.to_owned()] };
    let (from, to) = rest.trim_end_matches(']').split_once("..").expect("a range such as a[1..3]");
    let bound = |text: &str| text.parse::<u32>().expect("a number");
    (bound(from)..=bound(to)).map(|i| format!("{stem}{i}")).collect()
}

/// The label behind a short word: a level's name, or `hostname`.
pub(super) fn label(word: &str) -> Arc<str> {
    let levels = Levels::default();
    match levels.0.iter().find(|level| *level.name == *word) {
        Some(level) => level.label.clone(),
        None if word == "hostname" => HOSTNAME.into(),
        None => word.into(),
    }
}

pub(super) fn effect(name: &str) -> Effect {
    match name {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => panic!("no such effect: {name}"),
    }
}

/// `key=value:NoSchedule`, or `key:NoSchedule`.
fn taint(text: &str) -> Taint {
    let (mark, name) = text.split_once(':').expect("a taint such as k=v:NoSchedule");
    let (key, value) = mark.split_once('=').unwrap_or((mark, ""));
    Taint { key: key.into(), value: value.into(), effect: effect(name) }
}

pub(super) fn nodes(rest: &str) -> Vec<NodeSpec> {
    let (name, options) = rest.split_once(' ').unwrap_or((rest, ""));
    let node = |name: &String| {
        let mut spec = build::node(name, 0, &[]);
        describe(&mut spec, options);
        spec
    };
    expand(name).iter().map(node).collect()
}

/// The node a claim becomes, as its offering promises and with what the options say instead.
pub(super) fn node_of(world: &World, claim: ClaimId, options: &str) -> NodeSpec {
    let offering = &world.offering(world.claims()[&claim].offering).spec;
    let mut spec = NodeSpec {
        name: format!("{claim:?}").into(),
        labels: offering.labels.clone(),
        taints: offering.taints.clone(),
        allocatable: offering.allocatable.clone(),
        gpu: offering.gpu.clone(),
        gpus: offering.gpus,
        ready: true,
        claim: Some(claim),
        others: false,
    };
    describe(&mut spec, options);
    spec
}

fn describe(spec: &mut NodeSpec, options: &str) {
    for word in options.split_whitespace() {
        let (key, value) = word.split_once('=').expect("key=value");
        match key {
            "gpus" => {
                spec.gpus = value.parse().expect("a number");
                spec.gpu = spec.gpu.clone().or_else(|| Some(build::h100()));
            }
            "model" => spec.gpu.as_mut().expect("gpus= first").model = value.into(),
            "vendor" => spec.gpu.as_mut().expect("gpus= first").resource = value.into(),
            "gpumem" => spec.gpu.as_mut().expect("gpus= first").memory = gib(value),
            "taint" => spec.taints.push(taint(value)),
            "ready" => spec.ready = value == "yes",
            "others" => spec.others = value == "yes",
            _ if amount(&mut spec.allocatable, key, value) => {}
            _ => labelled(&mut spec.labels, key, value),
        }
    }
}

pub(super) fn pool(rest: &str) -> PoolSpec {
    let (head, offerings) = rest.split_once(" :").expect("offerings after a colon");
    let mut words = head.split_whitespace();
    let name = words.next().expect("a name");
    let mut spec = build::pool(name, offerings.split(';').map(offering).collect());
    for word in words {
        let (key, value) = word.split_once('=').expect("key=value");
        match key {
            "tier" => spec.tier = value.into(),
            "idle" => spec.idle_after = value.parse().expect("a time"),
            "nodes" => spec.limits.nodes = Some(value.parse().expect("a number")),
            "gpus" => spec.limits.gpus = Some(value.parse().expect("a number")),
            "warm" => spec.ahead.warm = value.parse().expect("a number"),
            "spare" => spec.ahead.spare = value.parse::<u32>().expect("percent") * 10,
            "stopped" => spec.ahead.stopped = value.parse().expect("a number"),
            "buffer" => {
                spec.ahead.buffer = Some(match value.strip_suffix('%') {
                    Some(percent) => {
                        Buffer::Permille(percent.parse::<u32>().expect("a number") * 10)
                    }
                    None => Buffer::Nodes(value.parse().expect("a number")),
                });
            }
            // Such as `0_8_*_*_1-5/Europe/Berlin/10h/16`.
            "schedule" => spec.ahead.schedules.push(schedule(value)),
            "forecast" => {
                let max_nodes = value.parse().ok();
                let only_tell = value == "only";
                spec.ahead.forecast =
                    Some(ForecastSpec { max_nodes, only_tell, ..ForecastSpec::default() });
            }
            "grow" => spec.grow = value == "yes",
            "expire" => spec.expire_after = Some(value.parse().expect("a time")),
            // `5m` for every stage, or `1m/5m/10m` for launch, register and GPUs.
            "patience" => {
                let stages: Vec<Span> =
                    value.split('/').map(|text| text.parse().expect("a time")).collect();
                let stage = |at: usize| stages[at.min(stages.len() - 1)];
                spec.patience = Timeouts { launch: stage(0), register: stage(1), gpus: stage(2) };
            }
            "consolidate" => {
                spec.consolidate = match value {
                    "never" => Consolidate::Never,
                    "underused" => Consolidate::WhenUnderused,
                    _ => Consolidate::WhenEmpty,
                };
            }
            "budget" => spec.limits.hourly_spend = Some(money(value)),
            _ => panic!("no such option of a pool: {word}"),
        }
    }
    spec
}

fn offering(text: &str) -> OfferingSpec {
    let mut spec = build::offering("", 1.0);
    (spec.labels, spec.instance_type) = (Labels::new(), "".into());
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').expect("key=value");
        match key {
            "type" => spec.instance_type = value.into(),
            "price" => spec.price = money(value),
            "start" => spec.start_time = Some(value.parse().expect("a time")),
            "capacity" => spec.capacity_type = value.into(),
            "boot" => spec.boot_time = value.parse().expect("a time"),
            "max" => spec.max = Some(value.parse().expect("a number")),
            "gpus" => spec.gpus = value.parse().expect("a number"),
            "model" => spec.gpu.as_mut().expect("it has GPUs").model = value.into(),
            "taint" => spec.taints.push(taint(value)),
            _ if amount(&mut spec.allocatable, key, value) => {}
            _ => labelled(&mut spec.labels, key, value),
        }
    }
    spec.zone = spec.labels.get(&label("zone")).cloned().unwrap_or_default();
    if let Some(region) = spec.labels.get(&label("region")) {
        spec.region = region.clone();
    }
    if spec.instance_type.is_empty() {
        spec.instance_type = format!("gpu{}", spec.gpus).into();
    }
    spec.gpu = spec.gpu.filter(|_| spec.gpus > 0);
    spec
}

fn schedule(text: &str) -> Schedule {
    let mut parts = text.rsplitn(3, '/');
    let nodes = parts.next().expect("nodes").parse().expect("a number");
    let duration = parts.next().expect("a duration").parse().expect("a time");
    let (cron, zone) = parts.next().expect("cron/zone").split_once('/').expect("cron/zone");
    Schedule { cron: cron.replace('_', " ").into(), timezone: zone.into(), duration, nodes }
}

/// A date and a time in UTC, as milliseconds of Unix time.
pub(super) fn unix_ms(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().expect("a date and time").as_millisecond()
}

pub(super) fn queue(rest: &str) -> QueueSpec {
    let mut words = rest.split_whitespace();
    let mut spec = QueueSpec::open(words.next().expect("a name"));
    for word in words {
        let (key, value) = word.split_once('=').expect("key=value");
        match key {
            "parent" => spec.parent = Some(value.into()),
            "gpu" => spec.limit.gpu_milli = Some(milli(value)),
            "sure" => spec.guaranteed.gpu_milli = Some(milli(value)),
            "each" => spec.user_limit.gpu_milli = Some(milli(value)),
            "weight" => spec.weight = value.parse().expect("a number"),
            "half" => spec.half_life = Some(value.parse().expect("a time")),
            "slice" => spec.time_slice = Some(value.parse().expect("a time")),
            "reclaim" => spec.reclaim_within = Some(value.parse().expect("a time")),
            "evictions" => spec.evictions_per_hour = Some(value.parse().expect("a number")),
            "closed" => spec.closed = value == "yes",
            "firm" => spec.allowed.non_preemptible = non_preemptible(value),
            "ns" => {
                let names = value.split(',').map(Arc::from).collect();
                spec.allowed.namespaces = Some(Namespaces { names, selector: None });
            }
            "maxprio" => spec.allowed.max_priority = Some(value.parse().expect("a number")),
            "maxcost" => {
                let units = value.parse().expect("a price");
                spec.allowed.max_cost_of_waiting = Money::from_units(units);
            }
            "maxgrace" => spec.allowed.max_grace = Some(value.parse().expect("a time")),
            "maxminrun" => spec.allowed.max_min_runtime = Some(value.parse().expect("a time")),
            "maxtimeout" => {
                spec.allowed.max_provisioning_timeout = Some(value.parse().expect("a time"));
            }
            "tiers" => spec.tiers = value.split(',').map(Arc::from).collect(),
            _ if amount(&mut spec.limit.amounts, key, value) => {}
            _ => panic!("no such option of a queue: {word}"),
        }
    }
    spec
}

fn non_preemptible(text: &str) -> NonPreemptible {
    match text {
        "never" => NonPreemptible::Never,
        "guarantee" => NonPreemptible::WithinGuarantee,
        "always" => NonPreemptible::Always,
        _ => panic!("no such rule: {text}"),
    }
}

fn milli(gpus: &str) -> u64 {
    gpus.parse::<u64>().expect("a number of GPUs") * 1_000
}

/// Network adapters, which a node shows some time after its GPUs.
pub(super) const EFA: &str = "vpc.amazonaws.com/efa";

/// Cores, GiB and network adapters; `false` for any other key.
pub(super) fn amount(amounts: &mut NamedAmounts, key: &str, value: &str) -> bool {
    match key {
        "cpu" => amounts.insert(CPU.into(), value.parse::<u64>().expect("cores") * 1_000),
        "mem" => amounts.insert(MEMORY.into(), gib(value)),
        "efa" => amounts.insert(EFA.into(), value.parse().expect("adapters")),
        _ => return false,
    };
    true
}

pub(super) fn gib(text: &str) -> u64 {
    text.parse::<u64>().expect("GiB") << 30
}

fn money(text: &str) -> Money {
    Money::from_units(text.parse().expect("a price")).expect("a price")
}

/// A level's name, or `label:key` for any other label, so that a typo is no label.
fn labelled(labels: &mut Labels, key: &str, value: &str) {
    let key = match key.strip_prefix("label:") {
        Some(key) => key.into(),
        None if label(key).contains('/') => label(key),
        None => panic!("no such option: {key}={value}"),
    };
    labels.insert(key, value.into());
}
