//! Entry points for fuzzing: the keeper's journal, orders and plan, as arbitrary bytes.
//!
//! Public for the targets of `crates/fuzz` alone; hosts do not use it.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::keeper::journal::{Record, records};
use crate::keeper::run_plan::RunPlan;
use crate::keeper::socket::client::Order;

/// Parses bytes as a journal. A truncated journal yields a prefix of its records, and parsed records survive a round
/// trip.
///
/// # Panics
/// If that does not hold.
pub fn check_journal(journal: &[u8]) {
    let (known, whole) = records(journal);
    let whole = usize::try_from(whole).expect("no longer than the journal");
    assert!(whole <= journal.len());
    for end in [whole, whole / 2, journal.len() / 3, journal.len().saturating_sub(1)] {
        let (first, kept) = records(&journal[..end]);
        assert!(known.starts_with(&first) && kept <= end as u64, "cut off at {end}");
    }
    assert_eq!(records(&journal[..whole]).0, known);
    let mut written = Vec::new();
    for record in &known {
        written.extend(serde_json::to_vec(record).expect("a record is JSON"));
        written.push(b'\n');
    }
    assert_eq!(records(&written), (known, written.len() as u64));
}

/// Parses a line as each message between the control plane and a keeper.
///
/// # Panics
/// If a parsed message does not survive a round trip.
pub fn check_line(line: &[u8]) {
    check::<Order>(line);
    check::<Record>(line);
    check::<RunPlan>(line);
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(line: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(line) else { return };
    let written = serde_json::to_vec(&read).expect("what is said is JSON");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("read again"), read);
}
