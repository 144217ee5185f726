//! Promises about crashes and bad input.

use std::collections::BTreeSet;

use crate::promises::books::Books;
use crate::promises::{HostReport, Promise, Violation};

/// Compares the books with a host's own state after a restart, or at any other time.
pub(crate) fn audit(books: &Books, said: &HostReport, found: &mut Vec<Violation>) {
    let mut wrong = |promise, what: String| found.push(Violation { promise, at: books.now, what });
    for (gang, entry) in &books.gangs {
        match said.gangs.iter().find(|(id, _)| id == gang) {
            None => wrong(Promise::BadInputIsAFinding, format!("{} was lost", entry.spec.name)),
            Some((_, submitted)) if *submitted != entry.submitted => {
                wrong(
                    Promise::CrashSafety,
                    format!("{} lost its place in the queue", entry.spec.name),
                );
            }
            Some(_) => {}
        }
        let runs = !entry.members.is_empty();
        if runs != said.running.contains(gang) {
            let what = format!("{} runs: {runs}, but the host believes otherwise", entry.spec.name);
            wrong(Promise::CrashSafety, what);
        }
    }
    for claim in books.claims.keys() {
        if !said.claims.contains(claim) {
            wrong(Promise::CrashSafety, format!("{claim:?} is an orphan: nobody knows of it"));
        }
    }
    let mut seen = BTreeSet::new();
    for machine in &said.machines {
        if !seen.insert(*machine) {
            wrong(Promise::CrashSafety, format!("{machine:?} has two machines"));
        }
        if !said.claims.contains(machine) {
            wrong(Promise::CrashSafety, format!("a machine for {machine:?} is an orphan"));
        }
    }
}
