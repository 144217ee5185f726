//! Every kind of invalid input a host could be sent.

use muster_core::gang::{Closeness, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::id::{ClaimId, GangId};
use muster_core::node::NodeSpec;
use muster_core::order::ClaimFailure;
use muster_core::queue::QueueSpec;
use muster_core::{Event, World};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// One kind of invalid input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadInput {
    UnknownQueue,
    NoRoles,
    MinAboveMax,
    NoMembers,
    UnknownLevel,
    DuplicateGang,
    QueueCycle,
    OrphanQueue,
    TooManyDevices,
    UnknownClaim,
    UnknownGang,
    UnknownNode,
    NodeOfUnknownClaim,
}

const KINDS: [BadInput; 13] = [
    BadInput::UnknownQueue,
    BadInput::NoRoles,
    BadInput::MinAboveMax,
    BadInput::NoMembers,
    BadInput::UnknownLevel,
    BadInput::DuplicateGang,
    BadInput::QueueCycle,
    BadInput::OrphanQueue,
    BadInput::TooManyDevices,
    BadInput::UnknownClaim,
    BadInput::UnknownGang,
    BadInput::UnknownNode,
    BadInput::NodeOfUnknownClaim,
];

impl BadInput {
    /// A random kind.
    pub(crate) fn draw(rng: &mut ChaCha8Rng) -> Self {
        KINDS[rng.random_range(0..KINDS.len())]
    }

    /// The invalid event.
    pub(crate) fn event(self, world: &World) -> Event {
        let role = |min, max| RoleSpec {
            name: "worker".into(),
            min,
            max,
            request: Request::default(),
            constraints: Default::default(),
            spread: Vec::new(),
        };
        let gang = |queue: &str, roles: Vec<RoleSpec>, closeness| {
            Event::GangSubmitted(GangSpec {
                name: "nonsense".into(),
                queue: queue.into(),
                user: "".into(),
                priority: 0,
                priority_is_declared: false,
                roles,
                closeness,
                provisioning: Provisioning::default(),
                expected_duration: None,
                deadline: None,
                cost_of_waiting: None,
                disruption: muster_core::gang::Disruption::default(),
                scaling: Default::default(),
            })
        };
        let node = |gpus, claim| NodeSpec {
            name: "nonsense".into(),
            labels: Default::default(),
            taints: Vec::new(),
            allocatable: Default::default(),
            gpu: None,
            gpus,
            ready: true,
            claim,
            others: false,
        };
        let queue = |name: &str, parent: &str| {
            Event::QueueSet(QueueSpec { parent: Some(parent.into()), ..QueueSpec::open(name) })
        };
        match self {
            BadInput::UnknownQueue => gang("nowhere", vec![role(1, 1)], None),
            BadInput::NoRoles => gang("default", Vec::new(), None),
            BadInput::MinAboveMax => gang("default", vec![role(3, 2)], None),
            BadInput::NoMembers => gang("default", vec![role(0, 0)], None),
            BadInput::UnknownLevel => {
                gang("default", vec![role(1, 1)], Some(Closeness::Required("shelf".into())))
            }
            BadInput::DuplicateGang => match world.gangs().next() {
                Some((_, known)) => Event::GangSubmitted(known.spec.clone()),
                None => gang("nowhere", vec![role(1, 1)], None),
            },
            BadInput::QueueCycle => queue("default", "default"),
            BadInput::OrphanQueue => queue("orphan", "nowhere"),
            BadInput::TooManyDevices => Event::NodeSeen(node(65, None)),
            BadInput::UnknownClaim => {
                Event::ClaimFailed(ClaimId(u32::MAX), ClaimFailure::BootFailed)
            }
            BadInput::UnknownGang => Event::GangEnded(GangId(u32::MAX)),
            BadInput::UnknownNode => Event::NodeGone("nonsense".into()),
            BadInput::NodeOfUnknownClaim => Event::NodeSeen(node(8, Some(ClaimId(u32::MAX)))),
        }
    }
}
