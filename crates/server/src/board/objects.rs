//! The board: the current state of every object, and a ring of recent changes.
//!
//! One writer, many readers. Each reader of the feed keeps its own position and reads the next entries from a ring of
//! bounded length. A slow reader gets a gap and continues after it; it never delays the writer or other readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use muster_api::crd::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::board::feed::{FeedChange, FeedLine, Note};

/// Entries in the ring, at most.
const KEPT: usize = 16_384;
/// Memory of the ring in bytes, at most, by a generous estimate. The newest entry is kept whatever its size.
const KEPT_BYTES: usize = 24 << 20;

/// Bytes in one batch for a reader, about, or one entry: a client that stops reading holds no more.
const AT_ONCE_BYTES: usize = 512 << 10;

/// Kinds of objects.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum Kind {
    /// Members that start together. Named `namespace/name`; all other kinds have plain names.
    Gang,
    /// A tenant's queue.
    Queue,
    /// A supply of nodes.
    Pool,
    /// A machine.
    Node,
    /// Nodes that were requested together.
    Order,
}

/// An object of a list, with its name.
pub type Listed = (Arc<str>, Arc<Value>);

/// The published state: objects and feed.
#[derive(Debug)]
pub struct Board {
    inner: RwLock<Inner>,
    /// The newest sequence number, watched by readers that wait for the next entry.
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<(Kind, Arc<str>), Arc<Value>>,
    ring: VecDeque<Arc<FeedLine>>,
    ring_bytes: usize,
    newest: u64,
}

impl Inner {
    fn tell(&mut self, at: Stamp, told: FeedChange) -> u64 {
        self.newest += 1;
        let line = FeedLine::new(self.newest, at, told);
        self.ring_bytes += line.bytes();
        self.ring.push_back(Arc::new(line));
        while self.ring.len() > KEPT || (self.ring_bytes > KEPT_BYTES && self.ring.len() > 1) {
            self.ring_bytes -= self.ring.pop_front().map_or(0, |oldest| oldest.bytes());
        }
        self.newest
    }
}

impl Board {
    /// An empty board; the feed is numbered after `after`.
    pub fn new(after: u64) -> Self {
        let inner = Inner { newest: after, ..Inner::default() };
        Self { inner: RwLock::new(inner), newest: watch::Sender::new(after) }
    }

    fn change(&self, change: impl FnOnce(&mut Inner) -> u64) {
        let newest = change(&mut self.inner.write().unwrap_or_else(PoisonError::into_inner));
        self.newest.send_replace(newest);
    }

    fn read<T>(&self, read: impl FnOnce(&Inner) -> T) -> T {
        read(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets an object. An unchanged object adds no entry to the feed.
    pub fn set(&self, at: Stamp, kind: Kind, name: &Arc<str>, object: Value) {
        self.change(|inner| {
            let key = (kind, name.clone());
            if inner.objects.get(&key).is_some_and(|known| **known == object) {
                return inner.newest;
            }
            let object = Arc::new(object);
            inner.objects.insert(key, object.clone());
            inner.tell(at, FeedChange::Set { kind, name: name.clone(), object })
        });
    }

    /// Removes an object.
    pub fn remove(&self, at: Stamp, kind: Kind, name: &Arc<str>) {
        self.change(|inner| match inner.objects.remove(&(kind, name.clone())) {
            Some(_) => inner.tell(at, FeedChange::Gone { kind, name: name.clone() }),
            None => inner.newest,
        });
    }

    /// Adds a note to the feed.
    pub fn note(&self, at: Stamp, said: Note) {
        self.change(|inner| inner.tell(at, FeedChange::Note(said)));
    }

    /// The former name of [`Board::note`], until every crate uses the new one.
    pub fn say(&self, at: Stamp, note: Note) {
        self.note(at, note);
    }

    /// One object.
    pub fn get(&self, kind: Kind, name: &str) -> Option<Arc<Value>> {
        self.read(|inner| inner.objects.get(&(kind, name.into())).cloned())
    }

    /// Objects of a kind after a name, in order of names, at most `most`; and the newest sequence number they include.
    pub fn list(
        &self,
        kind: Kind,
        after: &str,
        most: usize,
        wanted: impl Fn(&str, &Value) -> bool,
    ) -> (Vec<Listed>, u64) {
        use std::ops::Bound::{Excluded, Unbounded};
        self.read(|inner| {
            let from = inner.objects.range((Excluded((kind, Arc::from(after))), Unbounded));
            let of_kind = from.take_while(|((of, _), _)| *of == kind);
            let wanted = of_kind.filter(|((_, name), object)| wanted(name, object));
            let found = wanted.map(|((_, name), object)| (name.clone(), object.clone()));
            (found.take(most).collect(), inner.newest)
        })
    }

    /// The number of objects of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.read(|inner| inner.objects.keys().filter(|(of, _)| *of == kind).count())
    }

    /// Follows the feed after a sequence number; from now on if `None`.
    pub fn follow(self: &Arc<Self>, after: Option<u64>) -> FeedReader {
        let newest = self.newest.subscribe();
        let after = after.unwrap_or_else(|| self.read(|inner| inner.newest));
        FeedReader { board: self.clone(), newest, after }
    }
}

/// A reader of the feed, with a position of its own.
#[derive(Debug)]
pub struct FeedReader {
    board: Arc<Board>,
    newest: watch::Receiver<u64>,
    after: u64,
}

/// What a reader gets.
#[derive(Clone, PartialEq, Debug)]
pub enum FeedRead {
    /// The next entries.
    News(Vec<Arc<FeedLine>>),
    /// Entries are missing: the reader was too slow, or asked for entries that are no longer in the ring. It continues
    /// after this number, and should list all objects again.
    Gap(u64),
}

impl FeedReader {
    /// The sequence number of the last entry that was read, or the starting position.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Waits for the next entries, at most `most`. `None` when the board is gone.
    pub async fn next(&mut self, most: usize) -> Option<FeedRead> {
        loop {
            let newest = *self.newest.borrow_and_update();
            if let Some(found) = self.take(most) {
                return Some(found);
            }
            if newest <= self.after && self.newest.changed().await.is_err() {
                return None;
            }
        }
    }

    fn take(&mut self, most: usize) -> Option<FeedRead> {
        let after = self.after;
        let found = self.board.read(|inner| {
            let oldest = inner.newest - inner.ring.len() as u64;
            if after < oldest || after > inner.newest {
                return Some(FeedRead::Gap(inner.newest));
            }
            let skip = (after - oldest) as usize;
            // The first entry is returned whatever its size; all others only within the limit.
            let mut bytes = 0;
            let fits = |feed: &&Arc<FeedLine>| {
                let first = bytes == 0;
                bytes += feed.bytes();
                first || bytes <= AT_ONCE_BYTES
            };
            let from = inner.ring.iter().skip(skip).take(most);
            let feed: Vec<_> = from.take_while(fits).cloned().collect();
            (!feed.is_empty()).then_some(FeedRead::News(feed))
        })?;
        self.after = match &found {
            FeedRead::News(feed) => feed.last().map_or(after, |last| last.seq),
            FeedRead::Gap(newest) => *newest,
        };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;
    use serde_json::json;

    use super::*;

    fn at() -> Stamp {
        Stamp(Time(0))
    }

    #[tokio::test]
    async fn slow_reader_gets_a_gap_and_continues() {
        let board = Arc::new(Board::new(7));
        let (mut slow, mut quick) = (board.follow(None), board.follow(None));
        let name: Arc<str> = "a".into();
        board.set(at(), Kind::Queue, &name, json!(0));
        let seqs = |found: Option<FeedRead>| match found {
            Some(FeedRead::News(feed)) => feed.iter().map(|feed| feed.seq).collect::<Vec<_>>(),
            other => panic!("no news: {other:?}"),
        };
        assert_eq!(seqs(quick.next(10).await), [8]);
        for round in 0..KEPT + 1 {
            board.set(at(), Kind::Queue, &name, json!(round + 1));
        }
        let newest = 8 + KEPT as u64 + 1;
        assert_eq!(slow.next(10).await, Some(FeedRead::Gap(newest)));
        assert_eq!(quick.next(10).await, Some(FeedRead::Gap(newest)));
        board.remove(at(), Kind::Queue, &name);
        assert_eq!(seqs(slow.next(10).await), [newest + 1]);
    }

    #[tokio::test]
    async fn feed_ring_and_batches_are_bounded_in_bytes() {
        let board = Arc::new(Board::new(0));
        let (name, large): (Arc<str>, String) = ("ns/a".into(), "x".repeat(1 << 20));
        let mut reader = board.follow(None);
        for round in 0..200 {
            board.set(at(), Kind::Gang, &name, json!({"round": round, "env": &large}));
            let kept = board.read(|inner| inner.ring_bytes);
            assert!(kept <= KEPT_BYTES, "{kept} bytes after {round}");
        }
        assert!(matches!(reader.next(64).await, Some(FeedRead::Gap(200))));
        board.set(at(), Kind::Gang, &name, json!({"round": 200, "env": &large}));
        board.set(at(), Kind::Gang, &name, json!({"round": 201, "env": &large}));
        let Some(FeedRead::News(feed)) = reader.next(64).await else { panic!("no news") };
        assert_eq!(feed.len(), 1);
    }

    #[test]
    fn unchanged_object_adds_no_feed_entry() {
        let board = Board::new(0);
        let name: Arc<str> = "ns/a".into();
        board.set(at(), Kind::Gang, &name, json!({"a": 1}));
        board.set(at(), Kind::Gang, &name, json!({"a": 1}));
        board.remove(at(), Kind::Gang, &"ns/b".into());
        let (all, newest) = board.list(Kind::Gang, "", 10, |_, _| true);
        assert_eq!((all.len(), newest), (1, 1));
    }
}
