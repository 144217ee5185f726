//! Backs off gangs that the API server refuses: their placement may not be written, or their pods may not be bound.
//!
//! A quota, a policy or a webhook may refuse for any length of time, and a gang that keeps its seats meanwhile keeps other
//! gangs out. It has the bind timeout (`--bind-timeout`), like any gang. Then it gives its seats back and backs off, longer each
//! time, so that other gangs have them. The API server's message is in its Events and its status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::ApiError;
use crate::constraints::pod_constraints::match_no_node;
use crate::effects::outcome::Outcome;
use crate::gang::identity::BuiltGang;
use crate::host::Host;

/// The first backoff. Each further one is twice as long: policies are fixed within minutes, or not today.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest backoff.
const PAUSE_MAX: Duration = Duration::from_secs(30 * 60);
/// How often a gang that did not use its seats starts over without a backoff, and after how long that is forgotten.
const FREE_RETRIES: u32 = 2;
const FORGET_AFTER: Duration = Duration::from_secs(60 * 60);
/// The message where the API server has not answered at all.
const UNANSWERED: &str = "the API server does not store its placement";

/// The API server's refusal to bind a gang, with its backoff.
#[derive(Debug, Default)]
pub(crate) struct ApiRefusal {
    why: String,
    /// How often the gang gave its seats back for it.
    times: u32,
    /// The end of the current backoff.
    pub(crate) until: Option<Instant>,
}

impl ApiRefusal {
    /// The length of the next backoff.
    fn pause(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.times.saturating_sub(1)).unwrap_or(u32::MAX);
        PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
    }
}

/// The reason of a refusal. A conflict, or an object that is gone or exists already, is none.
pub(crate) fn refusal_of(error: &ApiError) -> Option<String> {
    match error {
        ApiError::Refused(_) => Some(error.to_string()),
        ApiError::NotFound
        | ApiError::Conflict(_)
        | ApiError::AlreadyExists
        | ApiError::NotLeader => None,
    }
}

impl Host {
    /// Notes that the API server refused to bind a gang that has its seats. The bind timeout runs from the first refusal.
    pub(crate) fn handle_api_refusal(&mut self, name: &Arc<str>, why: Option<String>) {
        let (Some(record), Some(why)) = (self.gangs.get_mut(name), why) else { return };
        record.binding_since.get_or_insert_with(Instant::now);
        let refusal = record.api_refusal.get_or_insert_default();
        if refusal.why != why {
            refusal.why.clone_from(&why);
            let why = format!("it has its seats and cannot be bound: {why}");
            self.record_event(name, EventType::Warning, ("BindingRefused", "Bind"), &why);
        }
    }

    /// Backs off a gang whose bind timeout has expired, if the API server refused it.
    pub(crate) fn back_off_if_refused(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        if record.api_refusal.is_none() && record.placement_writes_pending == 0 {
            return; // some members are bound, and others are missing
        }
        let refusal = record.api_refusal.get_or_insert_with(|| ApiRefusal {
            why: UNANSWERED.to_owned(),
            ..ApiRefusal::default()
        });
        Self::start_backoff(&self.outcomes, refusal, name);
    }

    /// Backs off a gang that did not use its seats, for whatever reason: its volumes were not provisioned, its scheduler did
    /// not bind it, or its Job was suspended again. Other gangs have its seats meanwhile.
    pub(crate) fn back_off_because(&mut self, name: &Arc<str>, why: &str) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        let now = Instant::now();
        let (times, last) = record.unused_admissions.unwrap_or((0, now));
        let is_forgotten = now.saturating_duration_since(last) > FORGET_AFTER;
        let times = if is_forgotten { 1 } else { times + 1 };
        record.unused_admissions = Some((times, now));
        if times <= FREE_RETRIES {
            return; // on other seats, or a moment later, it may well start
        }
        let refusal = record.api_refusal.get_or_insert_default();
        why.clone_into(&mut refusal.why);
        Self::start_backoff(&self.outcomes, refusal, name);
    }

    fn start_backoff(
        outcomes: &UnboundedSender<Outcome>,
        refusal: &mut ApiRefusal,
        name: &Arc<str>,
    ) {
        refusal.times += 1;
        let pause = refusal.pause();
        refusal.until = Some(Instant::now() + pause);
        let (outcomes, name) = (outcomes.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = outcomes.send(Outcome::Requeue(name));
        });
    }

    /// Why a gang backs off now, if it does.
    pub(crate) fn backoff_reason(&self, name: &str) -> Option<String> {
        let refusal = self.gangs.get(name)?.api_refusal.as_ref()?;
        let is_over = refusal.until.is_none_or(|until| until <= Instant::now());
        (!is_over).then(|| format!("could not be bound and is tried again later: {}", refusal.why))
    }

    /// Holds a gang that backs off: it is placed nowhere, with the reason.
    pub(crate) fn hold_during_backoff(&self, name: &str, built: &mut BuiltGang) {
        if let Some(why) = self.backoff_reason(name) {
            built.spec.roles.iter_mut().for_each(|role| match_no_node(&mut role.constraints));
            built.wait_reason = Some(why);
        }
    }

    /// Holds a gang that lost its seats at once if it backs off, and not only when it is reconciled next.
    pub(crate) fn hold_if_backing_off(&mut self, name: &Arc<str>) {
        if self.backoff_reason(name).is_some()
            && let Ok(built) = self.build_for_submit(name)
        {
            self.submit_or_update(name, built);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gang::api_refusal::*;

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let pause = |times| ApiRefusal { times, ..ApiRefusal::default() }.pause().as_secs() / 60;
        assert_eq!([1, 2, 3, 5, 6, 40, 400].map(pause), [1, 2, 4, 16, 30, 30, 30]);
    }
}
