//! The promised start of the first gang in the queue is never delayed, where age decides: neither by later gangs nor
//! by gangs ahead of it.
//!
//! A start time is computed from estimates. It may move only when an estimate turned out wrong, or when something
//! failed: a gang outlived its estimate, was stopped or cancelled, an order or a node appeared or went.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::Fact;
use muster_core::id::GangId;
use muster_core::time::{Span, Time};

use crate::promises::books::{Books, GangEntry};
use crate::promises::queue::overtaking::waits;
use crate::promises::{Promise, Violation};

/// The last promise to the first gang in the queue, and the estimated ends of running gangs.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    promised: Option<(GangId, Time)>,
    /// Something failed since the last promises.
    disturbed: bool,
    estimated_ends: BTreeMap<GangId, Time>,
    soonest: BTreeSet<(Time, GangId)>,
}

/// The estimated run time of a gang from its start. None for a gang that may have done part of its work before, or
/// whose speed depends on its members.
pub(crate) fn estimate(entry: &GangEntry) -> Option<Span> {
    let plain = entry.spec.is_rigid() && entry.spec.disruption.checkpoint.is_none();
    plain.then(|| entry.spec.estimated_duration())
}

impl Starts {
    pub(crate) fn note(
        &mut self,
        now: Time,
        fact: &Fact,
        estimate: impl Fn(GangId) -> Option<Span>,
    ) {
        match fact {
            Fact::GangStarted { gang } => {
                let end = now + estimate(*gang).unwrap_or(Span::ZERO);
                self.estimated_ends.insert(*gang, end);
                self.soonest.insert((end, *gang));
            }
            Fact::GangEnded { gang } => {
                self.disturbed |= self.forget(*gang).is_some_and(|end| end < now);
            }
            Fact::GangStopped { gang, .. } => {
                self.forget(*gang);
                self.disturbed = true;
            }
            // A gang of higher priority may delay others.
            Fact::GangSubmitted { spec, .. } => self.disturbed |= spec.priority != 0,
            Fact::GangRefused { .. }
            | Fact::MembersStarted { .. }
            | Fact::MembersStopped { .. } => {}
            _ => self.disturbed = true,
        }
    }

    fn forget(&mut self, gang: GangId) -> Option<Time> {
        let end = self.estimated_ends.remove(&gang)?;
        self.soonest.remove(&(end, gang));
        Some(end)
    }
}

/// Compares the promises now with those before, for gangs that still wait.
pub(crate) fn promised(
    books: &Books,
    starts: &mut Starts,
    now: &[(GangId, Time)],
    found: &mut Vec<Violation>,
) {
    let outlived = starts.soonest.first().is_some_and(|(end, _)| *end <= books.now);
    // Boot times are not estimates of submitters.
    let booting = !books.orders.is_empty();
    // A gang ahead without a promise waits under a limit, and may get its place again.
    let first = now.first().copied().filter(|(gang, _)| is_first_in_line(books, *gang));
    if let (Some((before, promised)), Some((gang, start))) = (starts.promised, first)
        && before == gang
        && start > promised
        && !starts.disturbed
        && !outlived
        && !booting
    {
        let (name, was) = (books.name(gang), promised.as_secs_f64());
        let start = start.as_secs_f64();
        let what =
            format!("{name} was promised a start at {was:.0}s and is put off to {start:.0}s");
        found.push(books.violation(Promise::NoStarvation, what));
    }
    starts.disturbed = false;
    starts.promised = first;
}

/// Whether no older gang, or gang of higher priority, waits.
fn is_first_in_line(books: &Books, gang: GangId) -> bool {
    let Some(entry) = books.gangs.get(&gang) else { return false };
    let ahead = |(id, other): (&GangId, &GangEntry)| {
        let (own, its) = (entry.spec.priority, other.spec.priority);
        waits(other) && (its > own || (its == own && *id < gang))
    };
    if books.has_priorities {
        !books.gangs.iter().any(ahead)
    } else {
        !books.gangs.range(..gang).any(ahead)
    }
}
