//! Gangs whose pods are away: stopped, and not made again yet, or fewer than they were.
//!
//! Whoever was stopped has its pods made again, and keeps its place for so long: it is known what was lost with it, how
//! often it started over, and that it goes first if its node failed. Others may have the room meanwhile.

use std::sync::Arc;
use std::time::Duration;

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::GangId;

use crate::constraints::pod_constraints::nowhere;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::schedule::phase::PodsByState;

/// How long a gang without pods keeps its place.
const WITHOUT_PODS: Duration = Duration::from_secs(60);

impl Host {
    /// Pods that are no gang now. One that waits and has had no pods for a while, or too few when there was room, waits for
    /// nothing; until then it keeps its place. One whose owner makes none before it is let in, and says nothing of them
    /// either, is let in.
    pub(crate) fn handle_incomplete(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("just seen");
        if record.pods.is_empty() && self.creates_pods_after_admission(record) {
            return self.request_members(name);
        }
        let PodsByState { bound, unbound } = self.pods_by_state(record);
        let Some(id) = self.world.gang_named(name) else { return };
        let phase = &self.world.gang(id).expect("named").phase;
        let waits = matches!(phase, Phase::Waiting | Phase::Assembling(_));
        if waits && bound.is_empty() && (unbound.is_empty() || record.pods_missing_at_admission) {
            let since = record.blocked.as_ref().map(|(_, since)| since.elapsed());
            if let Some(left) = WITHOUT_PODS.checked_sub(since.unwrap_or_default()) {
                let (outcomes, name) = (self.outcomes.clone(), name.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(left + Duration::from_secs(1)).await;
                    let _ = outcomes.send(Outcome::Requeue(name));
                });
                return;
            }
            self.apply_event(&Event::GangCancelled(id));
            self.gangs.get_mut(name).expect("just seen").submitted_spec = None;
        }
    }

    /// There is room for a gang, and its pods are away. It goes nowhere until they are back.
    pub(crate) fn withhold_admission(&mut self, name: &Arc<str>, id: GangId) {
        tracing::info!(gang = &**name, "its pods went away before it could start");
        self.roll_back_order(id);
        let Some(gang) = self.world.gang(id).filter(|gang| gang.phase == Phase::Waiting) else {
            return;
        };
        let mut spec = gang.spec.clone();
        let record = self.gangs.get(name).expect("just seen");
        if self.managed_job(&record.source).is_some() {
            // What another scheduler has to place will be seen when it has.
            self.apply_event(&Event::GangCancelled(id));
            self.gangs.get_mut(name).expect("just seen").submitted_spec = None;
            return;
        }
        spec.roles.iter_mut().for_each(|role| nowhere(&mut role.constraints));
        if self.apply_event(&Event::GangChanged(spec.clone())) {
            let record = self.gangs.get_mut(name).expect("just seen");
            (record.submitted_spec, record.pods_missing_at_admission) = (Some(spec), true);
            record.wait_reason = Some("its pods went away, and are waited for".to_owned());
        }
        self.dirty.gangs.insert(name.clone());
    }
}
