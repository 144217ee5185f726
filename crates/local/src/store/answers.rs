//! Answers to requests that may be sent twice.

use rusqlite::OptionalExtension;

use super::{Store, StoreError};

/// What was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnswerRow {
    /// What was asked, shortened.
    pub(crate) request: Vec<u8>,
    pub(crate) code: u16,
    pub(crate) answer: String,
    pub(crate) at: i64,
}

impl Store {
    /// What was answered to this caller's key.
    pub(crate) fn answer(&self, caller: &str, key: &str) -> Result<Option<AnswerRow>, StoreError> {
        self.run(|db| {
            let mut found = db.prepare_cached(
                "SELECT request, code, answer, at FROM answers WHERE caller = ?1 AND key = ?2",
            )?;
            let row = found.query_row([caller, key], |row| {
                Ok(AnswerRow {
                    request: row.get(0)?,
                    code: row.get(1)?,
                    answer: row.get(2)?,
                    at: row.get(3)?,
                })
            });
            row.optional()
        })
    }

    /// Keeps an answer, and forgets those before an instant.
    pub(crate) fn set_answer(
        &self,
        caller: &str,
        key: &str,
        row: &AnswerRow,
        forget_before: i64,
    ) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db
                .prepare_cached("INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            let AnswerRow { request, code, answer, at } = row;
            set.execute((caller, key, request, code, answer, at))?;
            let mut forget = db.prepare_cached("DELETE FROM answers WHERE at < ?1")?;
            forget.execute([forget_before]).map(drop)
        })
    }
}
