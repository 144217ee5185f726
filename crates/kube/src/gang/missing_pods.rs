//! Gangs with missing pods: stopped and not recreated yet, or fewer than before.
//!
//! A stopped gang has its pods recreated by its owner, and keeps its place in the queue for so long: what was lost with it, how
//! often it started over, and that it goes first if its node failed. Other gangs may use the capacity meanwhile.

use std::sync::Arc;
use std::time::Duration;

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::GangId;

use crate::constraints::pod_constraints::match_no_node;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::schedule::phase::PodsByState;

/// How long a gang without pods keeps its place in the queue.
const WITHOUT_PODS: Duration = Duration::from_secs(60);

impl Host {
    /// Handles a gang that cannot be built now. A waiting gang that has had no pods for a while, or too few when it was
    /// admitted, is cancelled; until then it keeps its place in the queue. A gang whose owner creates no pods before it is
    /// admitted, and declares nothing of them, has its pods requested.
    pub(crate) fn handle_incomplete(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("the gang has a record");
        if record.pods.is_empty() && self.creates_pods_after_admission(record) {
            return self.request_members(name);
        }
        let PodsByState { bound, unbound } = self.pods_by_state(record);
        let Some(id) = self.world.gang_named(name) else { return };
        let phase = &self.world.gang(id).expect("the World has the gang").phase;
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
            self.gangs.get_mut(name).expect("the gang has a record").submitted_spec = None;
        }
    }

    /// Holds a gang that the planner admits while pods of it are missing, until they are back.
    pub(crate) fn withhold_admission(&mut self, name: &Arc<str>, id: GangId) {
        tracing::info!(gang = &**name, "its pods were deleted before it could start");
        self.roll_back_order(id);
        let Some(gang) = self.world.gang(id).filter(|gang| gang.phase == Phase::Waiting) else {
            return;
        };
        let mut spec = gang.spec.clone();
        let record = self.gangs.get(name).expect("the gang has a record");
        if self.managed_job(&record.source).is_some() {
            // Pods that another scheduler binds are observed when they are bound.
            self.apply_event(&Event::GangCancelled(id));
            self.gangs.get_mut(name).expect("the gang has a record").submitted_spec = None;
            return;
        }
        spec.roles.iter_mut().for_each(|role| match_no_node(&mut role.constraints));
        if self.apply_event(&Event::GangChanged(spec.clone())) {
            let record = self.gangs.get_mut(name).expect("the gang has a record");
            (record.submitted_spec, record.pods_missing_at_admission) = (Some(spec), true);
            record.wait_reason =
                Some("its pods were deleted, and it waits for new ones".to_owned());
        }
        self.dirty.gangs.insert(name.clone());
    }
}
