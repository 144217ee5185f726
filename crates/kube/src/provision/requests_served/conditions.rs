//! What is said of a request, in the words that whoever wrote it reads.
//!
//! All conditions are kept as they were last said, because what the server shows may be older, and are written together.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time as Stamp};
use kube::api::DynamicObject;
use muster_core::time::Time;
use serde_json::Value;

/// It is understood, and served.
pub(crate) const ACCEPTED: &str = "Accepted";
/// All of its room is there, and kept for it.
pub(crate) const PROVISIONED: &str = "Provisioned";
/// It will not be served.
pub(crate) const FAILED: &str = "Failed";
/// Its room is not kept any more: it was taken, or nobody came.
pub(crate) const BOOKING_EXPIRED: &str = "BookingExpired";
/// Its room was there, and was lost.
pub(crate) const CAPACITY_REVOKED: &str = "CapacityRevoked";

/// After any of these nothing more is done for a request.
const FINAL: [&str; 3] = [FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED];

/// Something to be said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) kind: &'static str,
    pub(crate) is: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// The conditions of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions(Vec<Condition>);

impl Conditions {
    /// As an object has them. What cannot be read was not written by Muster.
    pub(crate) fn of(request: &DynamicObject) -> Self {
        let all = request.data.pointer("/status/conditions").and_then(Value::as_array);
        let read = all.into_iter().flatten().map(|one| serde_json::from_value(one.clone()));
        Self(read.filter_map(Result::ok).collect())
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.since(kind).is_some()
    }

    /// Since when something is so.
    pub(crate) fn since(&self, kind: &str) -> Option<Time> {
        let holds = |one: &&Condition| one.type_ == kind && one.status == "True";
        let one = self.0.iter().find(holds)?;
        Some(Time(one.last_transition_time.0.as_millisecond()))
    }

    /// Why something is as it is.
    pub(crate) fn reason(&self, kind: &str) -> Option<&str> {
        Some(&self.0.iter().find(|one| one.type_ == kind)?.reason)
    }

    /// Whether nothing more is done.
    pub(crate) fn are_final(&self) -> bool {
        FINAL.iter().any(|kind| self.is(kind))
    }

    /// Says something, and whether that is news.
    pub(crate) fn say(&mut self, now: Time, generation: Option<i64>, word: &Word<'_>) -> bool {
        let status = if word.is { "True" } else { "False" };
        let known = self.0.iter_mut().find(|one| one.type_ == word.kind);
        let same = |one: &Condition| {
            one.status == status && one.reason == word.reason && one.message == word.message
        };
        // Servers tell time to the second.
        let second = Timestamp::from_second(now.0.div_euclid(1_000)).unwrap_or_default();
        match known {
            Some(one) if same(one) => return false,
            Some(one) => {
                if one.status != status {
                    one.last_transition_time = Stamp(second);
                }
                status.clone_into(&mut one.status);
                word.reason.clone_into(&mut one.reason);
                word.message.clone_into(&mut one.message);
                one.observed_generation = generation;
            }
            None => self.0.push(Condition {
                type_: word.kind.to_owned(),
                status: status.to_owned(),
                reason: word.reason.to_owned(),
                message: word.message.to_owned(),
                last_transition_time: Stamp(second),
                observed_generation: generation,
            }),
        }
        true
    }

    /// As they are written.
    pub(crate) fn as_status(&self) -> Value {
        serde_json::json!({"status": {"conditions": self.0}})
    }
}

#[cfg(test)]
mod tests {
    use crate::provision::requests_served::conditions::*;

    fn word<'a>(kind: &'static str, is: bool, message: &'a str) -> Word<'a> {
        Word { kind, is, reason: "Because", message }
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_turn() {
        let mut all = Conditions::default();
        assert!(all.say(Time(1_500), Some(1), &word(PROVISIONED, false, "1 of 4")));
        assert!(!all.say(Time(2_500), Some(1), &word(PROVISIONED, false, "1 of 4")));
        assert!(all.say(Time(3_500), Some(1), &word(PROVISIONED, false, "2 of 4")));
        assert_eq!(
            all.as_status()["status"]["conditions"][0]["lastTransitionTime"],
            "1970-01-01T00:00:01Z"
        );
        assert!(!all.is(PROVISIONED));
        assert!(all.say(Time(9_700), Some(1), &word(PROVISIONED, true, "4 of 4")));
        assert_eq!(all.since(PROVISIONED), Some(Time(9_000)));
        assert_eq!(all.0.len(), 1);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let mut all = Conditions::default();
        all.say(Time(1_000), Some(1), &word(ACCEPTED, true, "understood"));
        assert!(!all.are_final());
        all.say(Time(2_000), Some(1), &word(FAILED, true, "too large"));
        let object =
            serde_json::json!({"metadata": {"name": "a"}, "status": all.as_status()["status"]});
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        assert_eq!(Conditions::of(&object), all);
        assert!(Conditions::of(&object).are_final());
    }
}
