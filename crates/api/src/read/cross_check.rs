//! Checks objects against each other: names that must be unique, and references that must resolve.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use muster_core::gang::Closeness;
use muster_core::node::NodeSpec;
use muster_core::queue::QueueSpec;
use muster_core::topology::{Levels, NODE_LEVEL};

use crate::manifest::gang::gang_spec::{DEFAULT_QUEUE, DeclaredGang};
use crate::manifest::node::{DeclaredNode, MAX_NODES};
use crate::manifest::pool::pool_spec::DeclaredPool;
use crate::manifest::queue::queue_spec::DeclaredQueue;
use crate::manifest::queue::quota::guarantees;
use crate::read::files::Manifests;
use crate::read::finding::{Finding, Mark};
use crate::read::object::Declared;
use crate::yaml::hint::{did_you_mean, listed};

/// Queues, pools and resource names have numbers of 16 bits each.
const MAX_NUMBERED: usize = 60_000;

/// Combines all objects. With an error among the findings, the result must not be used.
pub(crate) fn assemble(declared: Declared, findings: &mut Vec<Finding>) -> Manifests {
    resource_names(&declared, findings);
    let Declared { topologies, queues, pools, nodes, gangs, incomplete } = declared;
    unique("Queue", queues.iter().map(|queue| (&queue.spec.name, &queue.name)), findings);
    unique("Pool", pools.iter().map(|pool| (&pool.pool.spec.name, &pool.name)), findings);
    unique("Gang", gangs.iter().map(|gang| (&gang.gang.spec.name, &gang.name)), findings);
    numbered("queues", queues.len(), queues.last().map(|queue| &queue.name), findings);
    numbered("pools", pools.len(), pools.last().map(|pool| &pool.name), findings);
    let levels = the_levels(topologies, findings);
    cycles(&queues, findings);
    guarantees(&queues, findings);
    if !incomplete {
        queue_names(&queues, &gangs, findings);
        level_names(&levels, &gangs, findings);
        tier_names(&queues, &pools, findings);
    }
    let mut queues: Vec<QueueSpec> = queues.into_iter().map(|queue| queue.spec).collect();
    if !queues.iter().any(|queue| &*queue.name == DEFAULT_QUEUE) {
        queues.push(QueueSpec::open(DEFAULT_QUEUE));
    }
    Manifests {
        levels,
        queues,
        pools: pools.into_iter().map(|pool| pool.pool).collect(),
        nodes: expand(nodes, findings),
        gangs: gangs.into_iter().map(|gang| gang.gang).collect(),
        warnings: Vec::new(),
    }
}

fn unique<'d>(
    kind: &str,
    objects: impl Iterator<Item = (&'d Arc<str>, &'d Mark)>,
    findings: &mut Vec<Finding>,
) {
    let mut first: HashMap<&str, &Mark> = HashMap::new();
    for (name, mark) in objects {
        match first.get(&**name) {
            Some(before) => {
                findings
                    .push(mark.error(format!("a {kind} named `{name}` is already at {before}")));
            }
            None => drop(first.insert(name, mark)),
        }
    }
}

fn numbered(what: &str, count: usize, last: Option<&Mark>, findings: &mut Vec<Finding>) {
    if let Some(mark) = last.filter(|_| count > MAX_NUMBERED) {
        findings
            .push(mark.error(format!("there are {count} {what}, and at most {MAX_NUMBERED} work")));
    }
}

fn the_levels(topologies: Vec<(Levels, Mark)>, findings: &mut Vec<Finding>) -> Levels {
    let mut topologies = topologies.into_iter();
    let Some((levels, first)) = topologies.next() else { return Levels::default() };
    for (_, mark) in topologies {
        findings.push(mark.error(format!("there is one Topology at most, and {first} is one")));
    }
    levels
}

/// Follows every queue's parents to the top; a queue met twice on the way is part of a cycle.
fn cycles(queues: &[DeclaredQueue], findings: &mut Vec<Finding>) {
    let mut by_name: HashMap<&str, &DeclaredQueue> = HashMap::new();
    for queue in queues {
        by_name.entry(&queue.spec.name).or_insert(queue);
    }
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    for queue in queues {
        let mut path: Vec<&DeclaredQueue> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut here = by_name.get(&*queue.spec.name).copied();
        while let Some(queue) = here.filter(|queue| !settled.contains(&*queue.spec.name)) {
            if let Some(start) = places.insert(&queue.spec.name, path.len()) {
                let names: Vec<&str> =
                    path[start..].iter().chain([&queue]).map(|queue| &*queue.spec.name).collect();
                let mark = queue.parent.as_ref().unwrap_or(&queue.name);
                findings.push(mark.error(format!("queues form a cycle: {}", names.join(" -> "))));
                break;
            }
            path.push(queue);
            here = queue.spec.parent.as_ref().and_then(|parent| by_name.get(&**parent)).copied();
        }
        settled.extend(path.iter().map(|queue| &*queue.spec.name));
    }
}

fn queue_names(queues: &[DeclaredQueue], gangs: &[DeclaredGang], findings: &mut Vec<Finding>) {
    let mut known: BTreeSet<&str> = queues.iter().map(|queue| &*queue.spec.name).collect();
    known.insert(DEFAULT_QUEUE);
    let parents = queues
        .iter()
        .filter_map(|queue| Some((queue.spec.parent.as_deref()?, queue.parent.as_ref()?)));
    let waits =
        gangs.iter().filter_map(|gang| Some((&*gang.gang.spec.queue, gang.queue.as_ref()?)));
    for (name, mark) in parents.chain(waits).filter(|(name, _)| !known.contains(name)) {
        let hint = did_you_mean(name, known.iter().copied());
        findings.push(mark.error(format!("there is no Queue named `{name}`{hint}")));
    }
}

fn level_names(levels: &Levels, gangs: &[DeclaredGang], findings: &mut Vec<Finding>) {
    let known = || levels.0.iter().map(|level| &*level.name).chain([NODE_LEVEL]);
    for gang in gangs {
        let (Some(Closeness::Required(name) | Closeness::Preferred(name)), Some(mark)) =
            (&gang.gang.spec.closeness, &gang.level)
        else {
            continue;
        };
        if levels.find(name).is_none() {
            let hint = did_you_mean(name, known());
            findings.push(
                mark.error(format!("`{name}` is none of the levels {}{hint}", listed(known()))),
            );
        }
    }
}

fn tier_names(queues: &[DeclaredQueue], pools: &[DeclaredPool], findings: &mut Vec<Finding>) {
    let known: BTreeSet<&str> = pools.iter().map(|pool| &*pool.pool.spec.tier).collect();
    for queue in queues {
        for (tier, mark) in queue.spec.tiers.iter().zip(&queue.tiers) {
            if !known.contains(&**tier) {
                let hint = did_you_mean(tier, known.iter().copied());
                findings.push(mark.warning(format!("no Pool is of tier `{tier}`{hint}")));
            }
        }
    }
}

/// One spec per node. Nothing is expanded when the total is too large.
fn expand(nodes: Vec<DeclaredNode>, findings: &mut Vec<Finding>) -> Vec<NodeSpec> {
    let total: u64 = nodes.iter().map(|node| u64::from(node.count)).sum();
    if total > u64::from(MAX_NODES) {
        let largest = nodes.iter().max_by_key(|node| node.count);
        let reason = || format!("there are {total} nodes, and at most {MAX_NODES} work");
        findings.extend(largest.map(|node| node.name.error(reason())));
        return Vec::new();
    }
    let mut first: HashMap<Arc<str>, Mark> = HashMap::new();
    let mut specs = Vec::new();
    for node in nodes {
        let mark = node.name.clone();
        for spec in node.expand() {
            if let Some(before) = first.get(&spec.name) {
                findings.push(
                    mark.error(format!("a Node named `{}` is already at {before}", spec.name)),
                );
                break;
            }
            first.insert(spec.name.clone(), mark.clone());
            specs.push(spec);
        }
    }
    specs
}

/// Reports the object with the first resource name beyond the limit.
fn resource_names(declared: &Declared, findings: &mut Vec<Finding>) {
    let Declared { queues, pools, nodes, gangs, .. } = declared;
    let queues = queues.iter().flat_map(|queue| {
        let QueueSpec { guaranteed, limit, user_limit, .. } = &queue.spec;
        [guaranteed, limit, user_limit].map(|quota| (&quota.amounts, &queue.name))
    });
    let offerings = pools.iter().flat_map(|pool| {
        pool.pool.spec.offerings.iter().map(|offering| (&offering.allocatable, &pool.name))
    });
    let nodes = nodes.iter().map(|node| (&node.spec.allocatable, &node.name));
    let roles = gangs.iter().flat_map(|gang| {
        gang.gang.spec.roles.iter().map(|role| (&role.request.amounts, &gang.name))
    });
    let mut seen: HashSet<&str> = HashSet::new();
    for (amounts, mark) in queues.chain(offerings).chain(nodes).chain(roles) {
        seen.extend(amounts.keys().map(|name| &**name));
        if seen.len() > MAX_NUMBERED {
            let reason =
                format!("this is where more than {MAX_NUMBERED} resource names are in use");
            findings.push(mark.error(reason));
            return;
        }
    }
}
