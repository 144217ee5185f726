//! Answers to requests that may be sent twice.

use rusqlite::OptionalExtension;

use crate::store::database::{Store, StoreError};

/// Bytes of an answer that are kept, at most.
const ANSWER_BYTES: usize = 64 << 10;
/// Bytes of answers that are kept for one caller, at most.
const CALLER_BYTES: i64 = 4 << 20;
/// What an answer takes beside its text.
const OVERHEAD_BYTES: i64 = 256;
/// So many answers are kept between two looks at how much there is.
const LOOK_EVERY: u32 = 16;

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

    /// Forgets answers from before an instant.
    pub(crate) fn forget_answers(&self, before: i64) -> Result<(), StoreError> {
        self.run(|db| db.execute("DELETE FROM answers WHERE at < ?1", [before]).map(drop))
    }

    /// Forgets the oldest answers to a caller that has more bytes of them than it may.
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

    /// Keeps an answer, and forgets those before an instant, and the oldest of a caller that has too many. One that is
    /// longer than is kept is kept as that it was given.
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
        // Summing up takes a while where there are many: a few too many are there for a moment.
        let count = self.answers.get().wrapping_add(1);
        self.answers.set(count);
        if count.is_multiple_of(LOOK_EVERY) { self.bound_answers(caller) } else { Ok(()) }
    }
}
