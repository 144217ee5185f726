//! The log of all events that were applied to the World.

use muster_core::Event;
use muster_core::time::Time;

use crate::store::database::{Store, StoreError};

impl Store {
    /// Appends an event.
    pub(crate) fn told(&self, at: Time, event: &Event) -> Result<(), StoreError> {
        let text = serde_json::to_string(event).unwrap_or_default();
        self.run(|db| {
            let mut insert = db.prepare_cached("INSERT INTO log (at, event) VALUES (?1, ?2)")?;
            insert.execute((at.0, text)).map(drop)
        })
    }

    /// Replays all events in order.
    pub(crate) fn replay(
        &self,
        mut each: impl FnMut(Time, Event) -> Result<(), String>,
    ) -> Result<(), StoreError> {
        let mut wrong: Option<(i64, String)> = None;
        self.run(|db| {
            let mut all = db.prepare("SELECT seq, at, event FROM log ORDER BY seq")?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                let text: String = row.get(2)?;
                let read = serde_json::from_str(&text).map_err(|error| error.to_string());
                let at = Time(row.get(1)?);
                if let Err(why) = read.and_then(|event| each(at, event)) {
                    wrong = Some((row.get(0)?, why));
                    break;
                }
            }
            Ok(())
        })?;
        match wrong {
            None => Ok(()),
            Some((seq, why)) => {
                let what = format!("line {seq} of the log cannot be read again: {why}");
                Err(StoreError::Damaged { path: self.path.clone(), what })
            }
        }
    }
}
