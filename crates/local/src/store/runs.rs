//! Runs: every start of a gang, with the resources it held. Accounting sums over these.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use crate::keeper::journal::Exit;
use crate::keeper::run_plan::MemberPlan;
use crate::store::database::{Store, StoreError};

/// A run that is about to start.
#[derive(Clone, Debug)]
pub(crate) struct RunRow<'a> {
    pub(crate) gang: i64,
    pub(crate) name: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) user: &'a str,
    pub(crate) gpu_milli: u64,
    pub(crate) cpu_milli: u64,
    pub(crate) hourly: i64,
    pub(crate) waited_ms: u64,
    pub(crate) decided: i64,
    pub(crate) members: u32,
}

/// A run that has not ended, as far as known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OpenRun {
    pub(crate) run: u64,
    pub(crate) gang: i64,
    pub(crate) started: Option<i64>,
    /// When it was last resized.
    pub(crate) changed: Option<i64>,
}

impl Store {
    /// Adds a run; returns its number.
    pub(crate) fn add_run(&self, run: &RunRow<'_>) -> Result<u64, StoreError> {
        self.run(|db| {
            let mut insert = db.prepare_cached(
                "INSERT INTO runs (gang, name, queue, user, members, gpus, cpus, hourly, waited, decided)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?;
            let RunRow {
                gang,
                name,
                queue,
                user,
                gpu_milli,
                cpu_milli,
                hourly,
                waited_ms,
                decided,
                members,
            } = *run;
            let (gpus, cpus, waited) = (gpu_milli as i64, cpu_milli as i64, waited_ms as i64);
            let row = (gang, name, queue, user, members, gpus, cpus, hourly, waited, decided);
            Ok(insert.insert(row)? as u64)
        })
    }

    /// Adds the members of a run.
    pub(crate) fn add_members(&self, run: u64, members: &[MemberPlan]) -> Result<(), StoreError> {
        self.run(|db| {
            let mut insert = db.prepare_cached(
                "INSERT OR IGNORE INTO members (run, rank, role, node) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for member in members {
                insert.execute((run as i64, member.rank, &*member.role, &*member.node))?;
            }
            Ok(())
        })
    }

    /// Records the start of a run.
    pub(crate) fn run_started(&self, run: u64, at: i64) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached(
                "UPDATE runs SET started = ?2 WHERE run = ?1 AND started IS NULL",
            )?;
            set.execute((run as i64, at)).map(drop)
        })
    }

    /// Records the exit of a member.
    pub(crate) fn member_ended(&self, run: u64, exit: &Exit) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached(
                "UPDATE members SET ended = ?3, code = ?4, signal = ?5 WHERE run = ?1 AND rank = ?2",
            )?;
            set.execute((run as i64, exit.rank, exit.at, exit.code, exit.signal)).map(drop)
        })
    }

    /// Records the end of a run.
    pub(crate) fn run_ended(&self, run: u64, at: i64, ending: &str) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached(
                "UPDATE runs SET ended = max(?2, coalesce(started, ?2)), ending = ?3
                 WHERE coalesce(part_of, run) = ?1 AND ended IS NULL",
            )?;
            set.execute((run as i64, at, ending)).map(drop)
        })
    }

    /// Records a resize: the run holds other resources from then on.
    pub(crate) fn run_changed(
        &self,
        run: u64,
        at: i64,
        row: &RunRow<'_>,
    ) -> Result<(), StoreError> {
        self.run_ended(run, at, "resized")?;
        let part = self.add_run(row)?;
        self.run(|db| {
            let mut set =
                db.prepare_cached("UPDATE runs SET part_of = ?2, started = ?3 WHERE run = ?1")?;
            set.execute((part as i64, run as i64, at)).map(drop)
        })
    }

    /// Runs that have not ended, as far as known.
    pub(crate) fn open_runs(&self) -> Result<Vec<OpenRun>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare(
                "SELECT coalesce(part_of, run), gang, started, iif(part_of IS NULL, NULL, started)
                 FROM runs WHERE ended IS NULL ORDER BY run",
            )?;
            let rows = all.query_map([], |row| {
                let run = row.get::<_, i64>(0)? as u64;
                Ok(OpenRun { run, gang: row.get(1)?, started: row.get(2)?, changed: row.get(3)? })
            })?;
            rows.collect()
        })
    }

    /// Whether a run has ended, as far as the control plane knows.
    pub(crate) fn has_ended(&self, run: u64) -> Result<bool, StoreError> {
        self.run(|db| {
            let mut open = db.prepare_cached(
                "SELECT 1 FROM runs WHERE coalesce(part_of, run) = ?1 AND ended IS NULL",
            )?;
            Ok(!open.exists([run as i64])?)
        })
    }

    /// Runs of a gang, oldest first.
    pub(crate) fn runs_of(&self, gang: i64) -> Result<Vec<u64>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare_cached(
                "SELECT run FROM runs WHERE gang = ?1 AND part_of IS NULL ORDER BY run",
            )?;
            let rows = all.query_map([gang], |row| Ok(row.get::<_, i64>(0)? as u64))?;
            rows.collect()
        })
    }

    /// The queue of each run whose gang is kept.
    pub(crate) fn queues_of_runs(&self) -> Result<BTreeMap<u64, Arc<str>>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare_cached(
                "SELECT run, queue FROM runs WHERE part_of IS NULL AND gang IN (SELECT uid FROM gangs)",
            )?;
            let rows = all.query_map([], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?.into()))
            })?;
            rows.collect()
        })
    }

    /// Runs of all kept gangs of a name, oldest first.
    pub(crate) fn runs_named(&self, name: &str) -> Result<Vec<u64>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare_cached(
                "SELECT run FROM runs JOIN gangs ON gangs.uid = runs.gang
                 WHERE gangs.name = ?1 AND part_of IS NULL ORDER BY run",
            )?;
            let rows = all.query_map([name], |row| Ok(row.get::<_, i64>(0)? as u64))?;
            rows.collect()
        })
    }

    /// The latest gang of a name.
    pub(crate) fn gang_called(&self, name: &str) -> Result<Option<i64>, StoreError> {
        self.run(|db| {
            let mut found = db.prepare_cached("SELECT max(uid) FROM gangs WHERE name = ?1")?;
            Ok(found.query_row([name], |row| row.get::<_, Option<i64>>(0)).optional()?.flatten())
        })
    }

    /// Whether a run belongs to a gang that is kept.
    pub(crate) fn knows_run(&self, run: u64) -> Result<bool, StoreError> {
        self.run(|db| {
            let mut found = db.prepare_cached(
                "SELECT 1 FROM runs JOIN gangs ON gangs.uid = runs.gang WHERE run = ?1",
            )?;
            found.exists([run as i64])
        })
    }
}
