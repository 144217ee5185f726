//! Entries of the board's change feed. They are kept as text: a parsed object takes many times as much memory.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use muster_api::crd::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Kind;
use crate::auth::visibility::{queue_of, redacted};

/// One entry of the feed, in order.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "News")]
pub struct FeedEvent {
    /// Its sequence number. Numbers have no gaps, and continue after a restart.
    pub seq: u64,
    /// When it happened.
    pub at: Stamp,
    /// The change.
    #[serde(flatten)]
    pub told: FeedChange,
}

/// A change of an object, or a note about it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "type")]
#[schemars(rename = "Told")]
pub enum FeedChange {
    /// An object was created or changed; this is all of it.
    Set {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: Arc<str>,
        /// The whole object.
        object: Arc<Value>,
    },
    /// An object was removed.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: Arc<str>,
    },
    /// A note about an object.
    #[serde(rename = "said")]
    Note(Note),
}

/// A note about an object, like a Kubernetes Event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Said")]
pub struct Note {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// The reason in one word, such as `Started`.
    pub reason: Arc<str>,
    /// The message, a sentence.
    pub message: String,
    /// Whether it is a warning.
    pub warning: bool,
}

/// An encoded entry of the feed, shared by all readers.
#[derive(PartialEq, Debug)]
pub struct FeedLine {
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
    pub(crate) what: LineKind,
    text: Bytes,
    /// The redacted text for callers without the right to see environment values, made on first use; `None` if there is
    /// nothing to redact.
    redacted: OnceLock<Option<Bytes>>,
}

/// The kind of an entry, for filters.
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

    /// Upper estimate of its memory in bytes: the text in both versions.
    pub(crate) fn bytes(&self) -> usize {
        256 + 2 * self.text.len()
    }

    /// The entry as one line of JSON.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The same, with environment values redacted.
    pub(crate) fn redacted_text(&self) -> &Bytes {
        let redact = || {
            let feed: Value = serde_json::from_slice(&self.text).unwrap_or_default();
            Some(serde_json::to_vec(&redacted(&feed)?).unwrap_or_default().into())
        };
        self.redacted.get_or_init(redact).as_ref().unwrap_or(&self.text)
    }
}
