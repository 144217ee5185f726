//! The conditions of a ProvisioningRequest, as its API defines them.
//!
//! All conditions are kept as they were last set, because the observed object may be older, and are written together.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time as Stamp};
use kube::api::DynamicObject;
use muster_core::time::Time;
use serde_json::Value;

/// It is valid, and served.
pub(crate) const ACCEPTED: &str = "Accepted";
/// All of its capacity is booked.
pub(crate) const PROVISIONED: &str = "Provisioned";
/// It will not be served.
pub(crate) const FAILED: &str = "Failed";
/// Its capacity is not booked any more: it was consumed, or not in time.
pub(crate) const BOOKING_EXPIRED: &str = "BookingExpired";
/// Its capacity was booked, and was lost.
pub(crate) const CAPACITY_REVOKED: &str = "CapacityRevoked";

/// After any of these a request is closed.
const TERMINAL: [&str; 3] = [FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED];

/// A new value of one condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConditionUpdate<'a> {
    pub(crate) condition: &'static str,
    pub(crate) is_true: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// The conditions of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions(Vec<Condition>);

impl Conditions {
    /// The conditions of an object. Invalid ones were not written by Muster and are ignored.
    pub(crate) fn of(request: &DynamicObject) -> Self {
        let all = request.data.pointer("/status/conditions").and_then(Value::as_array);
        let read = all.into_iter().flatten().map(|one| serde_json::from_value(one.clone()));
        Self(read.filter_map(Result::ok).collect())
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.since(kind).is_some()
    }

    /// Since when a condition is true.
    pub(crate) fn since(&self, kind: &str) -> Option<Time> {
        let holds = |one: &&Condition| one.type_ == kind && one.status == "True";
        let one = self.0.iter().find(holds)?;
        Some(Time(one.last_transition_time.0.as_millisecond()))
    }

    /// The reason of a condition, whatever its status.
    pub(crate) fn reason(&self, kind: &str) -> Option<&str> {
        Some(&self.0.iter().find(|one| one.type_ == kind)?.reason)
    }

    /// Whether the request is closed.
    pub(crate) fn are_terminal(&self) -> bool {
        TERMINAL.iter().any(|kind| self.is(kind))
    }

    /// Sets a condition. Returns whether that changed anything.
    pub(crate) fn set(
        &mut self,
        now: Time,
        generation: Option<i64>,
        update: &ConditionUpdate<'_>,
    ) -> bool {
        let status = if update.is_true { "True" } else { "False" };
        let known = self.0.iter_mut().find(|one| one.type_ == update.condition);
        let same = |one: &Condition| {
            one.status == status && one.reason == update.reason && one.message == update.message
        };
        // The API server stores times to the second.
        let second = Timestamp::from_second(now.0.div_euclid(1_000)).unwrap_or_default();
        match known {
            Some(one) if same(one) => return false,
            Some(one) => {
                if one.status != status {
                    one.last_transition_time = Stamp(second);
                }
                status.clone_into(&mut one.status);
                update.reason.clone_into(&mut one.reason);
                update.message.clone_into(&mut one.message);
                one.observed_generation = generation;
            }
            None => self.0.push(Condition {
                type_: update.condition.to_owned(),
                status: status.to_owned(),
                reason: update.reason.to_owned(),
                message: update.message.to_owned(),
                last_transition_time: Stamp(second),
                observed_generation: generation,
            }),
        }
        true
    }

    /// The status patch.
    pub(crate) fn as_status(&self) -> Value {
        serde_json::json!({"status": {"conditions": self.0}})
    }
}

#[cfg(test)]
mod tests {
    use crate::provision::requests_served::conditions::*;

    fn update<'a>(condition: &'static str, is_true: bool, message: &'a str) -> ConditionUpdate<'a> {
        ConditionUpdate { condition, is_true, reason: "Because", message }
    }

    #[test]
    fn transition_time_changes_only_with_the_status() {
        let mut all = Conditions::default();
        assert!(all.set(Time(1_500), Some(1), &update(PROVISIONED, false, "1 of 4")));
        assert!(!all.set(Time(2_500), Some(1), &update(PROVISIONED, false, "1 of 4")));
        assert!(all.set(Time(3_500), Some(1), &update(PROVISIONED, false, "2 of 4")));
        assert_eq!(
            all.as_status()["status"]["conditions"][0]["lastTransitionTime"],
            "1970-01-01T00:00:01Z"
        );
        assert!(!all.is(PROVISIONED));
        assert!(all.set(Time(9_700), Some(1), &update(PROVISIONED, true, "4 of 4")));
        assert_eq!(all.since(PROVISIONED), Some(Time(9_000)));
        assert_eq!(all.0.len(), 1);
    }

    #[test]
    fn conditions_are_read_back_as_written() {
        let mut all = Conditions::default();
        all.set(Time(1_000), Some(1), &update(ACCEPTED, true, "valid"));
        assert!(!all.are_terminal());
        all.set(Time(2_000), Some(1), &update(FAILED, true, "too large"));
        let object =
            serde_json::json!({"metadata": {"name": "a"}, "status": all.as_status()["status"]});
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        assert_eq!(Conditions::of(&object), all);
        assert!(Conditions::of(&object).are_terminal());
    }
}
