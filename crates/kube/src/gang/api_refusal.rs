//! Gangs that the server turns down: where they go may not be written, or their pods may not be bound.
//!
//! A quota, a policy or a webhook may say no for as long as it likes, and a gang that has its seats meanwhile keeps others
//! out. It has as long as any gang has to be bound (`--bind-timeout`). Then it gives its seats back and is left alone for a
//! while, longer each time, so that others have them. What the server said is told where its owner looks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::constraints::pod_constraints::nowhere;
use crate::effects::outcome::Outcome;
use crate::gang::identity::BuiltGang;
use crate::host::Host;

/// The first pause. Each further one is twice as long: policies are mended within minutes, or not today.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30 * 60);
/// How often a gang that had its seats for nothing starts over at once, and after how long that is forgotten.
const AT_ONCE: u32 = 2;
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
/// What is said where the server has said nothing at all.
const UNANSWERED: &str = "the server does not take down where it goes";

/// What the server has against a gang.
#[derive(Debug, Default)]
pub(crate) struct ApiRefusal {
    why: String,
    /// How often it gave its seats back for it.
    times: u32,
    /// Until when it is left alone.
    pub(crate) until: Option<Instant>,
}

impl ApiRefusal {
    /// How long it is left alone when it gave its seats back so often.
    fn pause(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.times.saturating_sub(1)).unwrap_or(u32::MAX);
        PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
    }
}

/// What the server has against it, if it says no; that something is gone or another by now is nobody's fault.
pub(crate) fn refusal_of(said: &Said) -> Option<String> {
    match said {
        Said::Refused(_) => Some(said.to_string()),
        Said::Gone | Said::Conflict(_) | Said::Exists | Said::NotLeader => None,
    }
}

impl Host {
    /// The server has said no to a gang that has its seats. Its time runs from the first no.
    pub(crate) fn handle_api_refusal(&mut self, name: &Arc<str>, why: Option<String>) {
        let (Some(record), Some(why)) = (self.gangs.get_mut(name), why) else { return };
        record.binding_since.get_or_insert_with(Instant::now);
        let denied = record.api_refusal.get_or_insert_default();
        if denied.why != why {
            denied.why.clone_from(&why);
            let why = format!("it has its seats and cannot be bound: {why}");
            self.record_event(name, EventType::Warning, ("BindingRefused", "Bind"), &why);
        }
    }

    /// A gang whose time to be bound is over is left alone for a while if it was the server that kept it from it.
    pub(crate) fn back_off_if_refused(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        if record.api_refusal.is_none() && record.placement_writes_pending == 0 {
            return; // some of it is bound, and others are missing
        }
        let denied = record.api_refusal.get_or_insert_with(|| ApiRefusal {
            why: UNANSWERED.to_owned(),
            ..ApiRefusal::default()
        });
        Self::start_backoff(&self.outcomes, denied, name);
    }

    /// A gang that had its seats for nothing is left alone for a while, whatever kept it from using them: its volumes were not
    /// made, its scheduler did not bind it, or its Job was suspended again. Others have its seats meanwhile.
    pub(crate) fn back_off_because(&mut self, name: &Arc<str>, why: &str) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        let now = Instant::now();
        let (times, last) = record.unused_admissions.unwrap_or((0, now));
        let is_forgotten = now.saturating_duration_since(last) > FORGOTTEN;
        let times = if is_forgotten { 1 } else { times + 1 };
        record.unused_admissions = Some((times, now));
        if times <= AT_ONCE {
            return; // elsewhere, or a moment later, it may well be of use
        }
        let denied = record.api_refusal.get_or_insert_default();
        why.clone_into(&mut denied.why);
        Self::start_backoff(&self.outcomes, denied, name);
    }

    fn start_backoff(told: &UnboundedSender<Outcome>, denied: &mut ApiRefusal, name: &Arc<str>) {
        denied.times += 1;
        let pause = denied.pause();
        denied.until = Some(Instant::now() + pause);
        let (outcomes, name) = (told.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = outcomes.send(Outcome::Requeue(name));
        });
    }

    /// Why a gang is left alone now, if it is.
    pub(crate) fn backoff_reason(&self, name: &str) -> Option<String> {
        let denied = self.gangs.get(name)?.api_refusal.as_ref()?;
        let is_over = denied.until.is_none_or(|until| until <= Instant::now());
        (!is_over).then(|| format!("could not be bound and is tried again later: {}", denied.why))
    }

    /// Whoever is left alone goes nowhere, and says why.
    pub(crate) fn hold_during_backoff(&self, name: &str, built: &mut BuiltGang) {
        if let Some(why) = self.backoff_reason(name) {
            built.spec.roles.iter_mut().for_each(|role| nowhere(&mut role.constraints));
            built.wait_reason = Some(why);
        }
    }

    /// A gang has its seats no more. If it is to be left alone it is so from now on, and not only when it is looked at next.
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
    fn pauses_grow_and_end() {
        let pause = |times| ApiRefusal { times, ..ApiRefusal::default() }.pause().as_secs() / 60;
        assert_eq!([1, 2, 3, 5, 6, 40, 400].map(pause), [1, 2, 4, 16, 30, 30, 30]);
    }
}
