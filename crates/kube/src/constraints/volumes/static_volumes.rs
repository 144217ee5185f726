//! Volumes that somebody has made by hand for claims that wait for their first pod, such as disks of a node.
//!
//! Where only one node reaches each of them they are tokens, of which a node has as many as it has such volumes, and the
//! planner counts them with everything else. Which claim gets which is settled when the gang has its seats (`choose`).
//! Where several nodes reach one it cannot be counted by nodes, and a claim that several members use is no member's own:
//! then each claim is dealt its volume before the gang is placed. That is stricter than need be.
//!
//! Claims that ask for different things may want the same volumes. A token is all volumes that are right for one of these
//! things. A claim takes one of each token whose volumes it could have, but for those that ask for more than it does. If no
//! token is taken more often than there is of it, everybody can be given a volume: look at the tokens from the least
//! demanding one on, and keep those that have no volume in common with one that was kept. Each claim is counted in one that
//! was kept, since the token that its own had to make room for asks for no more; and so there are no more claims than
//! volumes. The same holds for any part of the claims, which is what it takes (Hall).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraints::cluster_view::{ClusterView, Member, namespace, suits};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::tokens::Meaning;
use crate::constraints::volumes::claims::{Store, claims, class_of, is_by_hand, is_there};
use crate::constraints::volumes::index::{VolumeIndex, give_out};
use crate::constraints::volumes::volume::{Shape, StoredVolume};

/// Who wants volumes, and what is not to be had.
#[derive(Debug)]
pub(crate) struct StaticVolumes<'a> {
    pub(crate) disks: &'a VolumeIndex,
    /// What claims of others ask for that are counted by tokens.
    pub(crate) others: BTreeSet<&'a Shape>,
    /// Volumes that were promised to others.
    pub(crate) promised: BTreeSet<&'a str>,
}

impl StaticVolumes<'_> {
    /// Whether a claim could be given a volume now.
    pub(crate) fn is_free(&self, name: &str, disk: &StoredVolume) -> bool {
        disk.is_open && disk.owner.is_none() && !self.promised.contains(name)
    }

    fn free<'a>(
        &'a self,
        shape: &'a Shape,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a StoredVolume)> {
        self.disks.like(shape).filter(|(name, disk)| self.is_free(name, disk))
    }

    /// Whether a claim counts among those that want what another asks for.
    fn counts(&self, own: &Shape, other: &Shape) -> bool {
        own == other || (!other.is_narrower_than(own) && self.disks.could_meet(own, other))
    }
}

/// What claims of a gang that want a volume made by hand ask for, and which members use them.
type WatchedKind = BTreeMap<String, (Shape, Vec<usize>)>;

/// Sees to it that members go where their claims can be given volumes.
pub(crate) fn by_hand(
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    store: &impl Store,
    tied: &mut [PodConstraints],
) {
    let mut wanted = WatchedKind::new();
    for (at, one) in tied.iter().enumerate() {
        for (claim, shape) in &one.wants {
            let (_, users) =
                wanted.entry(claim.clone()).or_insert_with(|| (shape.clone(), Vec::new()));
            users.push(at);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let market = store.market();
    // Most claims of a gang ask for the same.
    let mut at_home: BTreeMap<Shape, bool> = BTreeMap::new();
    let mut is_at_home = |shape: &Shape| {
        let look = || market.free(shape).all(|(_, disk)| disk.home.is_some());
        *at_home.entry(shape.clone()).or_insert_with(look)
    };
    let (counted, dealt): (WatchedKind, WatchedKind) =
        wanted.into_iter().partition(|(_, (shape, users))| users.len() == 1 && is_at_home(shape));
    for claim in dealt.keys() {
        tied.iter_mut().for_each(|one| drop(one.wants.remove(claim)));
    }
    count(&counted, &market, tied);
    deal(&dealt, gang, around, (&market, store), tied);
}

/// What members of a gang hold that was found with its seats, as far as it is known: as many tokens as it was placed by,
/// whether its claims have their volumes by now or not.
pub(crate) fn found(gang: &[Member<'_>], store: &impl Store, tied: &mut [PodConstraints]) {
    let mut wanted = WatchedKind::new();
    for (at, member) in gang.iter().enumerate() {
        for name in claims(member.pod) {
            let Some(claim) = store.claim(namespace(member.pod), &name) else { continue };
            let is_by_hand = class_of(claim, store).is_some_and(is_by_hand);
            if let Some(shape) = Shape::of(claim).filter(|_| is_by_hand) {
                let key = format!("{}/{name}", namespace(member.pod));
                wanted.entry(key).or_insert((shape, Vec::new())).1.push(at);
            }
        }
    }
    if wanted.is_empty() {
        return;
    }
    let market = store.market();
    wanted.retain(|_, (shape, users)| {
        users.len() == 1 && market.disks.like(shape).all(|(_, disk)| disk.home.is_some())
    });
    for (claim, (shape, users)) in &wanted {
        users.iter().for_each(|at| drop(tied[*at].wants.insert(claim.clone(), shape.clone())));
    }
    count(&wanted, &market, tied);
    tied.iter_mut().for_each(|one| one.waits = None);
}

/// Counts the claims of each member in every token that they could be in each other's way by.
fn count(counted: &WatchedKind, market: &StaticVolumes<'_>, tied: &mut [PodConstraints]) {
    let own: BTreeSet<&Shape> = counted.values().map(|(shape, _)| shape).collect();
    let all: BTreeSet<&Shape> = market.others.iter().chain(&own).copied().collect();
    let counts_in = |own: &Shape| -> Vec<&Shape> {
        all.iter().filter(|one| market.counts(own, one)).copied().collect()
    };
    let counts_in: BTreeMap<&Shape, Vec<&Shape>> =
        own.iter().map(|own| (*own, counts_in(own))).collect();
    for (shape, users) in counted.values() {
        if market.free(shape).next().is_none() {
            users.iter().for_each(|at| tied[*at].wait(format!("needs {shape}, and there is none")));
        }
    }
    for one in tied {
        let mut takes: BTreeMap<&Shape, u64> = BTreeMap::new();
        for shape in one.wants.values().filter_map(|own| counts_in.get(own)).flatten() {
            *takes.entry(shape).or_default() += 1;
        }
        takes.into_iter().for_each(|(shape, n)| one.take(Meaning::StoredVolume(shape.clone()), n));
    }
}

/// Gives each claim a volume, and puts those who use it where that can be reached.
fn deal(
    dealt: &WatchedKind,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    (market, store): (&StaticVolumes<'_>, &impl Store),
    tied: &mut [PodConstraints],
) {
    let mut claims: Vec<(&String, &(Shape, Vec<usize>))> = dealt.iter().collect();
    claims.sort_by_key(|(claim, (shape, _))| (shape.bytes(), *claim));
    let could_have = |(_, (shape, users)): &(&String, &(Shape, Vec<usize>))| {
        let will_do = |disk: &StoredVolume| {
            let mut nodes = around.nodes.iter().filter(|node| disk.is_reached_from(node));
            nodes.any(|node| users.iter().all(|at| suits(gang[*at].constraints, node)))
        };
        let mut disks: Vec<_> = market.free(shape).filter(|(_, disk)| will_do(disk)).collect();
        disks.sort_by_key(|(name, disk)| (disk.bytes, *name));
        disks.into_iter().map(|(name, _)| name.clone()).collect()
    };
    let wanted: Vec<Vec<Arc<str>>> = claims.iter().map(could_have).collect();
    for ((claim, (shape, users)), disk) in claims.into_iter().zip(give_out(&wanted)) {
        for at in users {
            let volume = disk.as_deref().and_then(|disk| store.volume(disk));
            match (volume, &disk) {
                (Some(volume), Some(disk)) => {
                    is_there(volume, store, &mut tied[*at]);
                    tied[*at].given.insert(claim.clone(), disk.clone());
                }
                _ => tied[*at].wait(format!("needs {shape}, and none is left")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use crate::constraints::cluster_view::play::{around, node, pod, text};
    use crate::constraints::volumes::lister::play::Shop;
    use crate::constraints::volumes::static_volumes::*;
    use crate::constraints::volumes::volume::play::{claim, disk};

    /// What members come to, of whom each has these claims: `data=10Gi`.
    fn outcome(disks: &str, others: &str, members: &str) -> String {
        let nodes = [node("a", "1"), node("b", "2")];
        let shape = |size: &str| {
            let (size, kind) = size.split_once('/').unwrap_or((size, ""));
            let more = match kind {
                "" => json!({}),
                kind => json!({"selector": {"matchLabels": {"kind": kind}}}),
            };
            Shape::of(&claim("local", size, &more)).expect("a claim")
        };
        let mut shop =
            Shop { others: others.split_whitespace().map(shape).collect(), ..Shop::default() };
        for (at, text) in disks.split(", ").enumerate() {
            let (text, kind) = text.split_once('/').unwrap_or((text, ""));
            let mut disk = disk(&format!("local {text}"));
            disk.metadata.labels = Some([("kind".to_owned(), kind.to_owned())].into());
            shop.shelve(&format!("pv-{at}"), disk);
        }
        let member = |claims: &str| {
            let one = |claim: &str| {
                let (name, size) = claim.split_once('=').expect("name=size");
                (format!("here/{name}"), shape(size))
            };
            let mut tied = PodConstraints::default();
            tied.wants = claims.split_whitespace().map(one).collect();
            tied
        };
        let mut tied: Vec<PodConstraints> = members.split('|').map(member).collect();
        let (pod, constraints) = (pod("db", &json!({})), Constraints::default());
        let gang = vec![Member { pod: &pod, constraints: &constraints }; tied.len()];
        by_hand(&gang, &around(&nodes, &[]), &shop, &mut tied);
        let token = "a free volume of class local with ";
        let all: Vec<String> = tied.iter().map(|tied| text(tied).replace(token, "")).collect();
        all.join(" | ").replace(" on the node", "").replace("kubernetes.io/hostname", "host")
    }

    #[test]
    fn members_go_where_their_claims_can_be_given_volumes() {
        // Volumes, what others ask for, what members do, and what comes of it.
        for (disks, others, members, expected) in [
            ("10Gi on a, 20Gi on b", "", "x=10Gi|y=10Gi", "1 of 10Gi | 1 of 10Gi"),
            ("10Gi on a, 20Gi on b", "", "x=10Gi|y=20Gi", "1 of 10Gi | 1 of 10Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "", "x=10Gi y=20Gi", "2 of 10Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "5Gi", "x=20Gi", "1 of 5Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "30Gi", "x=10Gi", "1 of 10Gi"),
            // Whoever looks for other labels is in the way only if there are volumes that have both.
            ("9Gi on a/x, 9Gi on a/y", "1Gi/y", "x=1Gi/x", "1 of 1Gi and kind=x"),
            ("10Gi on a", "", "x=20Gi", "1 of 20Gi; waits: needs 20Gi, and there is none"),
            // What several nodes reach, or several members use, is dealt.
            ("10Gi in 1, 20Gi in 2", "", "x=10Gi|y=10Gi", "zone In([1]) | zone In([2])"),
            ("10Gi in 1, 20Gi in 2", "", "x=20Gi|y=10Gi", "zone In([2]) | zone In([1])"),
            ("10Gi in 1, 20Gi", "", "x=10Gi|y=10Gi", "zone In([1]) | "),
            ("10Gi in 1", "", "x=9Gi|y=9Gi", "zone In([1]) | waits: needs 9Gi, and none is left"),
            ("10Gi in 3", "", "x=9Gi", "waits: needs 9Gi, and none is left"),
            ("9Gi on b, 8Gi on a", "", "x=8Gi|x=8Gi", "host In([a]) | host In([a])"),
        ] {
            let got = outcome(disks, others, members);
            assert_eq!(got, expected, "{members} of {disks} beside {others}");
        }
    }
}
