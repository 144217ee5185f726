//! Queues, pools, nodes and the topology, as submitted.

use serde_json::Value;

use crate::store::database::{Store, StoreError};

impl Store {
    /// Sets an object.
    pub(crate) fn set_object(
        &self,
        kind: &str,
        name: &str,
        object: &Value,
    ) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set =
                db.prepare_cached("INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3)")?;
            set.execute((kind, name, object.to_string())).map(drop)
        })
    }

    /// Removes an object.
    pub(crate) fn remove_object(&self, kind: &str, name: &str) -> Result<(), StoreError> {
        self.run(|db| {
            db.execute("DELETE FROM objects WHERE kind = ?1 AND name = ?2", (kind, name)).map(drop)
        })
    }

    /// All objects: kind, name, and content.
    pub(crate) fn objects(&self) -> Result<Vec<(String, String, Value)>, StoreError> {
        self.run(|db| {
            let mut all =
                db.prepare("SELECT kind, name, object FROM objects ORDER BY kind, name")?;
            let rows = all.query_map([], |row| {
                let object = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
                Ok((row.get(0)?, row.get(1)?, object))
            })?;
            rows.collect()
        })
    }
}
