//! Room for requests, bodies, streams and changes, and which caller has taken how much of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Code, Failure};
use crate::{Caller, Limits};

/// What room there is.
#[derive(Debug)]
pub(crate) struct Seats {
    requests: Arc<Semaphore>,
    /// In KiB, since permits are counted in 32 bits.
    bodies: Arc<Semaphore>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    callers: Mutex<BTreeMap<Arc<str>, Each>>,
}

/// What one caller has taken. There are as many callers as there are tokens, so this cannot grow without end.
#[derive(Debug, Default)]
struct Each {
    taken: [usize; 4],
    /// Changes that may come now, and when that was counted.
    changes: Option<(f64, Instant)>,
}

/// What is counted for each caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Requests,
    /// In KiB.
    Bodies,
    Streams,
    Follows,
}

/// The right to have something open, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Seat {
    shared: Arc<Shared>,
    caller: Arc<str>,
    of: Of,
    amount: usize,
}

/// The right to keep a stream open.
pub(crate) type StreamSeat = Seat;

/// Room for a request or a body: of all, and of the caller's own.
pub(crate) type Room = (OwnedSemaphorePermit, Seat);

impl Seats {
    pub(crate) fn new(limits: &Limits) -> Self {
        let shared = Shared { limits: limits.clone(), callers: Mutex::default() };
        Self {
            requests: Arc::new(Semaphore::new(limits.requests)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes.div_ceil(1024))),
            shared: Arc::new(shared),
        }
    }

    /// Room for one more request.
    pub(crate) fn request(&self, by: &Asker) -> Result<Room, Failure> {
        let limits = &self.shared.limits;
        let most = if by.admin { limits.requests_admin } else { limits.requests_each };
        let all = self.requests.clone().try_acquire_owned().map_err(|_| full("requests"))?;
        Ok((all, self.seat(&by.name, Of::Requests, 1, most)?))
    }

    /// Room for a body.
    pub(crate) fn body(&self, by: &Asker, bytes: usize) -> Result<Room, Failure> {
        let limits = &self.shared.limits;
        let most = if by.admin { limits.bodies_bytes } else { limits.bodies_bytes_each };
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let all = self.bodies.clone().try_acquire_many_owned(kibibytes);
        let all = all.map_err(|_| full("bodies"))?;
        let own = self.seat(&by.name, Of::Bodies, bytes.div_ceil(1024), most.div_ceil(1024))?;
        Ok((all, own))
    }

    /// Room for one more stream.
    pub(crate) fn stream(&self, by: &Asker) -> Result<StreamSeat, Failure> {
        let limits = &self.shared.limits;
        self.all_below(Of::Streams, limits.streams, "streams")?;
        self.seat(&by.name, Of::Streams, 1, limits.streams_each)
    }

    /// Room for one more log that is followed.
    pub(crate) fn follow(&self, caller: &Arc<str>) -> Result<Seat, Failure> {
        let limits = &self.shared.limits;
        self.all_below(Of::Follows, limits.follows, "logs that are followed")?;
        self.seat(caller, Of::Follows, 1, limits.follows_each)
    }

    /// Whether one more change may come now. Admins may make as many as they like.
    pub(crate) fn change(&self, by: &Asker) -> Result<(), Failure> {
        if by.admin {
            return Ok(());
        }
        let (rate, burst) =
            (self.shared.limits.changes_per_second, self.shared.limits.changes_burst);
        let mut callers = self.shared.callers();
        let each = callers.entry(by.name.clone()).or_default();
        let now = Instant::now();
        let (left, at) = each.changes.unwrap_or((f64::from(burst), now));
        let left = (left + (now - at).as_secs_f64() * f64::from(rate)).min(f64::from(burst));
        each.changes = Some(((left - 1.0).max(0.0), now));
        if left >= 1.0 {
            return Ok(());
        }
        let why = format!("{} makes more than {rate} changes in a second", by.name);
        Err(Failure::new(Code::TooMany, why))
    }

    fn all_below(&self, of: Of, most: usize, words: &str) -> Result<(), Failure> {
        let sum: usize = self.shared.callers().values().map(|each| each.taken[of as usize]).sum();
        if sum < most { Ok(()) } else { Err(full(words)) }
    }

    fn seat(&self, caller: &Arc<str>, of: Of, amount: usize, most: usize) -> Result<Seat, Failure> {
        let mut callers = self.shared.callers();
        let taken = &mut callers.entry(caller.clone()).or_default().taken[of as usize];
        if *taken + amount > most {
            let what = match of {
                Of::Requests => format!("{taken} requests under way"),
                Of::Bodies => format!("bodies of {taken} KiB under way"),
                Of::Streams => format!("{taken} streams open"),
                Of::Follows => format!("{taken} logs followed"),
            };
            let why = format!("{caller} has {what}, and may have no more");
            return Err(Failure::new(Code::TooMany, why));
        }
        *taken += amount;
        drop(callers);
        Ok(Seat { shared: self.shared.clone(), caller: caller.clone(), of, amount })
    }
}

/// Whom room is for.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) name: Arc<str>,
    pub(crate) admin: bool,
}

impl From<Option<&Caller>> for Asker {
    fn from(caller: Option<&Caller>) -> Self {
        match caller {
            Some(caller) => Self { name: caller.name.clone(), admin: caller.is_admin() },
            None => Self { name: "".into(), admin: false },
        }
    }
}

impl Shared {
    fn callers(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Each>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full(of: &str) -> Failure {
    Failure::new(Code::Unavailable, format!("there are too many {of} at once"))
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(each) = self.shared.callers().get_mut(&self.caller) {
            each.taken[self.of as usize] -= self.amount;
        }
    }
}
