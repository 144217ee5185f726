//! A gang below its minimum is made whole again when its owner has created the missing pods and there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::super::free_capacity::{free, is_plain, take, waiting};
use super::super::gang_membership::gang_of;
use super::super::pod_fields::node_of;
use super::super::snapshot::Snapshot;
use super::super::suspected::Moment;

/// The longest that a gang may lack a member for which there is room.
const WITHIN: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct UnfilledGangs {
    /// Gangs that were whole once.
    whole: BTreeSet<String>,
    /// Since when a gang lacks a member that would fit.
    since: BTreeMap<String, Instant>,
}

impl UnfilledGangs {
    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for (key, pod) in &snapshot.pods {
            let Some((gang, least)) = gang_of(snapshot, key, pod) else { continue };
            let is_there = node_of(pod).is_some() && pod.metadata.deletion_timestamp.is_none();
            let count = counts.entry(gang).or_insert((0, least));
            *count = (count.0 + u32::from(is_there), count.1.min(least));
        }
        self.whole.retain(|gang| counts.get(gang).is_some_and(|(count, _)| *count > 0));
        let is_whole = |(_, (count, least)): &(&String, &(u32, u32))| *count > 0 && count >= least;
        self.whole.extend(counts.iter().filter(is_whole).map(|(gang, _)| gang.clone()));
        let mut short: BTreeMap<String, (String, String)> = BTreeMap::new();
        for (key, pod) in
            waiting(snapshot).filter(|(_, pod)| snapshot.queues.is_empty() && is_plain(pod))
        {
            let Some((gang, least)) = gang_of(snapshot, key, pod) else { continue };
            let lacks = counts.get(&gang).is_some_and(|(count, _)| *count < least);
            if lacks
                && self.whole.contains(&gang)
                && let Some(node) = take(&mut free(snapshot), pod)
            {
                short.insert(gang, (key.clone(), node));
            }
        }
        self.since.retain(|gang, _| short.contains_key(gang));
        let mut broken = Vec::new();
        for (gang, (pod, node)) in short {
            let long = now.tick - *self.since.entry(gang.clone()).or_insert(now.tick);
            if long > WITHIN {
                let (count, least) = counts[&gang];
                broken.push(format!(
                    "{gang} runs with {count} of {least} for {long:?}, though {pod} waits and {node} has room"
                ));
                self.since.insert(gang, now.tick);
            }
        }
        broken
    }
}
