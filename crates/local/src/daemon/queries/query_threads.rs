//! Answers questions beside the control plane: a few threads, copies of the World, and a deadline.
//!
//! A question takes none of the control plane's time but for the copy. Each caller has a few under way at most, and one
//! whose client is gone, or whose time is up, is given up between two gangs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use muster_core::Event;
use muster_server::{Kind, Refused};

use crate::daemon::inputs::Reply;
use crate::system::threads::Threads;

/// Something that is not in the World yet: its kind, its name, and what the World is to be told.
pub(crate) type NewObject = (Kind, Arc<str>, Event);

/// Threads that answer.
const THREADS: usize = 2;
/// Questions under way, at most.
const MOST: usize = 32;
/// Questions under way for one caller, at most.
const MOST_EACH: usize = 4;
/// How long an answer may take, from when it was asked for.
const DEADLINE: Duration = Duration::from_secs(10);

/// The threads that answer questions. They end with this.
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
    /// Goes on, or says why not.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if (self.is_gone)() {
            return Err(Refused::Unavailable("nobody waits for the answer".to_owned()));
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

    /// Has a question answered, soon.
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

/// One question that is under way.
struct QuerySlot {
    under_way: Arc<Mutex<BTreeMap<String, usize>>>,
    caller: String,
}

impl QuerySlot {
    fn new(under_way: &Arc<Mutex<BTreeMap<String, usize>>>, caller: &str) -> Option<Self> {
        let mut counts = under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let mine = counts.get(caller).copied().unwrap_or_default();
        // Questions why a gang waits are of nobody in particular, and small.
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
    fn a_caller_has_few_questions_at_once_and_a_panic_ends_one_of_them() {
        let pool = QueryThreads::new().expect("threads");
        let (check, waits) = std::sync::mpsc::sync_channel::<()>(0);
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
            check.send(()).expect("somebody waits");
        }
        assert_eq!(other.blocking_recv(), Ok(Ok(7)));
        let mut answers = answers.into_iter();
        assert!(answers.next().expect("the first").blocking_recv().is_err(), "it panicked");
        assert!(answers.all(|answer| matches!(answer.blocking_recv(), Ok(Ok(_)))));
    }

    #[test]
    fn a_question_whose_client_is_gone_is_not_answered() {
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
