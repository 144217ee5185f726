//! Queues: tenants in a tree, each with a weight, a guarantee and a limit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::resource::{Amounts, NamedAmounts};
use crate::history::decayed_usage::DecayedUsage;
use crate::id::{Id, QueueIdx, ResourceIdx};
pub use crate::objects::allowed::{Allowed, Namespaces, NonPreemptible};
use crate::units::time::{Span, Time};

/// Amounts of a guarantee or a limit: GPUs apart, in thousandths of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Everything but GPUs, in base units.
    #[serde(default)]
    pub amounts: NamedAmounts,
    /// GPUs of every vendor and model together, in thousandths of a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_milli: Option<u64>,
}

/// A queue as specified.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Its name, unique in the tree.
    pub name: Arc<str>,
    /// The queue above it; none for a queue at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
    /// Its weight among its siblings.
    #[serde(default = "one")]
    pub weight: u32,
    /// Its guarantee.
    #[serde(default)]
    pub guaranteed: Quota,
    /// Its limit.
    #[serde(default)]
    pub limit: Quota,
    /// The limit of one user within it and the queues below it.
    #[serde(default)]
    pub user_limit: Quota,
    /// Half-life of its past usage; that of the queue above when absent, and a day at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Span>,
    /// Tiers it may buy from; every tier when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Arc<str>>,
    /// The time slice of a gang, where the gangs of the queue take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_slice: Option<Span>,
    /// Within what time it reclaims what it lent; ten minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_within: Option<Span>,
    /// How many of its gangs may be preempted or moved within an hour; any number when absent. Reclaims of lent
    /// capacity are not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions_per_hour: Option<u32>,
    /// Whether it is closed: its waiting gangs, and those below it, do not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Bounds on what its gangs, and those below it, may declare.
    #[serde(default, skip_serializing_if = "Allowed::is_default")]
    pub allowed: Allowed,
}

fn one() -> u32 {
    1
}

impl QueueSpec {
    /// A queue at the top with no guarantee and no limit.
    pub fn open(name: &str) -> Self {
        Self {
            name: name.into(),
            parent: None,
            weight: 1,
            guaranteed: Quota::default(),
            limit: Quota::default(),
            user_limit: Quota::default(),
            half_life: None,
            tiers: Vec::new(),
            time_slice: None,
            reclaim_within: None,
            evictions_per_hour: None,
            closed: false,
            allowed: Allowed::default(),
        }
    }
    /// Within what time it reclaims what it lent.
    pub fn reclaims_within(&self) -> Span {
        self.reclaim_within.unwrap_or(Span::mins(10))
    }
}

/// The usage of a queue and everything below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Everything but GPUs.
    pub amounts: Amounts,
    /// GPUs, in thousandths of a device.
    pub gpu_milli: u64,
}

impl Usage {
    /// Adds `count` members that take this much each.
    pub fn add(&mut self, amounts: &Amounts, gpu_milli: u64, count: u32) {
        self.amounts.add(amounts, count);
        let more = gpu_milli.saturating_mul(u64::from(count));
        self.gpu_milli = self.gpu_milli.saturating_add(more);
    }
    /// Takes `count` members off again.
    ///
    /// # Panics
    /// When there is less than that.
    pub fn take(&mut self, amounts: &Amounts, gpu_milli: u64, count: u32) {
        self.amounts.take(amounts, count);
        self.gpu_milli -= gpu_milli * u64::from(count);
    }
    /// Whether nothing is held.
    pub fn is_zero(&self) -> bool {
        self.gpu_milli == 0 && self.amounts.is_empty()
    }
}

/// Amounts by resource number: GPUs, and other named resources; resources that are not named are unbounded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// GPUs, in thousandths of a device.
    pub gpu_milli: Option<u64>,
    /// Other resources.
    pub amounts: BTreeMap<ResourceIdx, u64>,
}

impl Bounds {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.gpu_milli.is_none() && self.amounts.is_empty()
    }
    /// The first resource of which `held` and `wants` together exceed the named amount, if more of it is wanted at
    /// all; GPUs are `None`. With held, wanted and named amounts.
    pub fn exceeded(
        &self,
        held: &Usage,
        wants: &Usage,
    ) -> Option<(Option<ResourceIdx>, u64, u64, u64)> {
        let over =
            |held: u64, wants: u64, bound: u64| wants > 0 && held.saturating_add(wants) > bound;
        if let Some(bound) = self.gpu_milli
            && over(held.gpu_milli, wants.gpu_milli, bound)
        {
            return Some((None, held.gpu_milli, wants.gpu_milli, bound));
        }
        self.amounts.iter().find_map(|(resource, bound)| {
            let (held, wants) = (held.amounts.get(*resource), wants.amounts.get(*resource));
            over(held, wants, *bound).then_some((Some(*resource), held, wants, *bound))
        })
    }
    /// Whether any named resource is wanted.
    pub fn concerns(&self, wants: &Usage) -> bool {
        (self.gpu_milli.is_some() && wants.gpu_milli > 0)
            || self.amounts.keys().any(|resource| wants.amounts.get(*resource) > 0)
    }
}

/// A queue in the World.
#[derive(Clone, Debug)]
pub struct Queue {
    /// As specified.
    pub spec: QueueSpec,
    /// The queue above it.
    pub parent: Option<QueueIdx>,
    /// Its guarantee.
    pub guaranteed: Bounds,
    /// Its limit.
    pub limit: Bounds,
    /// The limit of one user within it and below it.
    pub user_limit: Bounds,
    /// Half-life of its past usage.
    pub half_life: Span,
    /// What its gangs, and those of the queues below it, hold: running, admitted and reserved.
    pub usage: Usage,
    /// Its average usage, decayed.
    pub past: DecayedUsage,
    /// What each user holds; kept only where there is a limit for users.
    pub users: BTreeMap<Arc<str>, Usage>,
    /// When its gangs were preempted or moved, within the last hour.
    pub evicted: VecDeque<Time>,
    /// Whether it is no longer declared. It is kept for the gangs in it, and in case it is declared again.
    pub gone: bool,
}

impl Queue {
    /// Whether its gangs may start when there is room for them.
    pub fn is_open(&self) -> bool {
        !self.gone && !self.spec.closed
    }
    /// Whether one more of its gangs may be preempted or moved now.
    pub fn may_evict(&self, now: Time) -> bool {
        let recent = self.evicted.iter().filter(|at| now.since(**at) < Span::hours(1)).count();
        self.spec.evictions_per_hour.is_none_or(|most| recent < most as usize)
    }
    /// What it holds above its guarantee.
    pub fn borrowed(&self) -> Usage {
        self.compare(u64::saturating_sub)
    }
    /// The unused part of its guarantee; other queues may hold it meanwhile.
    pub fn lent(&self) -> Usage {
        self.compare(|held, sure| sure.saturating_sub(held))
    }

    fn compare(&self, of: impl Fn(u64, u64) -> u64) -> Usage {
        let sure = |resource| self.guaranteed.amounts.get(&resource).copied().unwrap_or(0);
        let mut found = Usage {
            gpu_milli: of(self.usage.gpu_milli, self.guaranteed.gpu_milli.unwrap_or(0)),
            ..Usage::default()
        };
        let named = self.guaranteed.amounts.keys().next_back().map_or(0, |last| last.index() + 1);
        for resource in (0..self.usage.amounts.len().max(named)).map(ResourceIdx::from_index) {
            let amount = of(self.usage.amounts.get(resource), sure(resource));
            found.amounts.set(resource, amount);
        }
        found
    }
}

/// Sorts queues so that each comes after its parent, if that is among them: the World needs the parent first.
pub fn parents_first<T>(mut rest: Vec<T>, spec: impl Fn(&T) -> &QueueSpec) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let waits = |one: &T| {
            let parent = spec(one).parent.as_ref();
            parent.is_some_and(|parent| rest.iter().any(|other| spec(other).name == *parent))
        };
        // The World refuses queues that form a cycle.
        let at = rest.iter().position(|one| !waits(one)).unwrap_or(0);
        sorted.push(rest.remove(at));
    }
    sorted
}
