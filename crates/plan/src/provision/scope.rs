//! Where the members of a gang may sit when nodes of an offering are added.

use muster_core::World;
use muster_core::gang::{Closeness, Gang};
use muster_core::id::{DomainIdx, OfferingRef};
use muster_core::topology::Level;

use crate::cycle::Cycle;

/// Where members may sit when nodes of an offering are added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Free nodes near the offering first, then farther away; new nodes wherever they come up.
    Anywhere(Vec<DomainIdx>),
    /// Only in this domain.
    Within([DomainIdx; 1]),
    /// All on one node, which is new: a free one was searched for already.
    OneNewNode,
}

impl Scope {
    pub(super) fn domains(&self) -> &[DomainIdx] {
        match self {
            Scope::Anywhere(domains) => domains,
            Scope::Within(domain) => domain,
            Scope::OneNewNode => &[],
        }
    }
    pub(super) fn allows(&self, world: &World, offering: OfferingRef) -> bool {
        match self {
            Scope::Anywhere(_) | Scope::OneNewNode => true,
            Scope::Within([domain]) => {
                world.topology().contains(*domain, world.offering(offering).leaf)
            }
        }
    }
}

/// `None` when the gang must stay within a domain and the offering does not say in which it comes up.
pub(super) fn scope(cycle: &Cycle<'_>, gang: &Gang, offering: OfferingRef) -> Option<Scope> {
    let topology = cycle.scratch.world.topology();
    let leaf = cycle.scratch.world.offering(offering).leaf;
    match (&gang.spec.closeness, gang.level) {
        (Some(Closeness::Required(_)), Some(Level::Node)) => Some(Scope::OneNewNode),
        (Some(Closeness::Required(_)), Some(Level::Domain(level))) => {
            let domain = topology.around(leaf, level)?;
            topology.is_named(domain).then_some(Scope::Within([domain]))
        }
        _ => Some(Scope::Anywhere(topology.path(leaf).collect())),
    }
}
