//! Reads a queue's guarantee and limits, and checks whether they are consistent.

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

/// The largest number of queues named in one finding.
const NAMED: usize = 3;

/// A quota and where each of its resources is written.
#[derive(Debug, Default)]
pub(crate) struct DeclaredQuota {
    /// The quota that the planner uses.
    pub(crate) quota: Quota,
    lines: Vec<Line>,
}

/// One resource of a quota.
#[derive(Debug)]
struct Line {
    /// Its name; `None` for GPUs, since those of all vendors are counted together.
    resource: Option<Arc<str>>,
    /// Its amount in base units; thousandths of a device for GPUs.
    amount: u64,
    /// Where it is written; the first place if there are several kinds of GPUs.
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
    /// An error for every guaranteed amount that the queue's own limit forbids.
    pub(crate) fn never_had(&self, limit: &Quota) -> Vec<Finding> {
        let reason = |line: &Line, limit| {
            format!("{} can never be had: `limit` is {}", line.shown(), line.shown_as(limit))
        };
        self.above(limit).map(|(line, limit)| line.mark.error(reason(line, limit))).collect()
    }
    /// A warning for every amount of a user limit that the limit of the queue makes unreachable.
    pub(crate) fn never_reached(&self, limit: &Quota) -> Vec<Finding> {
        let reason = |line: &Line, limit| {
            format!(
                "is never reached: {} is above `limit`, which is {}",
                line.shown(),
                line.shown_as(limit)
            )
        };
        self.above(limit).map(|(line, limit)| line.mark.warning(reason(line, limit))).collect()
    }

    /// Every amount above `limit`, with that limit.
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
    /// Names the first few queues.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(self.to.iter().take(NAMED).copied()))?;
        match self.to.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Warns where the guarantees of sibling queues exceed the guarantee of their parent, or its limit.
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
            // An amount above the limit is also above the guarantee; one finding is enough.
            let is_reported = what == "guarantee"
                && amount_of(&queue.limit.quota, resource)
                    .is_some_and(|limit| below.together > limit);
            if below.together > line.amount && !is_reported {
                findings.push(line.mark.warning(format!(
                    "the queues below `{name}` are guaranteed {} ({below}), and its {what} is {}",
                    line.shown_as(below.together),
                    line.shown(),
                )));
            }
        }
    }
}

/// The amount of a resource in a quota, if it has one.
fn amount_of(quota: &Quota, resource: Option<&str>) -> Option<u64> {
    resource.map_or(quota.gpu_milli, |name| quota.amounts.get(name).copied())
}

impl Line {
    fn new(resource: Option<Arc<str>>, amount: u64, value: &Value<'_>) -> Self {
        Self { resource, amount, mark: value.mark() }
    }
    /// The amount as a manifest would give it.
    fn shown(&self) -> String {
        self.shown_as(self.amount)
    }
    /// Another amount of the same resource as a manifest would give it.
    fn shown_as(&self, amount: u64) -> String {
        let Some(resource) = &self.resource else {
            let gpus = Quantity::milli(amount);
            return format!("{gpus} {}", if amount == 1_000 { "GPU" } else { "GPUs" });
        };
        display_amount(resource, amount).to_string()
    }
}
