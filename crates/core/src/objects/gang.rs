//! Gangs: members that start together.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::constraint::Constraints;
use crate::hardware::device::{DeviceSet, GpuRequest, WHOLE};
use crate::hardware::resource::NamedAmounts;
use crate::id::{NodeIdx, OrderId, QueueIdx, SigIdx};
use crate::messages::event::RoleSeats;
use crate::messages::plan::StopReason;
pub use crate::objects::disruption::{Checkpoint, Disruption, Signal};
use crate::objects::progress::{Progress, Scaling, stretched};
use crate::objects::queue::Usage;
use crate::units::money::Money;
use crate::units::time::{Span, Time};

/// What one member of a role needs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Everything but GPUs, in base units.
    #[serde(default)]
    pub amounts: NamedAmounts,
    /// GPUs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRequest>,
}

impl Request {
    /// GPUs one member takes, in thousandths of a device.
    pub fn gpu_milli(&self) -> u64 {
        self.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count) * u64::from(gpu.share.min(WHOLE)))
    }
}

/// Interchangeable members of a gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RoleSpec {
    /// Its name, unique in the gang.
    pub name: Arc<str>,
    /// The gang does not start with fewer.
    pub min: u32,
    /// The gang never has more; equal to `min` when the role is rigid.
    pub max: u32,
    /// What each member needs.
    pub request: Request,
    /// Where members may run.
    #[serde(default)]
    pub constraints: Constraints,
    /// What members should be spread over, as far as there is room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Spread>,
}

/// A preference of members to share domains as little as possible. It affects where they are placed, not how much is
/// bought or which gangs are preempted: a gang never waits for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The label that tells domains apart, `kubernetes.io/hostname` for nodes.
    pub over: Arc<str>,
    /// With which members: those of all roles, in whatever gang, with the same value here.
    pub among: Arc<str>,
}

/// How close together the members must or should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Closeness {
    /// All in one domain of this level, or not at all.
    Required(Arc<str>),
    /// In one domain of this level if possible, else in the smallest that holds them.
    Preferred(Arc<str>),
}

/// Whether nodes may be bought for a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ProvisioningMode {
    /// Ahead of need where pools keep targets, and on demand.
    Proactive,
    /// Only once the gang waits.
    Reactive,
    /// Never: the gang runs on what is there.
    Never,
}

/// How nodes are bought for a gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Provisioning {
    /// Whether at all.
    pub mode: ProvisioningMode,
    /// How long an order may assemble before it is rolled back.
    pub timeout: Span,
    /// Failed orders in a row before the gang stops ordering for a while.
    pub attempts: u32,
}

impl Default for Provisioning {
    fn default() -> Self {
        Self { mode: ProvisioningMode::Proactive, timeout: Span::mins(15), attempts: 5 }
    }
}

/// A gang as submitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GangSpec {
    /// `namespace/name`, unique among gangs that are not over.
    pub name: Arc<str>,
    /// The queue it waits in.
    pub queue: Arc<str>,
    /// The user that submitted it; empty when unknown.
    #[serde(default)]
    pub user: Arc<str>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// Whether the priority is only declared by the submitter and not checked: it counts up to a queue's
    /// `maxPriority`, and not above 0 where no queue sets one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub priority_is_declared: bool,
    /// Its roles, at least one.
    pub roles: Vec<RoleSpec>,
    /// How close together the members must or should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closeness: Option<Closeness>,
    /// How nodes are bought for it.
    #[serde(default)]
    pub provisioning: Provisioning,
    /// The submitter's estimate of its run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<Span>,
    /// When it should be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// What an hour of delay costs its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_of_waiting: Option<Money>,
    /// What may be done to it while it runs.
    #[serde(default)]
    pub disruption: Disruption,
    /// How its speed depends on its members, if it is elastic.
    #[serde(default)]
    pub scaling: Scaling,
}

/// The run time assumed where the submitter gives no estimate.
const ASSUMED_RUN_TIME: Span = Span::hours(1);

impl GangSpec {
    /// The namespace its name begins with; `default` where it has none.
    pub fn namespace(&self) -> &str {
        self.name.split_once('/').map_or("default", |(namespace, _)| namespace)
    }
    /// Whether it never has more members than it starts with.
    pub fn is_rigid(&self) -> bool {
        self.roles.iter().all(|role| role.min == role.max)
    }
    /// Whether it may be moved to other nodes to save some, or to make room for others: it must be preemptible, and
    /// must not start from nothing after a move.
    pub fn may_move(&self) -> bool {
        self.disruption.preemptible && (!self.is_rigid() || self.disruption.checkpoint.is_some())
    }
    /// Whether it could ever give up seats for other gangs, all or some.
    pub fn may_be_victim(&self) -> bool {
        self.disruption.preemptible || !self.is_rigid()
    }
    /// The submitter's estimate of its run time; an hour where there is none.
    pub fn estimated_duration(&self) -> Span {
        self.expected_duration.unwrap_or(ASSUMED_RUN_TIME)
    }
    /// The most members that its elastic roles can have, all of them together.
    pub fn most_elastic(&self) -> u32 {
        let elastic = self.roles.iter().filter(|role| role.min < role.max);
        elastic.fold(0, |sum, role| sum.saturating_add(role.max))
    }
    /// The fewest members that its elastic roles can have, all of them together.
    pub fn least_elastic(&self) -> u32 {
        let elastic = self.roles.iter().filter(|role| role.min < role.max);
        elastic.fold(0, |sum, role| sum.saturating_add(role.min))
    }
    /// The estimated run time with its minimum. Waiting gangs are compared by this: more than the minimum is promised
    /// to no gang.
    pub fn estimated_with_min(&self) -> Span {
        let speed = self.scaling.speed(self.least_elastic(), self.most_elastic());
        stretched(self.estimated_duration(), speed)
    }
    /// The members it needs to start.
    pub fn min_members(&self) -> u32 {
        self.roles.iter().fold(0, |sum, role| sum.saturating_add(role.min))
    }
}

/// A seat: devices on a node for one member, or for several members that take no device and are identical.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Seat {
    /// The devices it gets.
    pub devices: DeviceSet,
    /// The node it runs on.
    pub node: NodeIdx,
    /// Its role, by place in the gang's list.
    pub role: u16,
    /// How many members; one where there are devices.
    pub members: u16,
}

impl Seat {
    /// Whether it is for at least one member, and for no more than one where there are devices.
    pub fn is_sound(&self) -> bool {
        self.members == 1 || (self.members > 1 && self.devices.is_empty())
    }
}

/// How many members these seats are for.
pub fn members_of(seats: &[Seat]) -> u32 {
    seats.iter().map(|seat| u32::from(seat.members)).sum()
}

/// The node of every seat, in their order.
pub fn nodes_of(seats: &[Seat]) -> Vec<NodeIdx> {
    seats.iter().map(|seat| seat.node).collect()
}

/// The phase of a gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// In the queue, holding nothing.
    Waiting,
    /// In the queue, its order assembling.
    Assembling(OrderId),
    /// Every member has a seat; the host is starting them.
    Admitted {
        /// When it was decided.
        at: Time,
    },
    /// Every member runs.
    Running {
        /// When all had started.
        at: Time,
    },
    /// Told to stop; the host is stopping its members.
    Stopping,
}

/// Members being added to a running gang, or taken from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resize {
    /// The seats it will have.
    pub to: Vec<Seat>,
    /// Those of them that it did not have.
    pub added: Vec<Seat>,
}

/// A gang in the World.
#[derive(Clone, Debug)]
pub struct Gang {
    /// As submitted.
    pub spec: GangSpec,
    /// The spec it gets when it next starts, where its owner has since asked for more than it holds.
    pub next: Option<Box<GangSpec>>,
    /// Its queue.
    pub queue: QueueIdx,
    /// The signature of each role.
    pub sigs: Vec<SigIdx>,
    /// What its minimum takes altogether.
    pub wants: Usage,
    /// The topology level its closeness names.
    pub level: Option<crate::hardware::topology::Level>,
    /// When it was submitted; it keeps its place in the queue through every rollback and restart.
    pub submitted: Time,
    /// Since when it waits, or last did: it goes behind all others of its queue when its time slice is over.
    pub waits_since: Time,
    /// Where it stands.
    pub phase: Phase,
    /// Seats of its members while admitted or running; also those it is giving up or only just getting.
    pub seats: Vec<Seat>,
    /// Seats that are given up first when it has to shrink: their members are gone, leaving, or no longer wanted by
    /// the gang's owner. As reported by the host; never more than it has.
    pub spare: Vec<RoleSeats>,
    /// Members being added or taken away, if any.
    pub resize: Option<Resize>,
    /// When its members last changed while it ran, or it last declined more.
    pub resized: Option<Time>,
    /// When it last declined more members.
    pub declined: Option<Time>,
    /// Its progress.
    pub work: Progress,
    /// Measured scaling efficiency: what twice the members bring, in thousandths of twice the speed.
    pub measured: Option<u16>,
    /// Why it is being stopped, or was last.
    pub stop: Option<StopReason>,
    /// How often it was preempted or moved.
    pub evictions: u32,
    /// Orders that failed since the last one that succeeded.
    pub failed_orders: u32,
    /// When the last order failed.
    pub last_failure: Option<Time>,
    /// How often it had to start over.
    pub restarts: u32,
    /// The latest run times of its user, as known when it was submitted.
    pub recent: crate::history::Recent,
}

impl Gang {
    /// When it ends by its estimate; none while it does not run.
    pub fn estimated_end(&self) -> Option<Time> {
        match self.phase {
            Phase::Admitted { .. } | Phase::Running { .. } => {
                Some(self.end_if(self.spec.estimated_duration()))
            }
            Phase::Waiting | Phase::Assembling(_) | Phase::Stopping => None,
        }
    }
    /// When it ends at its present speed, if it takes so long in all with every role at its `max`.
    pub fn end_if(&self, takes: Span) -> Time {
        let left = Span(takes.0.saturating_sub(self.work.done.0));
        self.work.since + stretched(left, self.speed())
    }
    /// The rest of such a duration if it starts now with its minimum.
    pub fn lasts_if(&self, takes: Span) -> Span {
        let left = Span(takes.0.saturating_sub(self.work.done.0));
        self.with_least(left) + self.pause_at_start()
    }
    /// How long it takes with its minimum, for a duration given with every role at its `max`.
    pub fn with_least(&self, takes: Span) -> Span {
        stretched(takes, self.speed_with(self.spec.least_elastic()))
    }
    /// How long it runs by its estimate if it starts now with its minimum.
    pub fn estimated_run_time(&self) -> Span {
        self.lasts_if(self.spec.estimated_duration())
    }
    /// How long it pauses when it starts, to restore its checkpoint.
    pub fn pause_at_start(&self) -> Span {
        if self.work.kept > Span::ZERO { self.spec.disruption.restart() } else { Span::ZERO }
    }
    /// Its speed with the members it has, as a fraction of its top speed. Members that are still joining do not count.
    pub fn speed(&self) -> f64 {
        if self.spec.is_rigid() {
            return 1.0;
        }
        let elastic = |seats: &[Seat]| -> u32 {
            let with_a_choice = |seat: &&Seat| {
                let role = &self.spec.roles[usize::from(seat.role)];
                role.min < role.max
            };
            seats.iter().filter(with_a_choice).map(|seat| u32::from(seat.members)).sum()
        };
        let coming = self.resize.as_ref().map_or(0, |resize| elastic(&resize.added));
        self.speed_with(elastic(&self.seats) - coming)
    }
    /// Its speed with so many members in its elastic roles.
    pub fn speed_with(&self, members: u32) -> f64 {
        let declared = self.spec.scaling;
        let scaling =
            Scaling { efficiency: self.measured.unwrap_or(declared.efficiency), ..declared };
        scaling.speed(members, self.spec.most_elastic())
    }
    /// Whether it waits for seats, with or without an order.
    pub fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Assembling(_))
    }
    /// Whether every member runs and none is being added or taken away.
    pub fn is_steady(&self) -> bool {
        matches!(self.phase, Phase::Running { .. }) && self.resize.is_none()
    }
    /// The seats that are given up first when it has to shrink.
    pub fn spare_seats(&self) -> Vec<Seat> {
        let mut left = self.spare.clone();
        let goes_first = |seat: &&Seat| {
            let same = |one: &&mut RoleSeats| (one.role, one.node) == (seat.role, seat.node);
            let one = left.iter_mut().find(same).filter(|one| one.members >= seat.members);
            one.map(|one| one.members -= seat.members).is_some()
        };
        self.seats.iter().filter(goes_first).copied().collect()
    }
    /// How many members a role may have: more than it was admitted for, where its owner has since asked for more.
    pub fn most_in(&self, role: u16) -> u32 {
        let most = |spec: &GangSpec| spec.roles.get(usize::from(role)).map_or(0, |role| role.max);
        most(&self.spec).max(self.next.as_deref().map_or(0, most))
    }
    /// How many members a role needs, by the latest spec of its owner.
    pub fn needs_in(&self, role: u16) -> u32 {
        let spec = self.next.as_deref().unwrap_or(&self.spec);
        spec.roles.get(usize::from(role)).map_or(0, |role| role.min)
    }
    /// Whether it has fewer members than the latest spec of its owner needs.
    pub fn is_short(&self) -> bool {
        let mut roles = 0..self.spec.roles.len() as u16;
        self.next.is_some() && roles.any(|role| self.members_in(role) < self.needs_in(role))
    }
    /// Members in a role, by its place in the list.
    pub fn members_in(&self, role: u16) -> u32 {
        let mine = self.seats.iter().filter(|seat| seat.role == role);
        mine.map(|seat| u32::from(seat.members)).sum()
    }
}

/// Seats of the first list that are not in the second. Identical seats count as often as they occur.
pub fn without(seats: &[Seat], gone: &[Seat]) -> Vec<Seat> {
    let mut gone = gone.to_vec();
    gone.sort_unstable();
    let mut left = Vec::with_capacity(seats.len().saturating_sub(gone.len()));
    for seat in seats {
        match gone.binary_search(seat) {
            Ok(at) => {
                gone.remove(at);
            }
            Err(_) => left.push(*seat),
        }
    }
    left
}
