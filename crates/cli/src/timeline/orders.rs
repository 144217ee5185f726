//! Prints orders, from their placement to the last node or the rollback.

use std::collections::BTreeMap;

use console::style;
use muster_core::World;
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::plan::StopReason;
use muster_core::time::Time;

use crate::figures::count;
use crate::timeline::events::Timeline;
use crate::words;

/// An order that is being assembled.
pub(crate) struct OrderLine {
    pub(crate) gang: GangId,
    claims: Vec<ClaimId>,
    ready: Vec<ClaimId>,
}

/// An order as it was placed.
pub(crate) struct Placed<'f> {
    pub(crate) gang: GangId,
    pub(crate) claims: &'f [(ClaimId, OfferingRef)],
    /// Seats on existing nodes.
    pub(crate) held: usize,
    /// The gangs that are preempted for it.
    pub(crate) after: &'f [GangId],
}

impl Placed<'_> {
    fn text(&self, world: &World) -> String {
        let victims = || words::gangs(world, self.after);
        match (self.claims, self.after) {
            ([], []) => format!("{} on existing nodes", count(self.held, "seat")),
            ([], _) => format!("nothing is bought: it preempts {}", victims()),
            (_, []) => self.bought(world),
            _ => format!("{}; it preempts {}", self.bought(world), victims()),
        }
    }

    fn bought(&self, world: &World) -> String {
        let mut kinds: BTreeMap<OfferingRef, u32> = BTreeMap::new();
        for (_, offering) in self.claims {
            *kinds.entry(*offering).or_default() += 1;
        }
        let mut hourly = Money::ZERO;
        let mut parts = Vec::new();
        for (offering, count) in kinds {
            let spec = &world.offering(offering).spec;
            hourly += spec.price.times(count);
            parts.push(format!("{count} x {} in {}", spec.instance_type, spec.zone));
        }
        let have = match self.held {
            0 => String::new(),
            held => format!(" beside {} on existing nodes", count(held, "seat")),
        };
        format!("one order for {}{have}, {hourly} an hour", parts.join(" + "))
    }
}

impl Timeline {
    pub(crate) fn ordered(
        &mut self,
        now: Time,
        world: &World,
        order: OrderId,
        placed: &Placed<'_>,
    ) {
        let stopped = world.gang(placed.gang).and_then(|gang| gang.stop);
        let word = match stopped {
            Some(StopReason::NodeLost(_) | StopReason::NodeFailing(_)) => "repair",
            _ => "order",
        };
        self.gang_line(now, &style(word).blue(), placed.gang, &placed.text(world));
        let claims = placed.claims.iter().map(|(claim, _)| *claim).collect();
        self.orders.insert(order, OrderLine { gang: placed.gang, claims, ready: Vec::new() });
    }

    pub(crate) fn topped_up(
        &mut self,
        now: Time,
        world: &World,
        order: OrderId,
        lost: ClaimId,
        claim: ClaimId,
        offering: OfferingRef,
    ) {
        let Some(entry) = self.orders.get_mut(&order) else { return };
        entry.claims.iter_mut().filter(|id| **id == lost).for_each(|id| *id = claim);
        let failed = world.claims().get(&lost).is_none_or(|claim| claim.stage().is_none());
        if !failed {
            return; // only a node that comes sooner
        }
        let (gang, ready, total) = (entry.gang, entry.ready.len(), entry.claims.len());
        let spec = &world.offering(offering).spec;
        let text = format!(
            "{ready}/{total} ready and one failed: another {} in {} is cheaper than starting over",
            spec.instance_type, spec.zone
        );
        self.gang_line(now, &style("top-up").yellow(), gang, &text);
    }

    pub(crate) fn node_ready(&mut self, now: Time, world: &World, claim: ClaimId, gpus: u16) {
        let wanted =
            world.claims().get(&claim).map_or(0, |claim| world.offering(claim.offering).spec.gpus);
        let Some(order) = self.orders.values_mut().find(|order| order.claims.contains(&claim))
        else {
            return;
        };
        if gpus < wanted || order.ready.contains(&claim) {
            return;
        }
        order.ready.push(claim);
        let (gang, ready, total) = (order.gang, order.ready.len(), order.claims.len());
        let text = format!("{} {ready}/{total} nodes ready with every GPU", meter(ready, total));
        self.gang_line(now, &style("ready").green(), gang, &text);
    }

    pub(crate) fn rolled_back(&mut self, now: Time, order: OrderId, gang: GangId, why: &str) {
        let text = format!("{why}: the whole order is rolled back, nothing starts");
        self.gang_line(now, &style("rollback").red().bold(), gang, &text);
        let Some(order) = self.orders.remove(&order) else { return };
        let (kept, dropped) = (order.ready.len(), order.claims.len() - order.ready.len());
        let text = match (kept, dropped) {
            (0, 0) => return,
            (0, dropped) => format!("{} released", count(dropped, "node")),
            (kept, 0) => format!("{} kept for other gangs", count(kept, "ready node")),
            (kept, dropped) => {
                format!("{} kept for other gangs, {dropped} released", count(kept, "ready node"))
            }
        };
        self.gang_line(now, &style("").dim(), gang, &text);
    }
}

/// The longest meter, in nodes; beyond it each mark stands for more than one.
const METER: usize = 16;

/// `■■■□□□□□`: the ready nodes of an order.
pub(crate) fn meter(ready: usize, total: usize) -> String {
    let marks = total.min(METER);
    let full = ready * marks / total.max(1);
    (0..marks).map(|i| if i < full { '■' } else { '□' }).collect()
}

#[cfg(test)]
mod tests {
    use muster_core::event::Event;
    use muster_core::id::PoolIdx;

    use super::*;

    const WORLD: &str = "
{kind: Gang, metadata: {name: a}, spec: {roles: [{name: w, min: 1}]}}
---
{kind: Gang, metadata: {name: b}, spec: {roles: [{name: w, min: 1}]}}
---
kind: Pool
metadata: {name: p}
spec: {tier: spot, offerings: [{instanceType: m, zone: z, price: 2.5, allocatable: {cpu: 1}}]}
";

    #[test]
    fn order_shows_purchases_and_preempted_gangs() {
        let read = muster_api::read_texts(&[("w.yaml", WORLD)]).expect("it is good");
        let mut world = World::new(read.levels);
        let queues = read.queues.into_iter().map(Event::QueueSet);
        let pools = read.pools.into_iter().map(|pool| Event::PoolSet(pool.spec));
        let gangs = read.gangs.into_iter().map(|gang| Event::GangSubmitted(gang.spec));
        for event in queues.chain(pools).chain(gangs) {
            world.apply(Time::ZERO, &event).expect("it fits");
        }
        let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
        let two = [(ClaimId(0), offering), (ClaimId(1), offering)];
        let gangs = [GangId(0), GangId(1)];
        let text =
            |claims, held, after| Placed { gang: GangId(2), claims, held, after }.text(&world);
        for (shown, expected) in [
            (text(&two, 0, &[]), "one order for 2 x m in z, 5.00 an hour"),
            (
                text(&two[..1], 3, &gangs[..1]),
                "one order for 1 x m in z beside 3 seats on existing nodes, 2.50 an hour; it preempts default/a",
            ),
            (
                text(&two, 0, &gangs),
                "one order for 2 x m in z, 5.00 an hour; it preempts default/a and default/b",
            ),
            (text(&[], 4, &gangs[..1]), "nothing is bought: it preempts default/a"),
            (text(&[], 4, &gangs), "nothing is bought: it preempts default/a and default/b"),
            (text(&[], 1, &[]), "1 seat on existing nodes"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
