//! Room for requests, bodies and streams, and who has taken how much of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::failure::{Code, Failure};

/// What room there is.
#[derive(Debug)]
pub(crate) struct Seats {
    requests: Arc<Semaphore>,
    /// In KiB, since permits are counted in 32 bits.
    bodies: Arc<Semaphore>,
    streams: Arc<Streams>,
}

#[derive(Debug)]
struct Streams {
    open: Mutex<BTreeMap<Arc<str>, usize>>,
    most: usize,
    most_each: usize,
}

/// The right to keep a stream open, for as long as this lives.
#[derive(Debug)]
pub(crate) struct StreamSeat {
    streams: Arc<Streams>,
    caller: Arc<str>,
}

impl Seats {
    pub(crate) fn new(limits: &Limits) -> Self {
        let streams = Streams {
            open: Mutex::default(),
            most: limits.streams,
            most_each: limits.streams_each,
        };
        Self {
            requests: Arc::new(Semaphore::new(limits.requests)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes.div_ceil(1024))),
            streams: Arc::new(streams),
        }
    }

    /// Room for one more request.
    pub(crate) fn request(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.requests.clone().try_acquire_owned().map_err(|_| full("requests"))
    }

    /// Room for a body.
    pub(crate) fn body(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        self.bodies.clone().try_acquire_many_owned(kibibytes).map_err(|_| full("bodies"))
    }

    /// Room for one more stream.
    pub(crate) fn stream(&self, caller: &Arc<str>) -> Result<StreamSeat, Failure> {
        let streams = &self.streams;
        let mut open = streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= streams.most {
            return Err(full("streams"));
        }
        let mine = open.entry(caller.clone()).or_default();
        if *mine >= streams.most_each {
            let why = format!("{caller} has {mine} streams open, and may have no more");
            return Err(Failure::new(Code::TooMany, why));
        }
        *mine += 1;
        Ok(StreamSeat { streams: streams.clone(), caller: caller.clone() })
    }
}

fn full(of: &str) -> Failure {
    Failure::new(Code::Unavailable, format!("there are too many {of} at once"))
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = open.get_mut(&self.caller) {
            *mine -= 1;
            if *mine == 0 {
                open.remove(&self.caller);
            }
        }
    }
}
