//! Counts requests, bodies, streams and changes, in total and per caller, and grants permits within the limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ErrorCode};
use crate::{Caller, Limits};

/// The counters.
#[derive(Debug)]
pub(crate) struct Concurrency {
    requests: Arc<Semaphore>,
    /// In KiB, since permits are counted in 32 bits.
    bodies: Arc<Semaphore>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    callers: Mutex<BTreeMap<Arc<str>, CallerUsage>>,
}

/// Usage of one caller. There are as many callers as tokens, so the map is bounded.
#[derive(Debug, Default)]
struct CallerUsage {
    taken: [usize; 4],
    /// Tokens left in the bucket for changes, and when that was computed.
    changes: Option<(f64, Instant)>,
}

/// What is counted per caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resource {
    Requests,
    /// In KiB.
    Bodies,
    Streams,
    Follows,
}

/// Permission to use a resource while this value lives.
#[derive(Debug)]
pub(crate) struct Permit {
    shared: Arc<Shared>,
    caller: Arc<str>,
    of: Resource,
    amount: usize,
}

/// Permission to keep a stream open.
pub(crate) type StreamPermit = Permit;

/// Permission for a request or a body: from the total, and from the caller's share.
pub(crate) type SharedPermit = (OwnedSemaphorePermit, Permit);

impl Concurrency {
    pub(crate) fn new(limits: &Limits) -> Self {
        let shared = Shared { limits: limits.clone(), callers: Mutex::default() };
        Self {
            requests: Arc::new(Semaphore::new(limits.requests)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes.div_ceil(1024))),
            shared: Arc::new(shared),
        }
    }

    /// A permit for one more request.
    pub(crate) fn request(&self, by: &Requester) -> Result<SharedPermit, ApiError> {
        let limits = &self.shared.limits;
        let most = if by.admin { limits.requests_admin } else { limits.requests_each };
        let all = self.requests.clone().try_acquire_owned().map_err(|_| full("requests"))?;
        Ok((all, self.permit(&by.name, Resource::Requests, 1, most)?))
    }

    /// A permit for a body.
    pub(crate) fn body(&self, by: &Requester, bytes: usize) -> Result<SharedPermit, ApiError> {
        let limits = &self.shared.limits;
        let most = if by.admin { limits.bodies_bytes } else { limits.bodies_bytes_each };
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let all = self.bodies.clone().try_acquire_many_owned(kibibytes);
        let all = all.map_err(|_| full("bodies"))?;
        let own =
            self.permit(&by.name, Resource::Bodies, bytes.div_ceil(1024), most.div_ceil(1024))?;
        Ok((all, own))
    }

    /// A permit for one more stream.
    pub(crate) fn stream(&self, by: &Requester) -> Result<StreamPermit, ApiError> {
        let limits = &self.shared.limits;
        self.all_below(Resource::Streams, limits.streams, "streams")?;
        self.permit(&by.name, Resource::Streams, 1, limits.streams_each)
    }

    /// A permit for one more followed log.
    pub(crate) fn follow(&self, caller: &Arc<str>) -> Result<Permit, ApiError> {
        let limits = &self.shared.limits;
        self.all_below(Resource::Follows, limits.follows, "logs that are followed")?;
        self.permit(caller, Resource::Follows, 1, limits.follows_each)
    }

    /// Takes a token for one more change. Admins are not limited.
    pub(crate) fn change(&self, by: &Requester) -> Result<(), ApiError> {
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
        Err(ApiError::new(ErrorCode::TooMany, why))
    }

    fn all_below(&self, of: Resource, most: usize, words: &str) -> Result<(), ApiError> {
        let sum: usize = self.shared.callers().values().map(|each| each.taken[of as usize]).sum();
        if sum < most { Ok(()) } else { Err(full(words)) }
    }

    fn permit(
        &self,
        caller: &Arc<str>,
        of: Resource,
        amount: usize,
        most: usize,
    ) -> Result<Permit, ApiError> {
        let mut callers = self.shared.callers();
        let taken = &mut callers.entry(caller.clone()).or_default().taken[of as usize];
        if *taken + amount > most {
            let what = match of {
                Resource::Requests => format!("{taken} requests under way"),
                Resource::Bodies => format!("bodies of {taken} KiB under way"),
                Resource::Streams => format!("{taken} streams open"),
                Resource::Follows => format!("{taken} logs followed"),
            };
            let why = format!("{caller} has {what}, and may have no more");
            return Err(ApiError::new(ErrorCode::TooMany, why));
        }
        *taken += amount;
        drop(callers);
        Ok(Permit { shared: self.shared.clone(), caller: caller.clone(), of, amount })
    }
}

/// The caller that a permit is for.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    pub(crate) name: Arc<str>,
    pub(crate) admin: bool,
}

impl From<Option<&Caller>> for Requester {
    fn from(caller: Option<&Caller>) -> Self {
        match caller {
            Some(caller) => Self { name: caller.name.clone(), admin: caller.is_admin() },
            None => Self { name: "".into(), admin: false },
        }
    }
}

impl Shared {
    fn callers(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, CallerUsage>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full(of: &str) -> ApiError {
    ApiError::new(ErrorCode::Unavailable, format!("there are too many {of} at once"))
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(each) = self.shared.callers().get_mut(&self.caller) {
            each.taken[self.of as usize] -= self.amount;
        }
    }
}
