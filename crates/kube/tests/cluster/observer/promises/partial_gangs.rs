//! Every gang is bound whole or not at all, within a short window; the same holds for its gates; and a gang that was
//! whole keeps its minimum, or ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::super::gang_membership::gang_of;
use super::super::pod_fields::{has_gate, is_finished, node_of};
use super::super::snapshot::Snapshot;
use super::super::suspected::Moment;

/// The longest that a gang may be bound or ungated in part: each pod is a single request, and the last follows the
/// first.
const WINDOW: Duration = Duration::from_secs(10);

/// Members that are bound and not terminating.
const LEFT: &str = "left";

/// A gang, and the stage that is counted.
type Stage = (String, &'static str);

#[derive(Default)]
pub(crate) struct PartialGangs {
    /// Since when a gang is bound or ungated in part.
    since: BTreeMap<Stage, Instant>,
    /// Gangs that were whole once: finished members do not make them partial.
    whole: BTreeSet<Stage>,
    /// The longest that any gang was partial.
    pub(crate) window: Duration,
}

impl PartialGangs {
    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        let (now, counts) = (now.tick, counts(snapshot));
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

/// Members at each stage, and the minimum, of every gang.
fn counts(snapshot: &Snapshot) -> BTreeMap<Stage, (u32, u32)> {
    let mut counts: BTreeMap<Stage, (u32, u32)> = BTreeMap::new();
    let mut at_work: BTreeSet<String> = BTreeSet::new();
    for (key, pod) in &snapshot.pods {
        let Some((gang, least)) = gang_of(snapshot, key, pod) else { continue };
        let bound = node_of(pod).is_some();
        if bound && !is_finished(pod) {
            at_work.insert(gang.clone());
        }
        let lifted = snapshot.gated.contains(key).then(|| ("ungated", !has_gate(pod)));
        let left = bound && pod.metadata.deletion_timestamp.is_none();
        for (stage, is_there) in lifted.into_iter().chain([("bound", bound), (LEFT, left)]) {
            let count = counts.entry((gang.clone(), stage)).or_insert((0, least));
            count.0 += u32::from(is_there);
        }
    }
    // When all members are finished, their pods disappear one by one with their nodes.
    for ((gang, _), count) in counts.iter_mut().filter(|((_, stage), _)| *stage == LEFT) {
        count.0 *= u32::from(at_work.contains(gang));
    }
    counts
}
