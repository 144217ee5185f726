//! The target of a pool: how many free nodes it should have now, and why.
//!
//! Reasons overlap: a node that is free because of the hour is as good to a gang as one that is free always. So the
//! target is the most that any reason asks for, and not the sum. Only the buffer, which grows with what is used,
//! comes on top of what is always warm; and spares, which are for gangs that wait already, on top of all.

use muster_core::id::PoolIdx;
use muster_core::plan::Target;
use muster_core::pool::Pool;
use muster_core::proactive::Buffer;
use muster_core::time::{Span, Time};

use super::inventory::PoolInventory;
use crate::cycle::{Cycle, earliest};
use crate::grow::below_maximum;
use crate::place::Ask;
use crate::provision::{members_per_node, offerings_for};

/// The target of a pool of which so many nodes are in use. Looks as far ahead as a node takes to boot, so that
/// it is there in time.
pub(super) fn of(cycle: &mut Cycle<'_>, idx: PoolIdx, held: &PoolInventory) -> Target {
    let in_use = held.in_use;
    let pool = &cycle.scratch.world.pools()[idx];
    let ahead = &pool.spec.ahead;
    let boots = pool.offerings.iter().map(|offering| offering.spec.boot_time);
    let lead = boots.max().unwrap_or_default();
    let warm = ahead.warm;
    let buffer = match ahead.buffer {
        None => 0,
        Some(Buffer::Nodes(nodes)) => nodes,
        Some(Buffer::Permille(permille)) => {
            (u64::from(in_use) * u64::from(permille)).div_ceil(1_000) as u32
        }
    };
    let (size, change) = scheduled(cycle, pool, lead);
    cycle.wake = earliest(cycle.wake, change);
    let scheduled = size.saturating_sub(in_use);
    let (mut expected, mut kept) = (0, 0);
    if let (Some(spec), Some(outlook)) = (&ahead.forecast, &pool.outlook) {
        let most = spec.max_nodes.unwrap_or(u32::MAX);
        expected = outlook.most_within(cycle.now, cycle.now + lead).min(most);
        kept = if spec.only_tell { 0 } else { expected };
        if !spec.only_tell {
            // More is requested a boot ahead of its hour, less is wanted when the hour is over.
            let more = outlook.next_change(cycle.now + lead).map(|at| at - lead);
            cycle.wake = earliest(cycle.wake, more.filter(|at| *at > cycle.now));
            cycle.wake = earliest(cycle.wake, outlook.next_change(cycle.now));
        }
    }
    // Rounded: one or two nodes have no spare.
    let spare = (u64::from(held.awaited) * u64::from(ahead.spare) + 500) / 1_000;
    let spare = spare as u32;
    let (replacing, growth) = (replacing(cycle, idx), growth(cycle, idx));
    let free = (warm + buffer).max(scheduled).max(kept) + spare + replacing + growth;
    // Gangs that wait for room in the pool come before gangs that may come.
    let contended = cycle.limits.contended_pools.contains(&idx);
    let (free, stopped) = if contended { (0, 0) } else { (free, ahead.stopped) };
    Target { free, stopped, warm, buffer, spare, replacing, growth, scheduled, expected }
}

/// Nodes of a pool in use that will be gone: another is there when that happens.
fn replacing(cycle: &Cycle<'_>, idx: PoolIdx) -> u32 {
    let world = cycle.scratch.world;
    let used = |node| {
        let here = world.node(node)?;
        let pool = world.claims().get(&here.claim?)?.offering.pool;
        (pool == idx && here.seats > 0).then_some(())
    };
    world.noticed().filter_map(|(_, node)| used(node)).count() as u32
}

/// Nodes of a pool that running gangs could grow onto, where the pool says that they may be bought for that: as many
/// as would be full. The members that a gang lacks are counted in the first such pool that suits it, and nowhere
/// else.
fn growth(cycle: &mut Cycle<'_>, idx: PoolIdx) -> u32 {
    let world = cycle.scratch.world;
    if !world.pools()[idx].spec.grow {
        return 0;
    }
    let mut thousandths: u64 = 0;
    for (gang, role, lacking) in below_maximum(cycle) {
        let ask = Ask { role, sig: gang.sigs[usize::from(role)], count: lacking };
        let offerings = offerings_for(cycle, gang, &ask).into_iter();
        let first = offerings.filter(|o| world.pools()[o.pool].spec.grow).min_by_key(|o| o.pool);
        let Some(offering) = first.filter(|offering| offering.pool == idx) else { continue };
        let each = u64::from(members_per_node(cycle, offering, &ask).max(1));
        thousandths += u64::from(lacking) * 1_000 / each;
    }
    u32::try_from(thousandths / 1_000).unwrap_or(u32::MAX)
}

/// How large the pool should be because of the hour, and when that changes next.
fn scheduled(cycle: &Cycle<'_>, pool: &Pool, lead: Span) -> (u32, Option<Time>) {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let ahead = world.unix_ms(now + lead);
    let at = |unix_ms: i64| now + Span((unix_ms - world.unix_ms(now)).max(0).unsigned_abs());
    let (mut size, mut change) = (0, None);
    for (schedule, calendar) in pool.spec.ahead.schedules.iter().zip(&pool.calendars) {
        let lasts = i64::try_from(schedule.duration.0).unwrap_or(i64::MAX);
        if let Some(start) = calendar.last(ahead) {
            let end = start.saturating_add(lasts);
            if world.unix_ms(now) < end {
                size = size.max(schedule.nodes);
                change = earliest(change, Some(at(end)));
            }
        }
        let next = calendar.next(ahead).map(|start| at(start) - lead);
        change = earliest(change, next.map(|next| next.max(now + Span(1))));
    }
    (size, change)
}
