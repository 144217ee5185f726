//! Answers queries on separate threads, from copies of the World, within a deadline.
//!
//! A query costs the control plane only the copy. Each caller has a limited number of queries in flight. A query whose
//! client is gone, or whose deadline has passed, is abandoned between two gangs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use muster_core::Event;
use muster_server::{Kind, Refused};

use crate::daemon::inputs::Reply;
use crate::system::threads::Threads;

/// An object that is not in the World yet: its kind, its name, and the event that adds it.
pub(crate) type NewObject = (Kind, Arc<str>, Event);

/// Number of threads.
const THREADS: usize = 2;
/// Queries in flight, at most.
const MOST: usize = 32;
/// Queries in flight for one caller, at most.
const MOST_EACH: usize = 4;
/// How long an answer may take, from the request on.
const DEADLINE: Duration = Duration::from_secs(10);

/// The query threads. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct QueryThreads {
    threads: Threads,
    under_way: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Whether an answer is still wanted.
pub(crate) struct QueryDeadline<'a> {
    until: Instant,
    is_gone: &'a dyn Fn() -> bool,
}

impl QueryDeadline<'_> {
    /// Returns an error if the client is gone or the deadline has passed.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if (self.is_gone)() {
            return Err(Refused::Unavailable("the client has disconnected".to_owned()));
        }
        if Instant::now() > self.until {
            let why = format!("the answer takes longer than {DEADLINE:?}: ask about less");
            return Err(Refused::Unavailable(why));
        }
        Ok(())
    }
}

impl QueryThreads {
    /// Starts the threads.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { threads: Threads::new("questions", THREADS)?, under_way: Arc::default() })
    }

    /// Queues a query.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        caller: &str,
        reply: Reply<T>,
        answer: impl FnOnce(&QueryDeadline<'_>) -> Result<T, Refused> + Send + 'static,
    ) {
        let Some(counted) = QuerySlot::new(&self.under_way, caller) else {
            let why = "there are too many questions at once".to_owned();
            return drop(reply.send(Err(Refused::Unavailable(why))));
        };
        let until = Instant::now() + DEADLINE;
        self.threads.run(move || {
            let _counted = counted;
            let answered = {
                let is_gone = || reply.is_closed();
                let deadline = QueryDeadline { until, is_gone: &is_gone };
                deadline.check().and_then(|()| answer(&deadline))
            };
            let _ = reply.send(answered);
        });
    }
}

/// A query in flight.
struct QuerySlot {
    under_way: Arc<Mutex<BTreeMap<String, usize>>>,
    caller: String,
}

impl QuerySlot {
    fn new(under_way: &Arc<Mutex<BTreeMap<String, usize>>>, caller: &str) -> Option<Self> {
        let mut counts = under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let mine = counts.get(caller).copied().unwrap_or_default();
        // `why` queries are not attributed to a caller; they are small.
        if all >= MOST || (mine >= MOST_EACH && !caller.is_empty()) {
            return None;
        }
        counts.insert(caller.to_owned(), mine + 1);
        Some(Self { under_way: under_way.clone(), caller: caller.to_owned() })
    }
}

impl Drop for QuerySlot {
    fn drop(&mut self) {
        let mut counts = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let left = counts.remove(&self.caller).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            counts.insert(std::mem::take(&mut self.caller), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn queries_per_caller_are_limited_and_a_panic_ends_only_one() {
        let pool = QueryThreads::new().expect("threads");
        let (resume, waits) = std::sync::mpsc::sync_channel::<()>(0);
        let waits = Arc::new(Mutex::new(waits));
        let mut answers = Vec::new();
        for round in 0..MOST_EACH + 1 {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let waits = waits.clone();
            pool.ask("eve", reply, move |_| {
                let _ = waits.lock().unwrap_or_else(PoisonError::into_inner).recv();
                assert_ne!(round, 0, "a mistake");
                Ok(round)
            });
            answers.push(answer);
        }
        let refused = answers.pop().map(|answer| answer.blocking_recv());
        assert!(matches!(refused, Some(Ok(Err(Refused::Unavailable(_))))), "{refused:?}");
        let (reply, other) = tokio::sync::oneshot::channel();
        pool.ask("bob", reply, |_| Ok(7));
        for _ in 0..MOST_EACH {
            resume.send(()).expect("a query waits");
        }
        assert_eq!(other.blocking_recv(), Ok(Ok(7)));
        let mut answers = answers.into_iter();
        assert!(answers.next().expect("the first").blocking_recv().is_err(), "it panicked");
        assert!(answers.all(|answer| matches!(answer.blocking_recv(), Ok(Ok(_)))));
    }

    #[test]
    fn query_of_a_disconnected_client_is_dropped() {
        let pool = QueryThreads::new().expect("threads");
        let (reply, answer) = tokio::sync::oneshot::channel::<Result<(), Refused>>();
        drop(answer);
        let (told, heard) = channel();
        pool.ask("eve", reply, move |_| {
            let _ = told.send(());
            Ok(())
        });
        assert!(heard.recv().is_err(), "the question is dropped unanswered");
    }
}
