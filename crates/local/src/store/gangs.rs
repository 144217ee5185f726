//! Gangs, as submitted and as last published.

use serde_json::Value;

use crate::store::database::{Store, StoreError};

/// A gang in the database.
#[derive(Clone, Debug)]
pub(crate) struct GangRow {
    pub(crate) uid: i64,
    pub(crate) name: String,
    /// Its id in the World, while it has one.
    pub(crate) world: Option<u32>,
    pub(crate) record: Value,
    pub(crate) submitted: i64,
    pub(crate) over: Option<i64>,
    pub(crate) status: Value,
}

impl Store {
    /// Adds a gang; returns its number among all gangs ever submitted.
    pub(crate) fn add_gang(
        &self,
        name: &str,
        world: Option<u32>,
        record: &Value,
        submitted: i64,
    ) -> Result<i64, StoreError> {
        self.run(|db| {
            let mut insert = db.prepare_cached(
                "INSERT INTO gangs (name, world, record, submitted, status) VALUES (?1, ?2, ?3, ?4, 'null')",
            )?;
            insert.insert((name, world, record.to_string(), submitted))
        })
    }

    /// Sets a gang's id in the World.
    pub(crate) fn set_gang_world(&self, uid: i64, world: Option<u32>) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached("UPDATE gangs SET world = ?2 WHERE uid = ?1")?;
            set.execute((uid, world)).map(drop)
        })
    }

    /// Updates the submitted record.
    pub(crate) fn set_gang_record(&self, uid: i64, record: &Value) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached("UPDATE gangs SET record = ?2 WHERE uid = ?1")?;
            set.execute((uid, record.to_string())).map(drop)
        })
    }

    /// Updates the published status, and the time when it finished.
    pub(crate) fn set_gang_status(
        &self,
        uid: i64,
        status: &Value,
        over: Option<i64>,
    ) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set =
                db.prepare_cached("UPDATE gangs SET status = ?2, over = ?3 WHERE uid = ?1")?;
            set.execute((uid, status.to_string(), over)).map(drop)
        })
    }

    /// Deletes every gang of a name, so that no earlier one becomes the latest. Returns their runs. Usage is kept: rows
    /// of runs stay.
    pub(crate) fn forget_gangs(&self, name: &str) -> Result<Vec<u64>, StoreError> {
        const THEIRS: &str = "SELECT uid FROM gangs WHERE name = ?1";
        self.forget(&format!("gang IN ({THEIRS})"), [name], "DELETE FROM gangs WHERE name = ?1")
    }

    /// Deletes one gang in the same way, and no other gang of its name.
    pub(crate) fn forget_gang(&self, uid: i64) -> Result<Vec<u64>, StoreError> {
        self.forget("gang = ?1", [uid], "DELETE FROM gangs WHERE uid = ?1")
    }

    fn forget<P: rusqlite::Params + Clone>(
        &self,
        whose: &str,
        them: P,
        delete: &str,
    ) -> Result<Vec<u64>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare_cached(&format!(
                "SELECT run FROM runs WHERE part_of IS NULL AND {whose}"
            ))?;
            let runs = all.query_map(them.clone(), |row| Ok(row.get::<_, i64>(0)? as u64))?;
            let runs: Vec<u64> = runs.collect::<rusqlite::Result<_>>()?;
            let mut members = db.prepare_cached("DELETE FROM members WHERE run = ?1")?;
            for run in &runs {
                members.execute([*run as i64])?;
            }
            db.execute(delete, them)?;
            Ok(runs)
        })
    }

    /// The number of finished gangs that are kept.
    pub(crate) fn count_over(&self) -> Result<usize, StoreError> {
        self.run(|db| {
            let mut count =
                db.prepare_cached("SELECT count(*) FROM gangs WHERE over IS NOT NULL")?;
            count.query_row([], |row| Ok(row.get::<_, i64>(0)? as usize))
        })
    }

    /// Gangs that finished before an instant, or beyond the newest `keep`; the latest of a name or not.
    pub(crate) fn gangs_to_forget(
        &self,
        before: i64,
        keep: u64,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        self.run(|db| {
            let mut old = db.prepare_cached(
                "SELECT uid, name FROM gangs WHERE over < ?1
                 UNION
                 SELECT uid, name FROM (SELECT uid, name FROM gangs WHERE over IS NOT NULL
                   ORDER BY over DESC, uid DESC LIMIT -1 OFFSET ?2)",
            )?;
            let keep = i64::try_from(keep).unwrap_or(i64::MAX);
            let rows = old.query_map((before, keep), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    /// The latest gang of every name.
    pub(crate) fn gangs(&self) -> Result<Vec<GangRow>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare(
                "SELECT uid, name, world, record, submitted, over, status FROM gangs
                 WHERE uid IN (SELECT max(uid) FROM gangs GROUP BY name) ORDER BY uid",
            )?;
            let rows = all.query_map([], |row| {
                let text = |at: usize| -> rusqlite::Result<Value> {
                    Ok(serde_json::from_str(&row.get::<_, String>(at)?).unwrap_or_default())
                };
                Ok(GangRow {
                    uid: row.get(0)?,
                    name: row.get(1)?,
                    world: row.get(2)?,
                    record: text(3)?,
                    submitted: row.get(4)?,
                    over: row.get(5)?,
                    status: text(6)?,
                })
            })?;
            rows.collect()
        })
    }
}
