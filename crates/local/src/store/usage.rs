//! Who has used how much: sums over runs, also of gangs that are forgotten.

use crate::store::database::{Store, StoreError};

/// What sums are made by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Queue,
    User,
    Gang,
    /// The day of the year in Universal Time. A run counts on each day it ran for what it held on that day.
    Day,
}

/// What somebody has used.
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

/// Runs that overlap with the time that is asked about, cut to it; those that go on until now.
const HELD: &str = "
held AS (
  SELECT runs.*, max(started, ?1) AS since, min(coalesce(ended, ?3), ?2) AS until, 1 AS first
  FROM runs
  WHERE started IS NOT NULL AND started < ?2 AND coalesce(ended, ?3) >= ?1)";

/// The same in pieces, one for each day. Members and what they waited count on the first.
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
    /// What was used between two instants. Runs that go on count until now.
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
