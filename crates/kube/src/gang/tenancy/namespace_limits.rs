//! Limits per namespace: members of a gang, and gangs that are planned at a time.
//!
//! Gangs beyond the limit wait outside the planner, the youngest first, with that reason; gangs that have seats are never left
//! out. They are tried again when other gangs of the namespace are over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cache::store::split_key;
use crate::config::Config;
use crate::host::Host;

/// How often gangs that were left out are tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Gangs that were left out, and how many of each namespace are planned.
#[derive(Debug, Default)]
pub(crate) struct NamespaceGangCounts {
    left_out: BTreeMap<Arc<str>, Arc<str>>,
    /// Counted once a cycle, when it is first needed.
    planned: Option<BTreeMap<Arc<str>, u32>>,
    /// When gangs that were left out were last tried.
    pub(crate) checked_at: Option<Instant>,
}

impl Config {
    /// Why a gang of so many members is not planned, if it has too many.
    pub(crate) fn over_member_limit(&self, members: u64) -> Option<String> {
        let most = self.max_gang_members;
        (members > u64::from(most)).then(|| {
            format!("it asks for {members} members; {most} is the most that is planned (--max-gang-members)")
        })
    }
}

impl Host {
    /// Why one more gang of a namespace is not planned now, if the limit is reached. Counts the gang otherwise.
    pub(crate) fn over_gang_limit(&mut self, name: &Arc<str>) -> Option<String> {
        let most = self.config.max_gangs_per_namespace;
        let namespace = split_key(name).0;
        let planned = self.planned_in(namespace);
        if *planned >= most {
            self.gang_counts.left_out.insert(name.clone(), namespace.into());
            return Some(format!(
                "{most} gangs of namespace {namespace} are planned, which is the most \
                 (--max-gangs-per-namespace): it waits until one of them is over"
            ));
        }
        *planned += 1;
        self.gang_counts.left_out.remove(name);
        None
    }

    /// How many gangs of a namespace are planned.
    fn planned_in(&mut self, namespace: &str) -> &mut u32 {
        let (groups, world) = (&self.gangs, &self.world);
        let planned = self.gang_counts.planned.get_or_insert_with(|| {
            let mut planned: BTreeMap<Arc<str>, u32> = BTreeMap::new();
            for name in groups.names().filter(|name| world.gang_named(name).is_some()) {
                let namespace = split_key(name).0;
                match planned.get_mut(namespace) {
                    Some(count) => *count += 1,
                    None => drop(planned.insert(namespace.into(), 1)),
                }
            }
            planned
        });
        planned.entry(namespace.into()).or_default()
    }

    /// At the start of a cycle, drops the counts and requeues gangs that were left out, as far as the limit allows.
    pub(crate) fn reconcile_gang_counts(&mut self) {
        self.gang_counts.planned = None;
        let is_early = self.gang_counts.checked_at.is_some_and(|at| at.elapsed() < RETRY_INTERVAL);
        if self.gang_counts.left_out.is_empty() || is_early {
            return;
        }
        self.gang_counts.checked_at = Some(Instant::now());
        let groups = &self.gangs;
        self.gang_counts.left_out.retain(|name, _| groups.get(name).is_some());
        let most = self.config.max_gangs_per_namespace;
        let mut room: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (name, namespace) in self.gang_counts.left_out.clone() {
            let planned = *self.planned_in(&namespace);
            let left = room.entry(namespace).or_insert_with(|| most.saturating_sub(planned));
            if *left > 0 {
                *left -= 1;
                self.dirty.gangs.insert(name);
            }
        }
    }
}
