//! No gang overtakes a waiting gang on what it waits for, where gangs start first come, first served.

use muster_core::id::GangId;

use crate::promises::books::{Books, GangEntry};
use crate::promises::{Promise, Violation};

/// A gang that waited at the last check and still waits was overtaken if a gang that ranks behind it and
/// wants nodes of the same kind has been served since.
pub(crate) fn check(books: &mut Books, found: &mut Vec<Violation>) {
    let served = std::mem::take(&mut books.served);
    if !books.terms.first_come_first_served {
        return;
    }
    for ahead in &books.waiting {
        let Some(first) = books.gangs.get(ahead).filter(|gang| waits(gang)) else { continue };
        if books.excused.contains(ahead) {
            continue;
        }
        for behind in &served {
            let Some(second) = books.gangs.get(behind) else { continue };
            if ranks_before((*ahead, first), (*behind, second)) && want_the_same(first, second) {
                let what = format!(
                    "{} was served before {}, which waits longer",
                    second.spec.name, first.spec.name
                );
                found.push(books.violation(Promise::NoStarvation, what));
            }
        }
    }
    books.waiting = books.gangs.iter().filter(|(_, gang)| waits(gang)).map(|(id, _)| *id).collect();
}

pub(crate) fn waits(gang: &GangEntry) -> bool {
    gang.members.is_empty() && gang.order.is_none() && !gang.cancelled
}

fn ranks_before(first: (GangId, &GangEntry), second: (GangId, &GangEntry)) -> bool {
    let rank = |(id, gang): (GangId, &GangEntry)| {
        (std::cmp::Reverse(gang.spec.priority), gang.in_line_since, id)
    };
    rank(first) < rank(second)
}

/// Whether every role of the second asks for what some role of the first asks for.
fn want_the_same(first: &GangEntry, second: &GangEntry) -> bool {
    let kind =
        |role: &muster_core::gang::RoleSpec| (role.request.clone(), role.constraints.clone());
    let wanted: Vec<_> = first.spec.roles.iter().map(kind).collect();
    second.spec.roles.iter().all(|role| wanted.contains(&kind(role)))
}
