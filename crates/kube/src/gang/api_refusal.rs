//! Gangs that the server turns down: where they go may not be written, or their pods may not be bound.
//!
//! A quota, a policy or a webhook may say no for as long as it likes, and a gang that has its seats meanwhile keeps others
//! out. It has as long as any gang has to be bound (`--bind-seconds`). Then it gives its seats back and is left alone for a
//! while, longer each time, so that others have them. What the server said is told where its owner looks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::cache::kinds::BuiltGang;
use crate::constraints::pod_constraints::nowhere;
use crate::host::{Host, Told};

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
pub(crate) fn refusal(said: &Said) -> Option<String> {
    match said {
        Said::Refused(_) => Some(said.to_string()),
        Said::Gone | Said::Conflict(_) | Said::Exists | Said::NotLeader => None,
    }
}

impl Host {
    /// The server has said no to a gang that has its seats. Its time runs from the first no.
    pub(crate) fn was_refused_by_api(&mut self, name: &Arc<str>, why: Option<String>) {
        let (Some(group), Some(why)) = (self.gangs.get_mut(name), why) else { return };
        group.binding.get_or_insert_with(Instant::now);
        let denied = group.denied.get_or_insert_default();
        if denied.why != why {
            denied.why.clone_from(&why);
            let why = format!("it has its seats and cannot be bound: {why}");
            self.record_event(name, EventType::Warning, ("Refused", "Bind"), &why);
        }
    }

    /// A gang whose time to be bound is over is left alone for a while if it was the server that kept it from it.
    pub(crate) fn defer(&mut self, name: &Arc<str>) {
        let Some(group) = self.gangs.get_mut(name) else { return };
        if group.denied.is_none() && group.recording == 0 {
            return; // some of it is bound, and others are missing
        }
        let denied = group.denied.get_or_insert_with(|| ApiRefusal {
            why: UNANSWERED.to_owned(),
            ..ApiRefusal::default()
        });
        Self::back_off(&self.outcomes, denied, name);
    }

    /// A gang that had its seats for nothing is left alone for a while, whatever kept it from using them: its volumes were not
    /// made, its scheduler did not bind it, or its Job was suspended again. Others have its seats meanwhile.
    pub(crate) fn defer_because(&mut self, name: &Arc<str>, why: &str) {
        let Some(group) = self.gangs.get_mut(name) else { return };
        let now = Instant::now();
        let (times, last) = group.for_nothing.unwrap_or((0, now));
        let is_forgotten = now.saturating_duration_since(last) > FORGOTTEN;
        let times = if is_forgotten { 1 } else { times + 1 };
        group.for_nothing = Some((times, now));
        if times <= AT_ONCE {
            return; // elsewhere, or a moment later, it may well be of use
        }
        let denied = group.denied.get_or_insert_default();
        why.clone_into(&mut denied.why);
        Self::back_off(&self.outcomes, denied, name);
    }

    fn back_off(told: &UnboundedSender<Told>, denied: &mut ApiRefusal, name: &Arc<str>) {
        denied.times += 1;
        let pause = denied.pause();
        denied.until = Some(Instant::now() + pause);
        let (told, name) = (told.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = told.send(Told::Called(name));
        });
    }

    /// Why a gang is left alone now, if it is.
    pub(crate) fn deferred(&self, name: &str) -> Option<String> {
        let denied = self.gangs.get(name)?.denied.as_ref()?;
        let is_over = denied.until.is_none_or(|until| until <= Instant::now());
        (!is_over).then(|| format!("could not be bound and is tried again later: {}", denied.why))
    }

    /// Whoever is left alone goes nowhere, and says why.
    pub(crate) fn defer_until(&self, name: &str, gathered: &mut BuiltGang) {
        if let Some(why) = self.deferred(name) {
            gathered.spec.roles.iter_mut().for_each(|role| nowhere(&mut role.constraints));
            gathered.waits = Some(why);
        }
    }

    /// A gang has its seats no more. If it is to be left alone it is so from now on, and not only when it is looked at next.
    pub(crate) fn may_be_deferred(&mut self, name: &Arc<str>) {
        if self.deferred(name).is_some()
            && let Ok(gathered) = self.gather_named(name)
        {
            self.submit_or_update(name, gathered);
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
