//! Spread members: no domain gets another member before all others that have room have as many.
//!
//! Nodes are kept even by a bound on how many members may share one, the lowest under which all members find a seat.
//! Wider domains get members by how many are there and how much room there is. A gang that says how close its members
//! are to be is spread within that. Spreading is a preference: where it is not possible, members are placed as if it
//! had not been asked for.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{DomainIdx, Id, LevelIdx};
use muster_core::topology::{Level, ROOT};
use smallvec::SmallVec;

use super::fill::Filling;
use super::fits::{Fits, Share, Want};
use super::gang::{Ask, Asks};
use super::search::{Sufficient, TRIES_PER_LEVEL, rank, survey};
use super::spread_counts::SpreadGroup;
use crate::scratch::Scratch;

/// What members of a role should be spread over.
#[derive(Clone, Default, Debug)]
struct SpreadOver {
    /// Nodes, and the spread group.
    nodes: Option<SpreadGroup>,
    /// Domains of these levels, the widest first.
    levels: SmallVec<[(LevelIdx, SpreadGroup); 1]>,
}

impl SpreadOver {
    fn of(scratch: &mut Scratch<'_>, gang: &Gang, ask: &Ask) -> Self {
        let mut over = Self::default();
        for spread in &gang.spec.roles[usize::from(ask.role)].spread {
            let Some(level) = scratch.world.topology().levels().find(&spread.over) else {
                continue;
            };
            let group = scratch.group(&spread.among);
            match level {
                Level::Node => over.nodes = over.nodes.or(Some(group)),
                Level::Domain(level) => over.levels.push((level, group)),
            }
        }
        over.levels.sort_by_key(|(level, _)| *level);
        over.levels.dedup_by_key(|(level, _)| *level);
        // Members that are to be close together are spread within that.
        match gang.level {
            Some(Level::Node) => over = Self::default(),
            Some(Level::Domain(within)) => over.levels.retain(|(level, _)| *level > within),
            None => {}
        }
        over
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_none() && self.levels.is_empty()
    }
}

/// Seats for all members of a gang, spread as preferred; none where spreading is not asked for, or not possible.
pub(super) fn place_spread(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
    asks: &Asks,
    wants: &[Want],
) -> Option<Vec<Seat>> {
    if gang.spec.roles.iter().all(|role| role.spread.is_empty()) {
        return None;
    }
    let over: SmallVec<[SpreadOver; 2]> =
        asks.iter().map(|ask| SpreadOver::of(scratch, gang, ask)).collect();
    if over.iter().all(SpreadOver::is_empty) {
        return None;
    }
    let spreading = Spreading { gang, asks, wants, over: &over };
    let mut domains = spreading.domains(scratch, fits)?.into_iter();
    domains.find_map(|candidates| spreading.try_each(scratch, fits, candidates))
}

/// A gang whose members are being spread.
struct Spreading<'s> {
    gang: &'s Gang,
    asks: &'s Asks,
    wants: &'s [Want],
    over: &'s [SpreadOver],
}

impl Spreading<'_> {
    /// Domains in which all of them may find seats, those of one size together, the smallest first.
    fn domains(&self, scratch: &Scratch<'_>, fits: &mut Fits) -> Option<Sufficient> {
        match self.gang.level {
            Some(Level::Domain(level)) => {
                let mut all = survey(scratch, fits, self.asks, self.wants, level.index() + 1);
                Some(all.pop().into_iter().collect())
            }
            _ if self.over.iter().any(|over| !over.levels.is_empty()) => {
                Some(vec![vec![(0, ROOT)]])
            }
            _ => self.as_even_as_anywhere(scratch, fits),
        }
    }

    /// Domains in which nodes are as even as they can be anywhere.
    fn as_even_as_anywhere(&self, scratch: &Scratch<'_>, fits: &mut Fits) -> Option<Sufficient> {
        let mut bounded: SmallVec<[Want; 2]> = SmallVec::new();
        for ((ask, want), over) in self.asks.iter().zip(self.wants).zip(self.over) {
            bounded.push(match over.nodes {
                Some(group) => lowest_bound(scratch, fits, ROOT, *want, group, ask.count)?,
                None => *want,
            });
        }
        let deepest = scratch.world.topology().levels().0.len();
        let mut all = survey(scratch, fits, self.asks, &bounded, deepest);
        all.reverse();
        Some(all)
    }

    /// Seats in the first of some domains that holds them all.
    fn try_each(
        &self,
        scratch: &mut Scratch<'_>,
        fits: &mut Fits,
        mut candidates: Vec<(u64, DomainIdx)>,
    ) -> Option<Vec<Seat>> {
        rank(scratch, fits, self.wants, &mut candidates);
        // Of several that would do, one where fewest share a node. A gang that may go anywhere has only such to
        // choose from.
        if candidates.len() > 1 && self.gang.level.is_some() {
            candidates
                .sort_by_cached_key(|(_, domain)| self.most_on_a_node(scratch, fits, *domain));
        }
        for (_, domain) in candidates.into_iter().take(TRIES_PER_LEVEL) {
            let mut trial = scratch.trial();
            let mut seats = Vec::new();
            let all = self.asks.iter().zip(self.wants).zip(self.over).all(|((ask, want), over)| {
                let whole = (ask, *want, ask.count);
                fill(&mut trial, fits, self.gang, domain, whole, over, &mut seats) == ask.count
            });
            if all {
                trial.keep();
                return Some(seats);
            }
        }
        None
    }

    /// How many would share a node of a domain where most do, as even as can be.
    fn most_on_a_node(
        &self,
        scratch: &Scratch<'_>,
        fits: &mut Fits,
        domain: DomainIdx,
    ) -> Option<u32> {
        let asked = self.asks.iter().zip(self.wants).zip(self.over);
        let bounds = asked.filter_map(|((ask, want), over)| {
            lowest_bound(scratch, fits, domain, *want, over.nodes?, ask.count)
        });
        bounds.filter_map(|want| want.share).map(|share| share.most).max()
    }
}

/// One more member of a role that should be spread, in a domain; whether there is a seat for it.
pub(crate) fn add_spread(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
    domain: DomainIdx,
    ask: &Ask,
    seats: &mut Vec<Seat>,
) -> bool {
    let over = SpreadOver::of(scratch, gang, ask);
    fill(scratch, fits, gang, domain, (ask, Want::any(ask.sig), 1), &over, seats) == 1
}

/// Seats so many members in a domain, as even as can be, and returns how many found a seat.
fn fill(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
    domain: DomainIdx,
    (ask, want, count): (&Ask, Want, u32),
    over: &SpreadOver,
    seats: &mut Vec<Seat>,
) -> u32 {
    if count == 0 {
        return 0;
    }
    if let Some((level, group)) = over.levels.first().copied() {
        let within = SpreadOver { nodes: over.nodes, levels: over.levels[1..].into() };
        let apportioned = apportion(scratch, fits, domain, want, (level, group), count);
        let apportioned = apportioned.unwrap_or_else(|| vec![(domain, count)]);
        return apportioned
            .into_iter()
            .map(|(part, count)| {
                fill(scratch, fits, gang, part, (ask, want, count), &within, seats)
            })
            .sum();
    }
    let bound =
        over.nodes.and_then(|group| lowest_bound(scratch, fits, domain, want, group, count));
    let mut left = count;
    // No node has as many as the bound says before all others have one fewer.
    let below = bound.and_then(|bound| {
        let share = bound.share.filter(|share| share.most > 1)?;
        Some(Want { share: Some(Share { most: share.most - 1, ..share }), ..bound })
    });
    for want in below.into_iter().chain([bound.unwrap_or(want)]) {
        let before = seats.len();
        left -= Filling { scratch, fits, ask, want, seats }.domain(domain, left);
        scratch.count_spread(gang, &seats[before..]);
    }
    count - left
}

/// The lowest bound on how many share a node under which so many members fit in a domain, if there is one.
fn lowest_bound(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    domain: DomainIdx,
    want: Want,
    group: SpreadGroup,
    count: u32,
) -> Option<Want> {
    let bounded = |most: u32| Want { share: Some(Share { group, most }), ..want };
    let mut fit = |most: u32| fits.in_domain(scratch, domain, bounded(most)) >= u64::from(count);
    let there = scratch.node_counts(group).values().flat_map(|here| here.values()).max();
    let mut enough = count.saturating_add(there.copied().unwrap_or(0));
    if !fit(enough) {
        return None;
    }
    let mut too_few = 0;
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        match fit(middle) {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Some(bounded(enough))
}

/// How many of so many members each domain of a level within another gets: the emptiest first, as long as they have room.
/// None when not all of them find some.
fn apportion(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    within: DomainIdx,
    want: Want,
    (level, group): (LevelIdx, SpreadGroup),
    count: u32,
) -> Option<Vec<(DomainIdx, u32)>> {
    let topology = scratch.world.topology();
    let domains = topology.of_level(level).iter().copied();
    let domains = domains.filter(|one| topology.is_named(*one) && topology.contains(within, *one));
    let node_counts = scratch.node_counts(group);
    let mut parts: Vec<Part> = domains
        .map(|domain| {
            let here = node_counts.iter().filter(|(leaf, _)| topology.contains(domain, **leaf));
            let there = here.flat_map(|(_, nodes)| nodes.values()).sum();
            Part { domain, there, room: fits.in_domain(scratch, domain, want) }
        })
        .collect();
    // Of those that have as few, the roomiest gets one first.
    parts.sort_by_key(|part| (std::cmp::Reverse(part.room), part.domain));
    Some(even_out(&parts, count)?.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// A domain: how many members are there already, and how many more fit.
struct Part {
    domain: DomainIdx,
    there: u32,
    room: u64,
}

fn even_out(parts: &[Part], count: u32) -> Option<Vec<(DomainIdx, u32)>> {
    let up_to = |part: &Part, height: u64| -> u64 {
        height.saturating_sub(u64::from(part.there)).min(part.room)
    };
    let seated = |height: u64| parts.iter().map(|part| up_to(part, height)).sum::<u64>();
    let count = u64::from(count);
    let highest = parts.iter().map(|part| u64::from(part.there)).max()? + count;
    if seated(highest) < count {
        return None;
    }
    let (mut low, mut high) = (0, highest);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if seated(middle) >= count { high = middle } else { low = middle }
    }
    let mut left = count - seated(low);
    let apportioned = parts.iter().map(|part| {
        let more = (up_to(part, high) - up_to(part, low)).min(left);
        left -= more;
        (part.domain, (up_to(part, low) + more) as u32)
    });
    Some(apportioned.collect())
}

#[cfg(test)]
mod tests {
    use crate::place::spread::*;

    #[test]
    fn the_emptiest_get_more_as_long_as_they_have_room() {
        // Members that are there and members that fit, of each domain; members; how many each gets.
        type Case<'a> = (&'a [(u32, u64)], u32, Option<&'a [u32]>);
        let cases: [Case<'_>; 7] = [
            (&[(0, 9), (0, 9), (0, 9)], 6, Some(&[2, 2, 2])),
            (&[(0, 9), (0, 9), (0, 9)], 7, Some(&[3, 2, 2])),
            (&[(2, 9), (0, 9)], 3, Some(&[1, 2])),
            (&[(5, 9), (0, 9)], 3, Some(&[0, 3])),
            (&[(0, 1), (0, 9)], 6, Some(&[1, 5])),
            (&[(0, 1), (0, 2)], 4, None),
            (&[], 1, None),
        ];
        for (parts, count, expected) in cases {
            let parts: Vec<Part> = (0u32..)
                .zip(parts)
                .map(|(at, (there, room))| Part {
                    domain: DomainIdx(at),
                    there: *there,
                    room: *room,
                })
                .collect();
            let apportioned = even_out(&parts, count);
            let apportioned = apportioned
                .map(|apportioned| apportioned.iter().map(|(_, n)| *n).collect::<Vec<_>>());
            assert_eq!(apportioned.as_deref(), expected, "{count}");
        }
    }
}
