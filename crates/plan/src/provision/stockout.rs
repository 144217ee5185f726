//! The odds that an offering is out of stock, by its own record and its neighbours'.

use muster_core::World;
use muster_core::id::OfferingRef;
use muster_core::time::Time;

/// How much a stock-out in one zone says about the others of its region: measured zones of one region were
/// correlated by 0.43.
const NEIGHBOURS: f64 = 0.4;

/// The odds that requesting from this offering now ends in a stock-out.
pub(crate) fn stockout_odds(world: &World, now: Time, offering: OfferingRef) -> f64 {
    let listed = world.offering(offering);
    let own = listed.health.out_of_stock(now);
    let answered = listed.health.last_answer();
    let mut odds = own;
    for other in world.pools().values().flat_map(|pool| &pool.offerings) {
        let near = other.spec.region == listed.spec.region
            && other.spec.instance_type == listed.spec.instance_type
            && other.spec.capacity_type == listed.spec.capacity_type;
        // An answer of the offering itself is worth more than earlier answers of its neighbours.
        if near && other.health.last_answer() > answered {
            odds = odds.max(NEIGHBOURS * other.health.out_of_stock(now));
        }
    }
    odds
}
