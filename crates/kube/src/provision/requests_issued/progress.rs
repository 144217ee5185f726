//! What an autoscaler has said of a request, in one word.

use crate::provision::requests_served::conditions::{
    ACCEPTED, BOOKING_EXPIRED, CAPACITY_REVOKED, Conditions, FAILED, PROVISIONED,
};

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PodsByState {
    /// Nobody has said that he serves it.
    Unheard,
    /// Somebody serves it, and has started nothing yet.
    Accepted,
    /// All of its machines were started.
    Provisioned,
    /// Nothing will be started.
    Refused,
    /// Machines were started, and those that have not come are not waited for any more.
    Lapsed,
    /// Machines were started, and are taken away again.
    Revoked,
}

/// The reason by which Cluster Autoscaler says that no group of nodes can grow so much now. It would try again by
/// itself; whoever can go elsewhere need not wait for that.
const NOT_FOUND: &str = "CapacityIsNotFound";

impl PodsByState {
    pub(crate) fn of(conditions: &Conditions) -> Self {
        let started = conditions.is(PROVISIONED);
        if conditions.is(CAPACITY_REVOKED) {
            Self::Revoked
        } else if conditions.is(FAILED) || conditions.is(BOOKING_EXPIRED) {
            if started { Self::Lapsed } else { Self::Refused }
        } else if started {
            Self::Provisioned
        } else if conditions.reason(PROVISIONED) == Some(NOT_FOUND) {
            Self::Refused
        } else if conditions.is(ACCEPTED) {
            Self::Accepted
        } else {
            Self::Unheard
        }
    }

    /// Whether nodes that come now may be its.
    pub(crate) fn brings_nodes(self) -> bool {
        matches!(self, Self::Accepted | Self::Provisioned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::provision::requests_issued::progress::*;

    /// The standing after these conditions, each with its status and reason.
    fn after(said: &[(&str, &str, &str)]) -> PodsByState {
        let conditions: Vec<_> = said
            .iter()
            .map(|(kind, status, reason)| {
                json!({
                    "type": kind, "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        let object = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
        PodsByState::of(&Conditions::of(&serde_json::from_value(object).expect("an object")))
    }

    #[test]
    fn conditions_are_told_in_one_word() {
        let accepted = (ACCEPTED, "True", "Accepted");
        let started = (PROVISIONED, "True", "CapacityIsProvisioned");
        let cases = [
            (vec![], PodsByState::Unheard),
            (vec![(ACCEPTED, "False", "Later")], PodsByState::Unheard),
            (vec![accepted], PodsByState::Accepted),
            (vec![accepted, (PROVISIONED, "False", "Queued")], PodsByState::Accepted),
            (vec![accepted, (PROVISIONED, "False", NOT_FOUND)], PodsByState::Refused),
            (vec![accepted, started], PodsByState::Provisioned),
            (vec![accepted, (FAILED, "True", "Expired")], PodsByState::Refused),
            (
                vec![accepted, started, (FAILED, "True", "FailedToBookCapacity")],
                PodsByState::Lapsed,
            ),
            (
                vec![
                    accepted,
                    started,
                    (BOOKING_EXPIRED, "True", "CapacityReservationTimeExpired"),
                ],
                PodsByState::Lapsed,
            ),
            (vec![accepted, started, (CAPACITY_REVOKED, "True", "Gone")], PodsByState::Revoked),
        ];
        for (said, expected) in cases {
            assert_eq!(after(&said), expected, "{said:?}");
        }
    }
}
