//! Answers under idempotency keys.

use rusqlite::OptionalExtension;

use crate::store::database::{Store, StoreError};

/// Maximum bytes of a stored answer.
const ANSWER_BYTES: usize = 64 << 10;
/// Maximum bytes of stored answers per caller.
const CALLER_BYTES: i64 = 4 << 20;
/// Bytes of an answer beside its text.
const OVERHEAD_BYTES: i64 = 256;
/// Answers between two checks of the limit.
const LOOK_EVERY: u32 = 16;

/// A stored answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnswerRow {
    /// A digest of the request.
    pub(crate) request: Vec<u8>,
    pub(crate) code: u16,
    pub(crate) answer: String,
    pub(crate) at: i64,
}

impl Store {
    /// The answer under a caller's key.
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

    /// Deletes answers from before an instant.
    pub(crate) fn forget_answers(&self, before: i64) -> Result<(), StoreError> {
        self.run(|db| db.execute("DELETE FROM answers WHERE at < ?1", [before]).map(drop))
    }

    /// Deletes the oldest answers of a caller above its limit.
    fn bound_answers(&self, caller: &str) -> Result<(), StoreError> {
        self.run(|db| {
            let mut forget = db.prepare_cached(
                "DELETE FROM answers WHERE caller = ?1 AND key IN (SELECT key FROM (\
                 SELECT key, sum(length(answer) + ?2) OVER (ORDER BY at DESC, key) AS bytes \
                 FROM answers WHERE caller = ?1) WHERE bytes > ?3)",
            )?;
            forget.execute((caller, OVERHEAD_BYTES, CALLER_BYTES)).map(drop)
        })
    }

    /// Stores an answer, and deletes answers from before an instant, and the oldest of a caller above its limit. An
    /// answer that is too long is stored as an empty list, as proof that it was given.
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
            let answer = if answer.len() > ANSWER_BYTES { "[]" } else { answer };
            set.execute((caller, key, request, code, answer, at))?;
            let mut forget = db.prepare_cached("DELETE FROM answers WHERE at < ?1")?;
            forget.execute([forget_before]).map(drop)
        })?;
        // Summing takes a while with many answers: the limit may be exceeded for a moment.
        let count = self.answers.get().wrapping_add(1);
        self.answers.set(count);
        if count.is_multiple_of(LOOK_EVERY) { self.bound_answers(caller) } else { Ok(()) }
    }
}
