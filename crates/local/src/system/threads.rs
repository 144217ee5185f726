//! A fixed pool of threads for work that takes long or much memory.
//!
//! The threads are reused: the allocator retains what each thread has freed, so a new thread per job would multiply
//! that memory.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

/// The pool. Its threads end with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    jobs: Sender<Job>,
}

impl Threads {
    /// Starts the threads.
    pub(crate) fn new(name: &str, count: usize) -> io::Result<Self> {
        let (jobs, heard) = channel::<Job>();
        let heard = Arc::new(Mutex::new(heard));
        for number in 0..count {
            let heard = heard.clone();
            let thread = std::thread::Builder::new().name(format!("{name}-{number}"));
            thread.spawn(move || work(&heard))?;
        }
        Ok(Self { jobs })
    }

    /// Queues a job.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let _ = self.jobs.send(Box::new(job));
    }
}

fn work(heard: &Mutex<Receiver<Job>>) {
    loop {
        let job = heard.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // A panic is confined to its job: the client is told that there is no answer.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            let thread = std::thread::current();
            tracing::error!(thread = thread.name(), "a job ended in a panic");
        }
    }
}
