//! The conditions of a Gang: `Admitted`, `Provisioned`, `Running` and `Finished`, each derived from its phase.
//!
//! They say what `phase` says in the form that `kubectl wait --for=condition=...` and dashboards read, with the meaning
//! that users of Kueue's Workload know: a gang that finished stays `Admitted`, one that is preempted does not.

use muster_core::time::Time;
use serde_json::Value;

use crate::crd::condition::{Condition, ConditionStatus};
use crate::crd::gang::status::GangPhase;
use crate::crd::values::stamp::Stamp;

/// Every member has a seat.
pub const ADMITTED: &str = "Admitted";
/// Every node that the gang needs is ready.
pub const PROVISIONED: &str = "Provisioned";
/// Every member runs.
pub const RUNNING: &str = "Running";
/// The gang has ended, with or without success.
pub const FINISHED: &str = "Finished";

/// The four conditions of a gang in this phase. `before` is the status it has now: a condition whose status does not
/// change keeps its transition time, and an ended gang keeps whether it was ever admitted and provisioned. `Admitted`
/// carries the message, `Finished` that of an ended gang.
pub fn gang_conditions(
    phase: GangPhase,
    reason: &str,
    message: &str,
    before: Option<&Value>,
    now: Time,
) -> Vec<Condition> {
    let known = before.and_then(|status| status.get("conditions")?.as_array());
    let known = |kind: &str| known?.iter().find(|one| one["type"] == kind);
    let held = |kind: &str| known(kind).is_some_and(|one| one["status"] == "True");
    let is_finished = matches!(phase, GangPhase::Succeeded | GangPhase::Failed);
    let has_seats = matches!(phase, GangPhase::Admitted | GangPhase::Running);
    // A message can be long: one condition carries it.
    let with_message = if is_finished { FINISHED } else { ADMITTED };
    [
        (ADMITTED, has_seats || (is_finished && held(ADMITTED))),
        (PROVISIONED, has_seats || (is_finished && held(PROVISIONED))),
        (RUNNING, phase == GangPhase::Running),
        (FINISHED, is_finished),
    ]
    .map(|(kind, holds)| {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        let same = known(kind).filter(|one| one["status"] == if holds { "True" } else { "False" });
        let since =
            same.and_then(|one| serde_json::from_value(one["lastTransitionTime"].clone()).ok());
        Condition {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: if kind == with_message { message.to_owned() } else { String::new() },
            last_transition_time: since.unwrap_or(Stamp(now)),
            observed_generation: None,
        }
    })
    .into()
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;
    use serde_json::{Value, json};

    use crate::crd::gang::conditions::{GangPhase, gang_conditions};

    fn held(phase: GangPhase, before: Option<&Value>) -> String {
        let all = gang_conditions(phase, "Reason", "a message", before, Time(0));
        let all = all.iter().map(|one| json!(one));
        let all: Vec<String> = all
            .filter(|one| one["status"] == "True")
            .map(|one| one["type"].as_str().unwrap_or_default().to_owned())
            .collect();
        all.join(" ")
    }

    #[test]
    fn each_phase_has_its_conditions() {
        assert_eq!(held(GangPhase::Waiting, None), "");
        assert_eq!(held(GangPhase::Provisioning, None), "");
        assert_eq!(held(GangPhase::Admitted, None), "Admitted Provisioned");
        assert_eq!(held(GangPhase::Running, None), "Admitted Provisioned Running");
        assert_eq!(held(GangPhase::Stopping, None), "");
        assert_eq!(held(GangPhase::Infeasible, None), "");
        assert_eq!(held(GangPhase::Failed, None), "Finished");
        let ran =
            json!({"conditions": gang_conditions(GangPhase::Running, "R", "", None, Time(0))});
        assert_eq!(held(GangPhase::Succeeded, Some(&ran)), "Admitted Provisioned Finished");
    }

    #[test]
    fn unchanged_condition_keeps_its_transition_time() {
        let first = gang_conditions(GangPhase::Admitted, "R", "", None, Time(1_000));
        let before = json!({"conditions": first});
        let then = gang_conditions(GangPhase::Running, "R", "", Some(&before), Time(9_000));
        let times: Vec<i64> = then.iter().map(|one| one.last_transition_time.0.0).collect();
        assert_eq!(times, [1_000, 1_000, 9_000, 1_000]);
    }
}
