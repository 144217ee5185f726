//! The progress of an issued request, from its conditions.

use crate::provision::requests_served::conditions::{
    ACCEPTED, BOOKING_EXPIRED, CAPACITY_REVOKED, Conditions, FAILED, PROVISIONED,
};

/// The progress of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestProgress {
    /// No autoscaler has accepted it.
    Pending,
    /// An autoscaler has accepted it, and has started no machine.
    Accepted,
    /// All machines were started.
    Provisioned,
    /// No machine will be started.
    Refused,
    /// Machines were started; those that have not joined are not waited for any more.
    Expired,
    /// Machines were started, and are removed again.
    Revoked,
}

/// Cluster Autoscaler's reason when no node group can grow so much now. It would retry by itself; a gang that has other
/// offerings need not wait for that.
const NOT_FOUND: &str = "CapacityIsNotFound";

impl RequestProgress {
    pub(crate) fn of(conditions: &Conditions) -> Self {
        let started = conditions.is(PROVISIONED);
        if conditions.is(CAPACITY_REVOKED) {
            Self::Revoked
        } else if conditions.is(FAILED) || conditions.is(BOOKING_EXPIRED) {
            if started { Self::Expired } else { Self::Refused }
        } else if started {
            Self::Provisioned
        } else if conditions.reason(PROVISIONED) == Some(NOT_FOUND) {
            Self::Refused
        } else if conditions.is(ACCEPTED) {
            Self::Accepted
        } else {
            Self::Pending
        }
    }

    /// Whether new nodes may have been made for it.
    pub(crate) fn expects_nodes(self) -> bool {
        matches!(self, Self::Accepted | Self::Provisioned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::provision::requests_issued::progress::*;

    /// The progress after these conditions, each with its status and reason.
    fn after(conditions: &[(&str, &str, &str)]) -> RequestProgress {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status, reason)| {
                json!({
                    "type": kind, "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        let object = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
        RequestProgress::of(&Conditions::of(&serde_json::from_value(object).expect("an object")))
    }

    #[test]
    fn conditions_determine_the_progress_of_a_request() {
        let accepted = (ACCEPTED, "True", "Accepted");
        let started = (PROVISIONED, "True", "CapacityIsProvisioned");
        let cases = [
            (vec![], RequestProgress::Pending),
            (vec![(ACCEPTED, "False", "Later")], RequestProgress::Pending),
            (vec![accepted], RequestProgress::Accepted),
            (vec![accepted, (PROVISIONED, "False", "Queued")], RequestProgress::Accepted),
            (vec![accepted, (PROVISIONED, "False", NOT_FOUND)], RequestProgress::Refused),
            (vec![accepted, started], RequestProgress::Provisioned),
            (vec![accepted, (FAILED, "True", "Expired")], RequestProgress::Refused),
            (
                vec![accepted, started, (FAILED, "True", "FailedToBookCapacity")],
                RequestProgress::Expired,
            ),
            (
                vec![
                    accepted,
                    started,
                    (BOOKING_EXPIRED, "True", "CapacityReservationTimeExpired"),
                ],
                RequestProgress::Expired,
            ),
            (vec![accepted, started, (CAPACITY_REVOKED, "True", "Gone")], RequestProgress::Revoked),
        ];
        for (conditions, expected) in cases {
            assert_eq!(after(&conditions), expected, "{conditions:?}");
        }
    }
}
