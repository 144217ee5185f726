//! Gangs: whether all members start together, how much they work, and how long their orders assemble.

use std::sync::Arc;

use muster_core::gang::GangSpec;
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::{Span, Time};
use rustc_hash::FxHashMap;

/// Use of GPUs by gangs, on purchased nodes and on those that exist from the start, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// GPU time in which gangs worked; work that was lost later is part of it.
    pub busy_gpu_ms: u64,
    /// GPU time of work that was lost because a gang had to start over.
    pub lost_gpu_ms: u64,
    /// GPU time of started members that waited for the rest of their gang.
    pub wasted_gpu_ms: u64,
    /// Gangs of which some member started before another.
    pub partial_starts: u64,
}

/// Gangs that started at the instant of their submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hits {
    /// Gangs submitted.
    pub gangs: u64,
    /// Of these, those that started at that instant.
    pub hits: u64,
    /// Gangs that have started on more than one node, the first time.
    pub wide: u64,
    /// Of these, those that started at the instant of their submission.
    pub wide_hits: u64,
}

impl Hits {
    /// The share of all gangs that started at once; none where there are none.
    pub fn rate(&self) -> Option<f64> {
        (self.gangs > 0).then(|| self.hits as f64 / self.gangs as f64)
    }
    /// The same of gangs on more than one node.
    pub fn wide_rate(&self) -> Option<f64> {
        (self.wide > 0).then(|| self.wide_hits as f64 / self.wide as f64)
    }
}

/// The start of a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// From the first member's start to the last one's.
    pub spread: Span,
    /// GPU time of members that waited for others, in milliseconds.
    pub wasted_gpu_ms: u64,
}

/// Members that have started while their gang has not.
#[derive(Clone, Copy, Debug)]
struct Early {
    node: NodeIdx,
    since: Time,
    gpu_milli: u64,
}

impl Early {
    fn wasted(&self, now: Time) -> u64 {
        self.gpu_milli * now.since(self.since).0 / 1_000
    }
}

#[derive(Clone, Debug)]
struct Gang {
    spec: Arc<GangSpec>,
    queue: u32,
    submitted: Time,
    /// When nodes were first ordered for its next start.
    ordered: Option<Time>,
    has_started: bool,
    is_partial: bool,
    early: Vec<Early>,
    working: Option<Working>,
    /// Whether the loss of its stop is counted already.
    is_settled: bool,
}

/// A gang at work.
#[derive(Clone, Copy, Debug)]
struct Working {
    since: Time,
    gpu_milli: u64,
    /// GPU time until `since`, in thousandths of a millisecond.
    done: u64,
    /// GPU time that is counted already, in milliseconds.
    counted: u64,
}

impl Working {
    /// Counts the work until now; returns all of it since the start.
    fn count(&mut self, now: Time, work: &mut Work) -> u64 {
        self.done += self.gpu_milli * now.since(std::mem::replace(&mut self.since, now)).0;
        let all = self.done / 1_000;
        work.busy_gpu_ms += all - std::mem::replace(&mut self.counted, all);
        all
    }
    /// GPU time of all members over a span, in milliseconds.
    fn gpu_ms(&self, span: Span) -> u64 {
        self.gpu_milli * span.0 / 1_000
    }
}

/// All gangs that are not over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gangs {
    gangs: FxHashMap<GangId, Gang>,
    queues: Vec<Arc<str>>,
    queue_numbers: FxHashMap<Arc<str>, u32>,
    pub(crate) work: Work,
    pub(crate) hits: Hits,
    /// From the first order for a gang to its start, for every start that needed an order.
    pub(crate) gathered: Vec<Span>,
}

impl Gangs {
    /// Queues by number.
    pub(crate) fn queues(&self) -> &[Arc<str>] {
        &self.queues
    }
    /// The number of a gang's queue.
    pub(crate) fn queue_of(&self, gang: GangId) -> Option<u32> {
        self.gangs.get(&gang).map(|gang| gang.queue)
    }
    /// The number of a gang's queue, and the GPU thousandths of so many members of a role.
    pub(crate) fn ask_of(&self, gang: GangId, role: u16, members: u16) -> Option<(u32, u64)> {
        let gang = self.gangs.get(&gang)?;
        Some((gang.queue, gang.gpu_milli(role, members)))
    }

    pub(crate) fn submitted(&mut self, now: Time, gang: GangId, spec: &Arc<GangSpec>) {
        self.hits.gangs += 1;
        let new = Gang {
            queue: self.number(&spec.queue),
            spec: spec.clone(),
            submitted: now,
            ordered: None,
            has_started: false,
            is_partial: false,
            early: Vec::new(),
            working: None,
            is_settled: false,
        };
        self.gangs.insert(gang, new);
    }

    fn number(&mut self, queue: &Arc<str>) -> u32 {
        if let Some(number) = self.queue_numbers.get(queue) {
            return *number;
        }
        let number = self.queues.len() as u32;
        self.queues.push(queue.clone());
        self.queue_numbers.insert(queue.clone(), number);
        number
    }

    pub(crate) fn ordered(&mut self, now: Time, gang: GangId) {
        if let Some(gang) = self.gangs.get_mut(&gang) {
            gang.ordered.get_or_insert(now);
        }
    }

    pub(crate) fn member_started(
        &mut self,
        now: Time,
        gang: GangId,
        role: u16,
        node: NodeIdx,
        members: u16,
    ) {
        let Some(gang) = self.gangs.get_mut(&gang) else { return };
        let gpu_milli = gang.gpu_milli(role, members);
        match &mut gang.working {
            Some(working) => {
                working.count(now, &mut self.work);
                working.gpu_milli += gpu_milli;
            }
            None => gang.early.push(Early { node, since: now, gpu_milli }),
        }
    }

    /// A member stops: of a gang that goes on with fewer, or of a gang that has not started, so that all of its time was
    /// waste.
    pub(crate) fn member_stopped(
        &mut self,
        now: Time,
        gang: GangId,
        role: u16,
        node: NodeIdx,
        members: u16,
    ) {
        let Some(gang) = self.gangs.get_mut(&gang) else { return };
        let gpu_milli = gang.gpu_milli(role, members);
        if let Some(working) = &mut gang.working {
            working.count(now, &mut self.work);
            working.gpu_milli = working.gpu_milli.saturating_sub(gpu_milli);
        }
        let Some(at) = gang.early.iter().position(|early| early.node == node) else { return };
        let early = gang.early.swap_remove(at);
        self.work.partial_starts += u64::from(!std::mem::replace(&mut gang.is_partial, true));
        self.work.wasted_gpu_ms += early.wasted(now);
    }

    /// Every member of a gang has started.
    pub(crate) fn started(&mut self, now: Time, gang: GangId) -> Option<Start> {
        let gang = self.gangs.get_mut(&gang)?;
        let members = std::mem::take(&mut gang.early);
        let first = members.iter().map(|early| early.since).min().unwrap_or(now);
        let wasted_gpu_ms = members.iter().map(|early| early.wasted(now)).sum();
        if first < now {
            self.work.partial_starts += u64::from(!std::mem::replace(&mut gang.is_partial, true));
            self.work.wasted_gpu_ms += wasted_gpu_ms;
        }
        if !std::mem::replace(&mut gang.has_started, true) {
            let hit = u64::from(gang.submitted == now);
            let wide = members.iter().any(|early| early.node != members[0].node);
            self.hits.hits += hit;
            self.hits.wide += u64::from(wide);
            self.hits.wide_hits += hit * u64::from(wide);
        }
        self.gathered.extend(gang.ordered.take().map(|ordered| now.since(ordered)));
        let gpu_milli = members.iter().map(|early| early.gpu_milli).sum();
        gang.working = Some(Working { since: now, gpu_milli, done: 0, counted: 0 });
        Some(Start { spread: now.since(first), wasted_gpu_ms })
    }

    /// A gang was stopped; it may start again. Its work is lost, unless [`Self::lost`] said how much of it.
    pub(crate) fn stopped(&mut self, now: Time, gang: GangId) {
        let Some(gang) = self.gangs.get_mut(&gang) else { return };
        let is_settled = std::mem::take(&mut gang.is_settled);
        if let Some(mut working) = gang.working.take() {
            let all = working.count(now, &mut self.work);
            self.work.lost_gpu_ms += if is_settled { 0 } else { all };
        }
    }

    /// The last `worked` of a gang is lost; returns the GPU time of that. Called before its members stop.
    pub(crate) fn lost(&mut self, gang: GangId, worked: Span) -> u64 {
        let Some(gang) = self.gangs.get_mut(&gang) else { return 0 };
        let lost = gang.working.map_or(0, |working| working.gpu_ms(worked));
        gang.is_settled = true;
        self.work.lost_gpu_ms += lost;
        lost
    }

    /// GPU time of a gang's members over a span, in milliseconds.
    pub(crate) fn gpu_ms(&self, gang: GangId, span: Span) -> u64 {
        let working = self.gangs.get(&gang).and_then(|gang| gang.working);
        working.map_or(0, |working| working.gpu_ms(span))
    }

    /// A gang has done its work.
    pub(crate) fn ended(&mut self, now: Time, gang: GangId) {
        let working = self.gangs.remove(&gang).and_then(|gang| gang.working);
        if let Some(mut working) = working {
            working.count(now, &mut self.work);
        }
    }

    /// Counts the work that is under way.
    pub(crate) fn count_all(&mut self, now: Time) {
        for working in self.gangs.values_mut().filter_map(|gang| gang.working.as_mut()) {
            working.count(now, &mut self.work);
        }
    }
}

impl Gang {
    /// GPU thousandths of so many members of a role.
    fn gpu_milli(&self, role: u16, members: u16) -> u64 {
        let role = self.spec.roles.get(usize::from(role));
        role.map_or(0, |role| role.request.gpu_milli()) * u64::from(members)
    }
}
