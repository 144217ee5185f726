//! What the first in line was promised is never put off, where age decides: neither by who comes later nor by
//! who goes before.
//!
//! A start time is worked out from what submitters say. It may move only when that turned out wrong, or when
//! something broke: a gang outlived what was said, was stopped or cancelled, an order or a node came or went.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::Fact;
use muster_core::id::GangId;
use muster_core::time::{Span, Time};

use crate::promises::books::{Books, GangEntry};
use crate::promises::queue::overtaking::waits;
use crate::promises::{Promise, Violation};

/// What the first in line was last promised, and who runs until when if submitters are right.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    promised: Option<(GangId, Time)>,
    /// Something broke since the last promises.
    disturbed: bool,
    said_ends: BTreeMap<GangId, Time>,
    soonest: BTreeSet<(Time, GangId)>,
}

/// How long a gang takes from its start, as its submitter says. Nobody says it of one that may have done a part
/// of it before, or that is as fast as it has members.
pub(crate) fn said(entry: &GangEntry) -> Option<Span> {
    let plain = entry.spec.is_rigid() && entry.spec.disruption.checkpoint.is_none();
    plain.then(|| entry.spec.said_duration())
}

impl Starts {
    pub(crate) fn note(&mut self, now: Time, fact: &Fact, said: impl Fn(GangId) -> Option<Span>) {
        match fact {
            Fact::GangStarted { gang } => {
                let end = now + said(*gang).unwrap_or(Span::ZERO);
                self.said_ends.insert(*gang, end);
                self.soonest.insert((end, *gang));
            }
            Fact::GangEnded { gang } => {
                self.disturbed |= self.forget(*gang).is_some_and(|end| end < now);
            }
            Fact::GangStopped { gang, .. } => {
                self.forget(*gang);
                self.disturbed = true;
            }
            // Whoever is more important may put others off.
            Fact::GangSubmitted { spec, .. } => self.disturbed |= spec.priority != 0,
            Fact::GangRefused { .. }
            | Fact::MembersStarted { .. }
            | Fact::MembersStopped { .. } => {}
            _ => self.disturbed = true,
        }
    }

    fn forget(&mut self, gang: GangId) -> Option<Time> {
        let end = self.said_ends.remove(&gang)?;
        self.soonest.remove(&(end, gang));
        Some(end)
    }
}

/// Compares what is promised now with what was promised before, to those who still wait.
pub(crate) fn promised(
    books: &Books,
    starts: &mut Starts,
    now: &[(GangId, Time)],
    found: &mut Vec<Violation>,
) {
    let outlived = starts.soonest.first().is_some_and(|(end, _)| *end <= books.now);
    // How long nodes take to boot is nobody's word.
    let booting = !books.orders.is_empty();
    // Whoever stands ahead without a promise waits under a limit, and may come into his own again.
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

/// Whether nobody who is older, or more important, waits.
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
