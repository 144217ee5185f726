//! No overcommit of quota: running members below a queue stay within its limit, and those of one user within the limit
//! of users.

use std::collections::BTreeMap;
use std::fmt;

use muster_core::gang::GangSpec;
use muster_core::queue::{QueueSpec, Quota};

use crate::promises::books::{Books, GangEntry};
use crate::promises::{Promise, Violation};

/// Checks every queue from a gang's own upwards, after a member of the gang has started.
pub(crate) fn check(books: &Books, gang: &GangSpec, found: &mut Vec<Violation>) {
    let path = |from: &str| queue_path(&books.terms.queues, from);
    for queue in path(&gang.queue) {
        let name = &queue.name;
        let below = || {
            books.gangs.values().filter(|other| path(&other.spec.queue).any(|q| q.name == *name))
        };
        let mut compare = |limit: &Quota, who: fmt::Arguments<'_>, user: Option<&str>| {
            if limit.gpu_milli.is_some() || !limit.amounts.is_empty() {
                let gangs = below().filter(|gang| user.is_none_or(|user| *gang.spec.user == *user));
                let over = exceeded(limit, gangs).into_iter();
                let broken = |what| books.violation(Promise::NoOvercommit, format!("{who} {what}"));
                found.extend(over.map(broken));
            }
        };
        compare(&queue.limit, format_args!("queue {name}"), None);
        let user = &gang.user;
        let who = format_args!("user `{user}` of queue {name}");
        compare(&queue.user_limit, who, Some(user));
    }
}

/// What these gangs run above a limit, in words.
fn exceeded<'a>(limit: &Quota, gangs: impl Iterator<Item = &'a GangEntry>) -> Vec<String> {
    let mut gpu_milli = 0;
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for gang in gangs {
        gpu_milli += gang.gpu_milli();
        for seat in &gang.members {
            for (resource, amount) in &gang.spec.roles[usize::from(seat.role)].request.amounts {
                *used.entry(resource).or_default() += amount * u64::from(seat.members);
            }
        }
    }
    let mut over = Vec::new();
    if let Some(limit) = limit.gpu_milli.filter(|limit| gpu_milli > *limit) {
        over.push(format!("runs {gpu_milli} thousandths of a GPU, over the limit {limit}"));
    }
    for (resource, limit) in &limit.amounts {
        let used = used.get(&**resource).copied().unwrap_or(0);
        if used > *limit {
            over.push(format!("uses {used} {resource}, over the limit {limit}"));
        }
    }
    over
}

/// A queue and its ancestors.
pub(crate) fn queue_path<'a>(
    specs: &'a [QueueSpec],
    from: &str,
) -> impl Iterator<Item = &'a QueueSpec> + use<'a> {
    let named = move |name: &str| specs.iter().find(|spec| *spec.name == *name);
    std::iter::successors(named(from), move |spec| {
        spec.parent.as_ref().and_then(|parent| named(parent))
    })
}

#[cfg(test)]
mod tests {
    use muster_core::Fact;
    use muster_core::device::{Devices, WHOLE};
    use muster_core::id::{GangId, NodeIdx};
    use muster_core::resource::NamedAmounts;
    use muster_core::time::Time;

    use crate::build;
    use crate::promises::{Ledger, Terms};

    use super::*;

    /// Starts gangs of one member each, given as queue, user and GPUs, on a node with room for all; returns the
    /// violations.
    fn start(queues: &[QueueSpec], gangs: &[(&str, &str, u16)]) -> Vec<String> {
        let mut ledger = Ledger::new(Terms { queues: queues.to_vec(), ..Terms::default() });
        let mut note = |fact: Fact| ledger.note(Time::ZERO, &fact);
        let (node, spec) = (NodeIdx(0), build::node("n", 64, &[]));
        let (name, allocatable) = (spec.name, spec.allocatable);
        note(Fact::NodeSeen { node, name, claim: None, allocatable, gpus: 64, ready: true });
        let mut free = Devices::free(64);
        for (i, (queue, user, gpus)) in gangs.iter().enumerate() {
            let gang = GangId(i as u32);
            let mut spec = build::gang(&format!("g{i}"), 1, *gpus);
            (spec.queue, spec.user) = ((*queue).into(), (*user).into());
            note(Fact::GangSubmitted { gang, spec: spec.into() });
            let devices = free.take(*gpus, WHOLE).expect("room for all");
            note(Fact::MembersStarted { gang, role: 0, node, devices, members: 1 });
        }
        ledger.violations().iter().map(|violation| violation.what.clone()).collect()
    }

    /// Two queues below one, in which a user may have eight GPUs and all together sixteen.
    fn queues() -> Vec<QueueSpec> {
        let gpus = |gpus: u64| Quota { gpu_milli: Some(gpus * 1_000), ..Quota::default() };
        let org = QueueSpec { limit: gpus(16), user_limit: gpus(8), ..QueueSpec::open("org") };
        let below = |name| QueueSpec { parent: Some("org".into()), ..QueueSpec::open(name) };
        vec![org, below("a"), below("b")]
    }

    #[test]
    fn user_above_the_user_limit_is_a_violation_in_any_queue() {
        let ann = [("a", "ann", 4), ("b", "ann", 4)];
        assert_eq!(start(&queues(), &ann), [""; 0]);
        assert_eq!(start(&queues(), &[ann[0], ann[1], ("a", "bob", 8)]), [""; 0], "each its own");
        assert_eq!(
            start(&queues(), &[ann[0], ann[1], ("org", "ann", 1)]),
            ["user `ann` of queue org runs 9000 thousandths of a GPU, over the limit 8000"]
        );
        assert_eq!(
            start(&queues(), &[("a", "", 8), ("b", "", 1)]).len(),
            1,
            "nobody is a user as well"
        );
    }

    #[test]
    fn queue_above_its_limit_is_a_violation_for_any_user() {
        let three = [("a", "ann", 8), ("b", "bob", 8), ("a", "cas", 1)];
        assert_eq!(
            start(&queues(), &three),
            ["queue org runs 17000 thousandths of a GPU, over the limit 16000"]
        );
        let mut queues = queues();
        queues[1].user_limit.amounts = NamedAmounts::from([("cpu".into(), 1_500)]);
        assert_eq!(
            start(&queues, &[("a", "ann", 0), ("b", "ann", 0), ("a", "ann", 0)]),
            ["user `ann` of queue a uses 2000 cpu, over the limit 1500"]
        );
    }
}
