//! The board: every object as it is now, and the latest that happened, for everybody who looks.
//!
//! One writes, many read. Readers of what happens go at their own pace: each remembers how far it has read and takes the
//! next from a ring of bounded length. One that is too slow finds a gap, is told so, and holds nobody back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use muster_api::crd::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::board::feed::{FeedChange, FeedLine, Note};

/// So much of what happened can be read again, if it is small.
const KEPT: usize = 16_384;
/// What can be read again takes so many bytes of memory at most, counted generously. The newest is kept whatever it takes.
const KEPT_BYTES: usize = 24 << 20;

/// A reader is given so many bytes at once, about, or one event: a client that does not read holds no more.
const AT_ONCE_BYTES: usize = 512 << 10;

/// Kinds of objects.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum Kind {
    /// Members that start together. Named `namespace/name`; all other kinds have plain names.
    Gang,
    /// A tenant's place.
    Queue,
    /// A supply of nodes.
    Pool,
    /// A machine.
    Node,
    /// Nodes that were asked for together.
    Order,
}

/// An object of a list, and its name.
pub type Listed = (Arc<str>, Arc<Value>);

/// What everybody can look at.
#[derive(Debug)]
pub struct Board {
    inner: RwLock<Inner>,
    /// The number of the newest news, for those who wait for the next.
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
    /// An empty board whose news are numbered from here on.
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

    /// An object is like this from now on. Nothing is told if it already was.
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

    /// An object is no more.
    pub fn remove(&self, at: Stamp, kind: Kind, name: &Arc<str>) {
        self.change(|inner| match inner.objects.remove(&(kind, name.clone())) {
            Some(_) => inner.tell(at, FeedChange::Gone { kind, name: name.clone() }),
            None => inner.newest,
        });
    }

    /// Something is worth telling.
    pub fn note(&self, at: Stamp, said: Note) {
        self.change(|inner| inner.tell(at, FeedChange::Note(said)));
    }

    /// One object.
    pub fn get(&self, kind: Kind, name: &str) -> Option<Arc<Value>> {
        self.read(|inner| inner.objects.get(&(kind, name.into())).cloned())
    }

    /// Objects of a kind that come after a name, in order of their names, as many as are wanted; and the number of the
    /// newest news they include.
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

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.read(|inner| inner.objects.keys().filter(|(of, _)| *of == kind).count())
    }

    /// Whoever wants to know what happens after some news; from now on when nobody says after which.
    pub fn follow(self: &Arc<Self>, after: Option<u64>) -> FeedReader {
        let newest = self.newest.subscribe();
        let after = after.unwrap_or_else(|| self.read(|inner| inner.newest));
        FeedReader { board: self.clone(), newest, after }
    }
}

/// Somebody who reads what happens, at their own pace.
#[derive(Debug)]
pub struct FeedReader {
    board: Arc<Board>,
    newest: watch::Receiver<u64>,
    after: u64,
}

/// What a reader finds.
#[derive(Clone, PartialEq, Debug)]
pub enum FeedRead {
    /// What happened next.
    News(Vec<Arc<FeedLine>>),
    /// It was too slow, or asks for what is too long ago: it goes on after this one, and had better read all objects
    /// again.
    Gap(u64),
}

impl FeedReader {
    /// The number of the last news it has read, or begins after.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Waits for what happened next, so many at most at once. `None` when nothing will happen any more.
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
            // The first goes whatever its size; what is written at once stays small all the same.
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
    async fn a_reader_that_is_too_slow_finds_a_gap_and_goes_on() {
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
    async fn what_can_be_read_again_is_bounded_in_bytes_and_what_is_read_at_once_too() {
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
    fn what_is_as_it_was_is_no_news() {
        let board = Board::new(0);
        let name: Arc<str> = "ns/a".into();
        board.set(at(), Kind::Gang, &name, json!({"a": 1}));
        board.set(at(), Kind::Gang, &name, json!({"a": 1}));
        board.remove(at(), Kind::Gang, &"ns/b".into());
        let (all, newest) = board.list(Kind::Gang, "", 10, |_, _| true);
        assert_eq!((all.len(), newest), (1, 1));
    }
}
