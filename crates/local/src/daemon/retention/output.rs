//! Limits the output of each queue to a fraction of the disk, by deleting the oldest output of ended runs. So no
//! queue's output starves the others, however many gangs it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::daemon::effects::Effect;
use crate::daemon::inputs::Input;
use crate::daemon::state::Daemon;
use crate::keeper::files::LOGS;

/// How often output is measured.
const LOOK: Duration = Duration::from_secs(30);
/// A queue may keep one in this many bytes of the disk, and at least this many bytes.
const PART: u64 = 10;
const LEAST: u64 = 4 << 20;

/// Bytes of output by run.
pub(crate) type OutputSizes = BTreeMap<u64, u64>;

impl Daemon {
    /// Measures the output on a blocking thread.
    pub(crate) fn measure_output(&mut self) {
        if self.output_measured.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.output_measured = Some(Instant::now());
        let (runs, inputs) = (self.directory.join("runs"), self.inputs.clone());
        self.runtime.spawn_blocking(move || drop(inputs.send(Input::OutputSizes(measure(&runs)))));
    }

    /// Deletes the oldest output of queues above their limit.
    pub(crate) fn bound_output(&mut self, printed: &OutputSizes) {
        let Some(total) = disk_of(&self.directory) else { return };
        let most = (total / PART).max(LEAST);
        if printed.values().sum::<u64>() <= most {
            return;
        }
        let queues = self.store.queues_of_runs();
        let queues = self.check_store(queues).unwrap_or_default();
        let live: BTreeSet<u64> = self.runs.keys().copied().collect();
        for (queue, runs) in surplus(printed, &queues, &live, most) {
            tracing::warn!(
                queue = &*queue,
                ?runs,
                "the queue has printed too much: the oldest output is removed"
            );
            for run in runs {
                self.effects.push(Effect::RemoveDirectory(self.run_directory(run).join(LOGS)));
            }
        }
    }
}

/// The oldest ended runs whose output must be deleted so that no queue is above the limit.
fn surplus(
    printed: &OutputSizes,
    queues: &BTreeMap<u64, Arc<str>>,
    live: &BTreeSet<u64>,
    most: u64,
) -> BTreeMap<Arc<str>, Vec<u64>> {
    let mut sums: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    for (run, bytes) in printed {
        if let Some(queue) = queues.get(run) {
            *sums.entry(queue).or_default() += bytes;
        }
    }
    let mut gone: BTreeMap<Arc<str>, Vec<u64>> = BTreeMap::new();
    for (run, bytes) in printed.iter().filter(|(run, bytes)| !live.contains(run) && **bytes > 0) {
        let Some(queue) = queues.get(run) else { continue };
        let Some(sum) = sums.get_mut(queue).filter(|sum| **sum > most) else { continue };
        *sum -= bytes;
        gone.entry(queue.clone()).or_default().push(*run);
    }
    gone
}

fn measure(runs: &Path) -> OutputSizes {
    let mut printed = OutputSizes::new();
    for entry in std::fs::read_dir(runs).into_iter().flatten().flatten() {
        let run = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        let Some(run) = run else { continue };
        let logs: PathBuf = entry.path().join(LOGS);
        let files = std::fs::read_dir(logs).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
        printed.insert(run, bytes);
    }
    printed
}

fn disk_of(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_blocks.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_output_of_a_queue_over_its_limit_is_deleted() {
        let printed = OutputSizes::from([(1, 40), (2, 40), (3, 40), (4, 90), (5, 30)]);
        let of = |run: u64| -> Arc<str> { if run == 4 { "other" } else { "loud" }.into() };
        let queues = (1..=5).map(|run| (run, of(run))).collect();
        // The first still runs: its output has its own limit.
        let gone = surplus(&printed, &queues, &BTreeSet::from([1]), 100);
        assert_eq!(gone, BTreeMap::from([("loud".into(), vec![2, 3])]));
        assert!(surplus(&printed, &queues, &BTreeSet::new(), 150).is_empty());
    }
}
