//! What happened, and how it is kept for readers: as text, since an object that is read takes many times as much memory.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use muster_api::crd::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Kind;
use crate::auth::visibility::{queue_of, redacted};

/// Something that happened, in the order it did.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "News")]
pub struct FeedEvent {
    /// Its number. Numbers have no gaps, and do not begin again with the process.
    pub seq: u64,
    /// When.
    pub at: Stamp,
    /// What.
    #[serde(flatten)]
    pub told: FeedChange,
}

/// What happened.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "type")]
#[schemars(rename = "Told")]
pub enum FeedChange {
    /// An object is new or has changed; this is all of it.
    Set {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: Arc<str>,
        /// All of it.
        object: Arc<Value>,
    },
    /// An object is no more.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: Arc<str>,
    },
    /// Something worth telling about an object.
    #[serde(rename = "said")]
    Note(Note),
}

/// A sentence about an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Said")]
pub struct Note {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// One word for it, such as `Started`.
    pub reason: Arc<str>,
    /// In a sentence.
    pub message: String,
    /// Whether somebody should look.
    pub warning: bool,
}

/// News as all readers get them.
#[derive(PartialEq, Debug)]
pub struct FeedLine {
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
    pub(crate) what: LineKind,
    text: Bytes,
    /// The same for callers who may not see values of environment variables, made when the first of them wants it; nothing
    /// when there are none in it.
    redacted: OnceLock<Option<Bytes>>,
}

/// What a line is about, for readers who want some lines only.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum LineKind {
    Set {
        /// The queue of a gang.
        queue: Option<Arc<str>>,
    },
    Gone,
    Note,
}

impl FeedLine {
    pub(crate) fn new(seq: u64, at: Stamp, told: FeedChange) -> Self {
        let (kind, name, what) = match &told {
            FeedChange::Set { kind, name, object } => {
                (*kind, name.clone(), LineKind::Set { queue: queue_of(object).map(Arc::from) })
            }
            FeedChange::Gone { kind, name } => (*kind, name.clone(), LineKind::Gone),
            FeedChange::Note(said) => (said.kind, said.name.clone(), LineKind::Note),
        };
        let text = serde_json::to_vec(&FeedEvent { seq, at, told }).unwrap_or_default().into();
        Self { seq, kind, name, what, text, redacted: OnceLock::new() }
    }

    /// Bytes of memory it takes at most, about: as text for two kinds of readers.
    pub(crate) fn bytes(&self) -> usize {
        256 + 2 * self.text.len()
    }

    /// As one line of JSON.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The same without values of environment variables.
    pub(crate) fn redacted_text(&self) -> &Bytes {
        let redact = || {
            let feed: Value = serde_json::from_slice(&self.text).unwrap_or_default();
            Some(serde_json::to_vec(&redacted(&feed)?).unwrap_or_default().into())
        };
        self.redacted.get_or_init(redact).as_ref().unwrap_or(&self.text)
    }
}
