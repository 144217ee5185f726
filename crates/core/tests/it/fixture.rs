//! A World built in few words, and its state as text.

use std::fmt::Write;

use muster_core::device::DeviceSet;
use muster_core::event::Refusal;
use muster_core::gang::{GangSpec, Phase, Seat};
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use muster_core::node::NodeSpec;
use muster_core::order::{ClaimState, OrderSpec, Place, Reservation};
use muster_core::plan::Action;
use muster_core::resource::{CPU, display_amount};
use muster_core::time::{Span, Time};
use muster_core::topology::Levels;
use muster_core::{Event, World};
use muster_testkit::build;

use crate::audit::audit;

/// A World whose every change is audited.
pub(crate) struct Fixture {
    pub(crate) world: World,
    now: Time,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { world: World::new(Levels::default()), now: Time::ZERO }
    }

    /// Applies an event; a refusal must leave no trace.
    #[expect(clippy::needless_pass_by_value, reason = "cases read better without borrows")]
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), Refusal> {
        self.world.apply(self.now, &Event::Tick)?;
        let before = format!("{:?}", self.world);
        let told = self.world.apply(self.now, &event);
        if told.is_err() {
            assert_eq!(format!("{:?}", self.world), before, "{event:?} was refused");
        }
        audit(&self.world);
        told
    }

    /// Applies an event that must be accepted.
    pub(crate) fn ok(&mut self, event: Event) -> &mut Self {
        let what = format!("{event:?}");
        assert_eq!(self.tell(event), Ok(()), "{what}");
        self
    }

    pub(crate) fn later(&mut self, minutes: u64) -> &mut Self {
        self.now += Span::mins(minutes);
        self
    }

    pub(crate) fn node(&mut self, name: &str, gpus: u16) -> &mut Self {
        self.ok(Event::NodeSeen(build::node(name, gpus, &[])))
    }

    pub(crate) fn gang(&mut self, spec: GangSpec) -> &mut Self {
        self.ok(Event::GangSubmitted(spec))
    }

    pub(crate) fn id(&self, gang: &str) -> GangId {
        self.world.gang_named(gang).expect("a gang of this name")
    }

    /// One member per entry: the node, and its devices as bits.
    pub(crate) fn seats(&self, seats: &[(&str, u64)]) -> Vec<Seat> {
        let node = |name: &str| self.world.node_named(name).unwrap_or(NodeIdx(u32::MAX));
        let seat = |(name, bits): &(&str, u64)| Seat {
            devices: DeviceSet(*bits),
            node: node(name),
            role: 0,
            members: 1,
        };
        seats.iter().map(seat).collect()
    }

    pub(crate) fn admit(&mut self, gang: &str, seats: &[(&str, u64)]) -> Result<(), Refusal> {
        let action = Action::Admit { gang: self.id(gang), seats: self.seats(seats) };
        self.tell(Event::Decided(action))
    }

    /// An order of one claim of the first pool: members on nodes that are here, and members on the claim.
    pub(crate) fn order(&self, gang: &str, here: &[(&str, u64)], on_claim: &[u64]) -> OrderSpec {
        let claim = self.world.next_claim();
        let place = |seat: &Seat| Reservation {
            place: Place::Node(seat.node),
            devices: seat.devices,
            role: seat.role,
            members: 1,
        };
        let mut reservations: Vec<Reservation> = self.seats(here).iter().map(place).collect();
        let coming = |bits: &u64| Reservation {
            place: Place::Claim(claim),
            devices: DeviceSet(*bits),
            role: 0,
            members: 1,
        };
        reservations.extend(on_claim.iter().map(coming));
        let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
        OrderSpec {
            id: self.world.next_order(),
            gang: self.id(gang),
            claims: vec![(claim, offering)],
            reservations,
            deadline: self.now + Span::mins(15),
            after: Vec::new(),
            gap: 0,
            ways: Vec::new(),
        }
    }

    pub(crate) fn place(&mut self, order: OrderSpec) -> (OrderId, ClaimId) {
        let ids = (order.id, order.claims[0].0);
        self.ok(Event::Decided(Action::Order(order)));
        ids
    }

    /// The node of a claim, with this many GPUs.
    pub(crate) fn claim_node(&self, claim: ClaimId, gpus: u16) -> NodeSpec {
        let at = [("topology.kubernetes.io/zone", "a")];
        NodeSpec { claim: Some(claim), ..build::node(&format!("{claim:?}"), gpus, &at) }
    }

    /// The state: nodes, queues in use, pools in use, claims and gangs, a line each.
    pub(crate) fn show(&self) -> String {
        let (world, mut out) = (&self.world, String::new());
        for (idx, node) in world.nodes() {
            let state = world.states().get(world.node_state(idx).expect("here"));
            let cpu = state.free.iter().find(|(name, _)| world.names().name(*name) == CPU);
            let cpu = display_amount(CPU, cpu.map_or(0, |(_, cpu)| cpu));
            let gpus = state.devices.free_milli() as f64 / 1e3;
            let marks = [(!node.usable, " unusable"), (node.releasing, " releasing")];
            let marks: String = marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect();
            let of = state.devices.len();
            writeln!(
                out,
                "node {}: {gpus} of {of} gpus, {cpu} cores free, {} seats{marks}",
                node.name, node.seats
            )
            .expect("text");
        }
        for queue in world.queues().values().filter(|queue| queue.usage != Default::default()) {
            let gpus = queue.usage.gpu_milli as f64 / 1e3;
            writeln!(out, "queue {}: {gpus} gpus", queue.spec.name).expect("text");
        }
        for pool in world.pools().values() {
            let (name, usage) = (&pool.spec.name, pool.usage);
            let kinds: Vec<String> = pool
                .offerings
                .iter()
                .map(|kind| format!("{}*{}", kind.spec.zone, kind.nodes))
                .collect();
            let kinds = kinds.join(" ");
            writeln!(
                out,
                "pool {name}: {} nodes, {} gpus, {} hourly: {kinds}",
                usage.nodes, usage.gpus, usage.hourly
            )
            .expect("text");
        }
        for (id, claim) in world.claims() {
            let state = match claim.state {
                ClaimState::Registered(_) => "Registered".to_owned(),
                ClaimState::Ready(_) => "Ready".to_owned(),
                other => format!("{other:?}"),
            };
            let mark = if claim.releasing { ", releasing" } else { "" };
            writeln!(out, "claim {id:?} {}: {state}{mark}", claim.name).expect("text");
        }
        for (_, gang) in world.gangs() {
            let phase = match gang.phase {
                Phase::Admitted { .. } => "Admitted".to_owned(),
                Phase::Running { .. } => "Running".to_owned(),
                ref other => format!("{other:?}"),
            };
            let since = gang.submitted.since(Time::ZERO);
            let (restarts, failed) = (gang.restarts, gang.failed_orders);
            writeln!(
                out,
                "gang {} since {since}: {phase}, {restarts} restarts, {failed} failed",
                gang.spec.name
            )
            .expect("text");
        }
        out
    }
}
