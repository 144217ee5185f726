//! Opens and checks the SQLite file, migrates its schema, and runs transactions.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

/// The file name of the database in a data directory.
pub(crate) const DATABASE: &str = "muster.db";

/// Each schema as a migration from the previous one.
pub(super) const SCHEMAS: [&str; 3] =
    [include_str!("schema-1.sql"), include_str!("schema-2.sql"), include_str!("schema-3.sql")];

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is damaged.
    #[error(
        "{}: the database is damaged: {what}; restore it from a copy, or move it away to begin anew",
        path.display()
    )]
    Damaged {
        /// Which.
        path: PathBuf,
        /// How.
        what: String,
    },
    /// A newer Muster wrote it.
    #[error("{}: written by a newer Muster (schema {found}, this one knows {known})", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its schema.
        found: usize,
        /// The newest schema that is known.
        known: usize,
    },
    /// It is not a database of Muster.
    #[error("{}: is not a database of Muster", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("{}: {error}", path.display())]
    Sqlite {
        /// Which.
        path: PathBuf,
        /// Why.
        error: rusqlite::Error,
    },
}

impl StoreError {
    /// Whether a retry may succeed: the disk is full, or the system is out of another resource.
    pub(crate) fn may_pass(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DiskFull, OutOfMemory, SystemIoFailure,
        };
        let Self::Sqlite { error, .. } = self else { return false };
        let passes = [CannotOpen, DatabaseBusy, DiskFull, OutOfMemory, SystemIoFailure];
        error.sqlite_error_code().is_some_and(|code| passes.contains(&code))
    }
}

/// "MUST", as SQLite's application id.
const SIGNED: i64 = 0x4d55_5354;

/// The open database.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    /// Answers stored since it was opened.
    pub(super) answers: std::cell::Cell<u32>,
}

impl Store {
    /// Opens the database file, creates it if there is none, and migrates it.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path).map_err(|error| failed(path, error))?;
        let mut store = Self { connection, path: path.to_owned(), answers: Default::default() };
        store.prepare().map_err(|error| store.failed(error))?;
        store.check()?;
        store.migrate()?;
        Ok(store)
    }

    /// A read-only connection to the same database, beside the writer.
    pub(crate) fn reader(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| failed(path, error))?;
        Ok(Self { connection, path: path.to_owned(), answers: Default::default() })
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        let db = &self.connection;
        db.pragma_update(None, "journal_mode", "WAL")?;
        // A commit is durable when it returns, also in a power cut.
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        db.pragma_update(None, "cell_size_check", true)?;
        db.busy_timeout(std::time::Duration::from_secs(5))
    }

    /// Checks for damage before any data is used.
    fn check(&self) -> Result<(), StoreError> {
        let check = || {
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        };
        match check() {
            Ok(said) if said == "ok" => Ok(()),
            Ok(what) => Err(StoreError::Damaged { path: self.path.clone(), what }),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let number = |name: &str| {
            let read = self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            read.map_err(|error| self.failed(error))
        };
        let (signed, schema) = (number("application_id")?, number("user_version")? as usize);
        let is_new = signed == 0 && schema == 0 && number("schema_version")? == 0;
        if signed != SIGNED && !is_new {
            return Err(StoreError::Foreign { path: self.path.clone() });
        }
        if schema > SCHEMAS.len() {
            let (found, known) = (schema, SCHEMAS.len());
            return Err(StoreError::Newer { path: self.path.clone(), found, known });
        }
        let path = self.path.clone();
        let migrated = (|| {
            let change = self.connection.transaction()?;
            for step in &SCHEMAS[schema..] {
                change.execute_batch(step)?;
            }
            change.pragma_update(None, "application_id", SIGNED)?;
            change.pragma_update(None, "user_version", SCHEMAS.len() as i64)?;
            change.commit()
        })();
        migrated.map_err(|error| failed(&path, error))
    }

    pub(crate) fn failed(&self, error: rusqlite::Error) -> StoreError {
        failed(&self.path, error)
    }

    /// Begins the transaction of a turn.
    pub(crate) fn begin(&self) -> Result<(), StoreError> {
        self.run(|db| db.execute_batch("BEGIN IMMEDIATE"))
    }

    /// Commits the turn: all of its writes, or none.
    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        self.run(|db| db.execute_batch("COMMIT"))
    }

    pub(super) fn run<T>(
        &self,
        what: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        what(&self.connection).map_err(|error| self.failed(error))
    }

    /// Reads a single named value.
    pub(crate) fn fact(&self, name: &str) -> Result<Option<String>, StoreError> {
        use rusqlite::OptionalExtension;
        self.run(|db| {
            let mut found = db.prepare_cached("SELECT value FROM facts WHERE name = ?1")?;
            found.query_row([name], |row| row.get(0)).optional()
        })
    }

    /// Sets a single named value.
    pub(crate) fn set_fact(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.run(|db| {
            let mut set = db.prepare_cached("INSERT OR REPLACE INTO facts VALUES (?1, ?2)")?;
            set.execute([name, value]).map(drop)
        })
    }
}

fn failed(path: &Path, error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt) => StoreError::Damaged { path, what: error.to_string() },
        Some(NotADatabase) => StoreError::Foreign { path },
        _ => StoreError::Sqlite { path, error },
    }
}
