//! The queue of future events, in order of time; at the same time, in order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use muster_core::time::Time;

/// A heap of future events.
#[derive(Debug)]
pub struct EventQueue<H> {
    heap: BinaryHeap<Reverse<Entry<H>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<H> {
    at: Time,
    turn: u64,
    what: H,
}

impl<H> Default for EventQueue<H> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }
}

impl<H> EventQueue<H> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds an event.
    pub fn add(&mut self, at: Time, what: H) {
        self.heap.push(Reverse(Entry { at, turn: self.entered, what }));
        self.entered += 1;
    }
    /// The time of the next event.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }
    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<(Time, H)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
    /// Keeps only the events for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&H) -> bool) {
        self.heap.retain(|Reverse(entry)| keep(&entry.what));
    }
}

impl<H> PartialEq for Entry<H> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.turn) == (other.at, other.turn)
    }
}
impl<H> Eq for Entry<H> {}
impl<H> PartialOrd for Entry<H> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<H> Ord for Entry<H> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.turn).cmp(&(other.at, other.turn))
    }
}
