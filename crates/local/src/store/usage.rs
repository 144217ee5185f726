//! Usage: sums over runs, including runs of deleted gangs.

use crate::store::database::{Store, StoreError};

/// The grouping of usage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Queue,
    User,
    Gang,
    /// The day in UTC. A run counts on each of its days with the resources it held on that day.
    Day,
}

/// One row of usage.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) key: String,
    pub(crate) gangs: u64,
    pub(crate) runs: u64,
    pub(crate) gpu_milli_ms: i64,
    pub(crate) cpu_milli_ms: i64,
    pub(crate) waited_ms: i64,
    pub(crate) cost: f64,
}

/// Runs that overlap the requested interval, cut to it; running ones until now.
const HELD: &str = "
held AS (
  SELECT runs.*, max(started, ?1) AS since, min(coalesce(ended, ?3), ?2) AS until, 1 AS first
  FROM runs
  WHERE started IS NOT NULL AND started < ?2 AND coalesce(ended, ?3) >= ?1)";

/// The same split by day. Members and waiting time count on the first day.
const BY_DAY: &str = "
pieces AS (
  SELECT run, since AS cut FROM held
  UNION ALL
  SELECT pieces.run, (cut / 86400000 + 1) * 86400000 FROM pieces JOIN held USING (run)
  WHERE (cut / 86400000 + 1) * 86400000 < until),
parts AS (
  SELECT gang, members, gpus, cpus, hourly, waited, cut AS since,
    min(until, (cut / 86400000 + 1) * 86400000) AS until, cut = since AS first
  FROM held JOIN pieces USING (run))";

impl Store {
    /// Usage between two instants. Running runs count until now.
    pub(crate) fn used(
        &self,
        by: By,
        from: i64,
        to: i64,
        now: i64,
    ) -> Result<Vec<Sum>, StoreError> {
        let (with, parts, key) = match by {
            By::Queue => (HELD.to_owned(), "held", "queue"),
            By::User => (HELD.to_owned(), "held", "user"),
            By::Gang => (HELD.to_owned(), "held", "name"),
            By::Day => (format!("{HELD},{BY_DAY}"), "parts", "date(since / 1000, 'unixepoch')"),
        };
        self.run(|db| {
            let mut sums = db.prepare(&format!(
                "WITH RECURSIVE {with}
                 SELECT {key} AS key, count(DISTINCT gang), sum(members * first),
                   sum(gpus * (until - since)), sum(cpus * (until - since)), sum(waited * first),
                   sum(hourly / 1e6 * (until - since) / 3600000.0)
                 FROM {parts} GROUP BY key ORDER BY key"
            ))?;
            let rows = sums.query_map((from, to, now), |row| {
                Ok(Sum {
                    key: row.get(0)?,
                    gangs: row.get::<_, i64>(1)? as u64,
                    runs: row.get::<_, i64>(2)? as u64,
                    gpu_milli_ms: row.get(3)?,
                    cpu_milli_ms: row.get(4)?,
                    waited_ms: row.get(5)?,
                    cost: row.get(6)?,
                })
            })?;
            rows.collect()
        })
    }
}
