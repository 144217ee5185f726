//! Simulated machines, which outlive the process that simulates them.

use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::time::Time;
use muster_sim::cloud::Stage;

use crate::store::database::{Store, StoreError};

/// A machine in the database.
#[derive(Clone, Debug)]
pub(crate) struct MachineRow {
    pub(crate) claim: ClaimId,
    pub(crate) offering: OfferingRef,
    pub(crate) asked: Time,
    pub(crate) life: Vec<(Time, Stage)>,
    pub(crate) stopped: Option<Time>,
    /// When it will be gone, once it was released.
    pub(crate) leaves: Option<Time>,
    pub(crate) gone: bool,
}

impl Store {
    /// Sets the state of a machine.
    pub(crate) fn set_machine(&self, machine: &MachineRow) -> Result<(), StoreError> {
        let MachineRow { claim, offering, asked, life, stopped, leaves, gone } = machine;
        let life = serde_json::to_string(life).unwrap_or_default();
        self.run(|db| {
            let mut set = db.prepare_cached(
                "INSERT OR REPLACE INTO machines VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            let (stopped, leaves) = (stopped.map(|at| at.0), leaves.map(|at| at.0));
            let place = (offering.pool.0, offering.slot);
            set.execute((claim.0, place.0, place.1, asked.0, life, stopped, leaves, gone)).map(drop)
        })
    }

    /// Every machine ever requested, in order.
    pub(crate) fn machines(&self) -> Result<Vec<MachineRow>, StoreError> {
        self.run(|db| {
            let mut all = db.prepare("SELECT * FROM machines ORDER BY claim")?;
            let rows = all.query_map([], |row| {
                let time = |at: usize| -> rusqlite::Result<Option<Time>> {
                    Ok(row.get::<_, Option<i64>>(at)?.map(Time))
                };
                Ok(MachineRow {
                    claim: ClaimId(row.get(0)?),
                    offering: OfferingRef { pool: PoolIdx(row.get(1)?), slot: row.get(2)? },
                    asked: Time(row.get(3)?),
                    life: serde_json::from_str(&row.get::<_, String>(4)?).unwrap_or_default(),
                    stopped: time(5)?,
                    leaves: time(6)?,
                    gone: row.get(7)?,
                })
            })?;
            rows.collect()
        })
    }
}
