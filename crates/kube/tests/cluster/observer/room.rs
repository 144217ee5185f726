//! No node is given more than it has, GPUs and everything else that is asked for.

use super::doubts::{Doubts, Moment};
use super::pods::{Amounts, add, amounts, asked, node_of};
use super::seen::Seen;

/// What was taken of nodes when somebody was put there, where they were not known to have that much.
#[derive(Default)]
pub(super) struct Room {
    doubts: Doubts<Taken>,
}

struct Taken {
    node: String,
    taken: Amounts,
    last: String,
}

impl Room {
    pub(super) fn bound(&mut self, seen: &Seen, pod: &str, node: &str, now: Moment) {
        let mut taken = Amounts::new();
        for (_, pod) in seen.at_work().filter(|(_, pod)| node_of(pod) == Some(node)) {
            add(&mut taken, &asked(pod));
        }
        self.doubts.add(now, Taken { node: node.to_owned(), taken, last: pod.to_owned() });
    }

    pub(super) fn look(&mut self, seen: &Seen, now: Moment) -> Vec<String> {
        self.doubts.settle(now, |_, Taken { node, taken, last }| {
            let Some(there) = seen.nodes.get(node) else {
                return Some(format!("{last} was bound to {node}, which has nothing"));
            };
            let there = there.status.as_ref().and_then(|status| status.allocatable.as_ref());
            let there = amounts(there);
            let has = |what: &str| there.get(what).copied().unwrap_or(0);
            let (what, taken) = taken.iter().find(|(what, taken)| **taken > has(what))?;
            let there = has(what);
            Some(format!(
                "{node} has {there} thousandths of {what} and {taken} are taken, by {last} last"
            ))
        })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty()
    }
}
