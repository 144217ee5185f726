//! Every gang is bound whole, or not at all, or on its way between the two; so it is with its gates; and who was whole
//! goes on with its least, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::doubts::Moment;
use super::gangs::gang_of;
use super::pods::{has_gate, is_over, node_of};
use super::seen::Seen;

/// The longest that a gang may be bound in part, or have some of its gates: each is a single request, and the last follows
/// the first.
const WINDOW: Duration = Duration::from_secs(10);

/// Members that are bound and not told to go.
const LEFT: &str = "left";

/// A gang, and what of it is counted.
type Stage = (String, &'static str);

#[derive(Default)]
pub(super) struct Partial {
    /// Since when a gang is bound in part, or has lost its gates in part.
    since: BTreeMap<Stage, Instant>,
    /// Gangs that have been whole once: members that are done do not make them partial.
    whole: BTreeSet<Stage>,
    /// The longest that any gang was so.
    pub(super) window: Duration,
}

impl Partial {
    pub(super) fn look(&mut self, seen: &Seen, now: Moment) -> Vec<String> {
        let (now, counts) = (now.tick, counts(seen));
        self.since.retain(|stage, _| counts.contains_key(stage));
        self.whole.retain(|stage| counts.contains_key(stage));
        let mut broken = Vec::new();
        for (stage, (count, least)) in counts {
            let was_partial = self.since.get(&stage).map(|since| now - *since);
            let (gang, what) = &stage;
            let is_partial =
                count > 0 && count < least && self.whole.contains(&stage) == (stage.1 == LEFT);
            if let Some(long) = was_partial.filter(|long| *long > WINDOW) {
                broken.push(format!(
                    "{gang} was {what} in part for {long:?}, {count} of {least} now"
                ));
                self.since.remove(&stage);
            }
            if is_partial {
                self.since.entry(stage).or_insert(now);
                continue;
            }
            self.since.remove(&stage);
            if count >= least {
                self.window = self.window.max(was_partial.unwrap_or_default());
                self.whole.insert(stage);
            } else if count == 0 {
                self.whole.remove(&stage);
            }
        }
        broken
    }
}

/// Of every gang, at every stage: how many there are, and how many there must be.
fn counts(seen: &Seen) -> BTreeMap<Stage, (u32, u32)> {
    let mut counts: BTreeMap<Stage, (u32, u32)> = BTreeMap::new();
    let mut at_work: BTreeSet<String> = BTreeSet::new();
    for (key, pod) in &seen.pods {
        let Some((gang, least)) = gang_of(seen, key, pod) else { continue };
        let bound = node_of(pod).is_some();
        if bound && !is_over(pod) {
            at_work.insert(gang.clone());
        }
        let lifted = seen.gated.contains(key).then(|| ("let go", !has_gate(pod)));
        let left = bound && pod.metadata.deletion_timestamp.is_none();
        for (stage, is_there) in lifted.into_iter().chain([("bound", bound), (LEFT, left)]) {
            let count = counts.entry((gang.clone(), stage)).or_insert((0, least));
            count.0 += u32::from(is_there);
        }
    }
    // When all of it is done, its pods go one by one with their nodes.
    for ((gang, _), count) in counts.iter_mut().filter(|((_, stage), _)| *stage == LEFT) {
        count.0 *= u32::from(at_work.contains(gang));
    }
    counts
}
