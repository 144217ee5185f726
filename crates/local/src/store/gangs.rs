//! Gangs, as submitted and as last shown.

use serde_json::Value;

use super::{Store, StoreError};

/// A gang in the database.
#[derive(Clone, Debug)]
pub(crate) struct GangRow {
    pub(crate) uid: i64,
    pub(crate) name: String,
    /// Its number in the World, while it has one.
    pub(crate) world: Option<u32>,
    pub(crate) record: Value,
    pub(crate) submitted: i64,
    pub(crate) over: Option<i64>,
    pub(crate) status: Value,
}

impl Store {
    /// Writes down a new gang; its number among all that ever were.
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

    /// A gang's number in the World is this now.
    pub(crate) fn set_gang_world(&self, uid: i64, world: Option<u32>) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached("UPDATE gangs SET world = ?2 WHERE uid = ?1")?;
            set.execute((uid, world)).map(drop)
        })
    }

    /// What was submitted has changed.
    pub(crate) fn set_gang_record(&self, uid: i64, record: &Value) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached("UPDATE gangs SET record = ?2 WHERE uid = ?1")?;
            set.execute((uid, record.to_string())).map(drop)
        })
    }

    /// What is shown of a gang is this now, and when it was over if it is.
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

    /// A gang is forgotten, with all its runs.
    pub(crate) fn forget_gang(&self, uid: i64) -> Result<(), StoreError> {
        self.run(|db| {
            db.execute(
                "DELETE FROM members WHERE run IN (SELECT run FROM runs WHERE gang = ?1)",
                [uid],
            )?;
            db.execute("DELETE FROM runs WHERE gang = ?1", [uid])?;
            db.execute("DELETE FROM gangs WHERE uid = ?1", [uid]).map(drop)
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
