//! Names of a trace: many rows share a queue and a user, no two share a gang.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::trace::parse::cell::CellError;

/// Names seen so far. Equal names share one allocation; gang names must differ.
#[derive(Default)]
pub(crate) struct Names {
    shared: FxHashSet<Arc<str>>,
    gangs: FxHashMap<Arc<str>, u64>,
}

impl Names {
    /// A name that several rows may have.
    pub(crate) fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.shared.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.shared.insert(name.clone());
        name
    }

    /// A name of one gang, or of one node, which must be unique.
    pub(crate) fn only(&mut self, name: &str, line: u64) -> Result<Arc<str>, CellError> {
        let name: Arc<str> = name.into();
        match self.gangs.insert(name.clone(), line) {
            None => Ok(name),
            Some(line) => Err(CellError::NameTaken { line }),
        }
    }
}
