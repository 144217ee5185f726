//! What a queue is guaranteed and held to, and whether the one leaves room for the other.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use muster_core::quantity::Quantity;
use muster_core::queue::Quota;
use muster_core::resource::{display_amount, is_gpu};

use crate::manifest::amounts;
use crate::manifest::amounts::Listed;
use crate::manifest::queue::queue_spec::DeclaredQueue;
use crate::read::finding::{Finding, Mark};
use crate::yaml::hint::listed;
use crate::yaml::value::Value;

/// So many queues are named in one finding.
const NAMED: usize = 3;

/// A quota and where each of its resources was written.
#[derive(Debug, Default)]
pub(crate) struct DeclaredQuota {
    /// What the planner sees.
    pub(crate) quota: Quota,
    lines: Vec<Line>,
}

/// One resource of a quota.
#[derive(Debug)]
struct Line {
    /// Its name; none for GPUs, of which those of every vendor count together.
    resource: Option<Arc<str>>,
    /// How much of it, in base units; thousandths of a device for GPUs.
    amount: u64,
    /// Where it was written; of several kinds of GPUs, the first.
    mark: Mark,
}

/// Reads a quota.
pub(crate) fn read(value: &Value<'_>) -> DeclaredQuota {
    let (mut quota, mut lines) = (Quota::default(), Vec::new());
    let mut gpus: Option<Line> = None;
    for Listed { name, amount, value } in amounts::listed(value, u64::MAX) {
        if is_gpu(name) {
            let line = gpus.get_or_insert_with(|| Line::new(None, 0, &value));
            line.amount = line.amount.saturating_add(amount);
        } else {
            quota.amounts.insert(name.into(), amount);
            lines.push(Line::new(Some(name.into()), amount, &value));
        }
    }
    quota.gpu_milli = gpus.as_ref().map(|line| line.amount);
    lines.extend(gpus);
    DeclaredQuota { quota, lines }
}

impl DeclaredQuota {
    /// An error for every amount of a guarantee that the queue's own limit forbids.
    pub(crate) fn never_had(&self, limit: &Quota) -> Vec<Finding> {
        let reason = |line: &Line, limit| {
            format!("{} can never be had: `limit` is {}", line.shown(), line.shown_as(limit))
        };
        self.above(limit).map(|(line, limit)| line.mark.error(reason(line, limit))).collect()
    }
    /// A warning for every amount of a user limit that the limit of all keeps everybody from.
    pub(crate) fn never_reached(&self, limit: &Quota) -> Vec<Finding> {
        let reason = |line: &Line, limit| {
            format!("nobody ever gets to {}: `limit` is {}", line.shown(), line.shown_as(limit))
        };
        self.above(limit).map(|(line, limit)| line.mark.warning(reason(line, limit))).collect()
    }

    /// What is more than `limit` allows, and how much that is.
    fn above<'q>(&'q self, limit: &'q Quota) -> impl Iterator<Item = (&'q Line, u64)> {
        self.lines.iter().filter_map(|line| {
            let limit = amount_of(limit, line.resource.as_deref())?;
            (line.amount > limit).then_some((line, limit))
        })
    }
}

/// What the children of one queue are guaranteed of one resource.
#[derive(Default)]
struct Guaranteed<'q> {
    together: u64,
    to: Vec<&'q str>,
}

impl fmt::Display for Guaranteed<'_> {
    /// The first few by name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(self.to.iter().take(NAMED).copied()))?;
        match self.to.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Warns where queues are guaranteed more together than the queue above them is, or can ever have.
pub(crate) fn guarantees(queues: &[DeclaredQueue], findings: &mut Vec<Finding>) {
    let mut guaranteed: HashMap<(&str, Option<&str>), Guaranteed<'_>> = HashMap::new();
    for queue in queues {
        let Some(parent) = queue.spec.parent.as_deref() else { continue };
        for line in queue.guaranteed.lines.iter().filter(|line| line.amount > 0) {
            let below = guaranteed.entry((parent, line.resource.as_deref())).or_default();
            below.together = below.together.saturating_add(line.amount);
            below.to.push(&queue.spec.name);
        }
    }
    for queue in queues {
        let limits = queue.limit.lines.iter().map(|line| (line, "limit"));
        let guarantees = queue.guaranteed.lines.iter().map(|line| (line, "guarantee"));
        for (line, what) in limits.chain(guarantees) {
            let (name, resource) = (&*queue.spec.name, line.resource.as_deref());
            let Some(below) = guaranteed.get(&(name, resource)) else { continue };
            // Beyond the limit it is beyond the guarantee as well; once is enough.
            let said = what == "guarantee"
                && amount_of(&queue.limit.quota, resource)
                    .is_some_and(|limit| below.together > limit);
            if below.together > line.amount && !said {
                findings.push(line.mark.warning(format!(
                    "the queues below `{name}` are guaranteed {} ({below}), and its {what} is {}",
                    line.shown_as(below.together),
                    line.shown(),
                )));
            }
        }
    }
}

/// What a quota says about a resource, if anything.
fn amount_of(quota: &Quota, resource: Option<&str>) -> Option<u64> {
    resource.map_or(quota.gpu_milli, |name| quota.amounts.get(name).copied())
}

impl Line {
    fn new(resource: Option<Arc<str>>, amount: u64, value: &Value<'_>) -> Self {
        Self { resource, amount, mark: value.mark() }
    }
    /// The amount as one would write it.
    fn shown(&self) -> String {
        self.shown_as(self.amount)
    }
    /// Another amount of the same resource as one would write it.
    fn shown_as(&self, amount: u64) -> String {
        let Some(resource) = &self.resource else {
            let gpus = Quantity::milli(amount);
            return format!("{gpus} {}", if amount == 1_000 { "GPU" } else { "GPUs" });
        };
        display_amount(resource, amount).to_string()
    }
}
