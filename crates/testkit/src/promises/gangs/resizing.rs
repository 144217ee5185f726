//! A running gang loses members only when it was told to resize, and ends up with the told size.

use muster_core::Fact;
use muster_core::gang::{Seat, members_of};
use muster_core::id::GangId;

use crate::promises::books::{Books, GangEntry, Resizing};
use crate::promises::{Promise, Violation};

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::GangResizing { gang, to, joins, .. } => {
            joined(books, *gang);
            books.hold(joins);
            books.joins.insert(*gang, joins.clone());
            let now = books.now;
            let Some(entry) = books.gangs.get_mut(gang) else { return };
            entry.resizing = Some(Resizing { told: now, to: *to, done: false });
            if entry.started.is_none() {
                let what =
                    format!("{} is to have other members and does not run", books.name(*gang));
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
        }
        Fact::GangChanged { gang, spec } => {
            if let Some(entry) = books.gangs.get_mut(gang) {
                entry.spec = spec.clone();
                books.touched.insert(*gang);
            }
        }
        Fact::ResizeDeclined { gang } => done(books, *gang, None, found),
        Fact::GangResized { gang } => {
            let to = books.gangs.get(gang).and_then(|entry| entry.resizing).map(|told| told.to);
            if to.is_none() {
                let what = format!("{} has other members and was not told to", books.name(*gang));
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
            done(books, *gang, to, found);
        }
        Fact::GangStopped { gang, .. } | Fact::GangEnded { gang } => joined(books, *gang),
        _ => {}
    }
}

/// A gang has the members it was to get, or gets none: nothing is reserved for them any longer.
fn joined(books: &mut Books, gang: GangId) {
    if let Some(nodes) = books.joins.remove(&gang) {
        books.let_go(&nodes);
    }
}

/// A gang has the members it was told to have, or those it declined to change.
fn done(books: &mut Books, gang: GangId, to: Option<u32>, found: &mut Vec<Violation>) {
    joined(books, gang);
    let Some(entry) = books.gangs.get_mut(&gang) else { return };
    if let Some(resizing) = &mut entry.resizing {
        resizing.done = true;
    }
    books.touched.insert(gang);
    let gone = |seat: &Seat| !books.nodes.contains_key(&seat.node);
    entry.lost_node &= entry.members.iter().any(gone);
    let has = members_of(&entry.members);
    if let Some(to) = to.filter(|to| *to != has) {
        let what = format!("{} was told to have {to} members and has {has}", books.name(gang));
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
}

/// Whether members of a gang stopped since the last check, and whether it was told to resize. Completed resizes are
/// dropped.
pub(crate) fn look(entry: &mut GangEntry) -> (bool, bool) {
    let resizes = entry.resizing.is_some();
    entry.resizing = entry.resizing.filter(|resizing| !resizing.done);
    (!std::mem::take(&mut entry.shed).is_empty(), resizes)
}

#[cfg(test)]
mod tests {
    use crate::promises::fixture::{Fixture, elastic};

    #[test]
    fn members_may_stop_when_the_gang_was_told_to_shrink() {
        let mut fixture = Fixture::new(&[]);
        let gang = fixture.submit(elastic("a", 2, 6));
        fixture.start(gang, 5);
        fixture.resizing(gang, 5, 3);
        fixture.drop_members(gang, 2);
        fixture.resized(gang);
        fixture.check();
        fixture.resizing(gang, 3, 4);
        fixture.add_members(gang, 1);
        fixture.resized(gang);
        fixture.check();
        assert_eq!(fixture.broken(), [""; 0]);
        fixture.drop_members(gang, 1);
        fixture.check();
        assert_eq!(fixture.broken(), ["a lost members and was not told to"]);
    }

    #[test]
    fn no_gang_shrinks_below_its_minimum() {
        let mut fixture = Fixture::new(&[]);
        let gang = fixture.submit(elastic("a", 4, 6));
        fixture.start(gang, 5);
        fixture.resizing(gang, 5, 3);
        fixture.drop_members(gang, 2);
        fixture.resized(gang);
        fixture.check();
        let below = "a has only 3 members running, below the minimum of a role";
        assert_eq!(fixture.broken(), [below]);
    }

    #[test]
    fn resized_gang_has_the_told_size() {
        let mut fixture = Fixture::new(&[]);
        let gang = fixture.submit(elastic("a", 1, 6));
        fixture.start(gang, 5);
        fixture.resizing(gang, 5, 4);
        fixture.drop_members(gang, 2);
        fixture.resized(gang);
        assert_eq!(fixture.broken(), ["a was told to have 4 members and has 3"]);
    }
}
