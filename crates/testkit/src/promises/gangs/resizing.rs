//! A gang that goes on loses members only when it was told to have others, and ends up with those.

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

/// A gang has the members it was to get, or gets none: nothing is kept for them any longer.
fn joined(books: &mut Books, gang: GangId) {
    if let Some(nodes) = books.joins.remove(&gang) {
        books.let_go(&nodes);
    }
}

/// A gang has the members it was told to have, or those it wanted.
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

/// Whether members of a gang stopped since it was last looked at, and whether it was told to have others. What
/// is over is forgotten.
pub(crate) fn look(entry: &mut GangEntry) -> (bool, bool) {
    let resizes = entry.resizing.is_some();
    entry.resizing = entry.resizing.filter(|resizing| !resizing.done);
    (!std::mem::take(&mut entry.shed).is_empty(), resizes)
}

#[cfg(test)]
mod tests {
    use crate::promises::fixture::{Stage, elastic};

    #[test]
    fn members_may_go_when_the_gang_was_told_to_have_fewer() {
        let mut stage = Stage::new(&[]);
        let gang = stage.submit(elastic("a", 2, 6));
        stage.start(gang, 5);
        stage.resizing(gang, 5, 3);
        stage.drop_members(gang, 2);
        stage.resized(gang);
        stage.check();
        stage.resizing(gang, 3, 4);
        stage.add_members(gang, 1);
        stage.resized(gang);
        stage.check();
        assert_eq!(stage.broken(), [""; 0]);
        stage.drop_members(gang, 1);
        stage.check();
        assert_eq!(stage.broken(), ["a lost members and was not told to"]);
    }

    #[test]
    fn nobody_is_left_with_less_than_its_minimum() {
        let mut stage = Stage::new(&[]);
        let gang = stage.submit(elastic("a", 4, 6));
        stage.start(gang, 5);
        stage.resizing(gang, 5, 3);
        stage.drop_members(gang, 2);
        stage.resized(gang);
        stage.check();
        let below = "a has only 3 members running, below the minimum of a role";
        assert_eq!(stage.broken(), [below]);
    }

    #[test]
    fn a_gang_has_what_it_was_told_to_have() {
        let mut stage = Stage::new(&[]);
        let gang = stage.submit(elastic("a", 1, 6));
        stage.start(gang, 5);
        stage.resizing(gang, 5, 4);
        stage.drop_members(gang, 2);
        stage.resized(gang);
        assert_eq!(stage.broken(), ["a was told to have 4 members and has 3"]);
    }
}
