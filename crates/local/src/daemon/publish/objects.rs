//! Publishes the status of gangs, nodes, pools, queues and orders to the board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use muster_api::crd::{
    GangPhase, GangStatus, Members, Placement, PoolStatus, Stamp, gang_conditions,
};
use muster_api::words;
use muster_core::gang::{Phase, Seat, members_of};
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::Time;
use muster_core::verdict::Verdict;
use muster_plan::{Policy, plan};
use muster_server::Kind;
use serde_json::{Value, json};

use crate::daemon::gangs::gang::Gang;
use crate::daemon::state::Daemon;

impl Daemon {
    /// Refreshes the board, if it is out of date and a refresh is due.
    pub(crate) fn refresh_board(&mut self) {
        if !self.is_refresh_due() {
            return;
        }
        let began = Instant::now();
        self.stale = false;
        let told = plan(&self.world, self.now, &Policy { explain: true, ..self.policy.clone() });
        for (id, verdict) in &told.verdicts {
            if let Some(name) = self.names.get(id).cloned() {
                let start = told.reservations.iter().find(|(of, _)| of == id).map(|(_, at)| *at);
                self.publish_gang(&name, Some((verdict, start)));
            }
        }
        for watcher in &mut self.watchers {
            watcher.stands(self.now, &self.world, &told);
        }
        self.publish_nodes();
        self.publish_pools();
        self.publish_queues();
        self.publish_orders();
        let counts = self.metrics();
        if let Ok(mut metrics) = self.metrics.write() {
            *metrics = counts;
        }
        (self.refreshed, self.refresh_took) = (Some(Instant::now()), began.elapsed());
    }

    /// Publishes a gang; with its verdict if there is one.
    pub(crate) fn publish_gang(
        &mut self,
        name: &Arc<str>,
        verdict: Option<(&Verdict, Option<Time>)>,
    ) {
        let Some(gang) = self.gangs.get(name) else { return };
        let mut status = self.status_of(gang, verdict);
        status.restarts = i32::try_from(gang.record.retried).ok();
        let mut shown = serde_json::to_value(&status).unwrap_or_default();
        if let Some((_, Some(spread))) = gang.started {
            shown["startSpreadMicros"] = json!(spread);
        }
        let (retried, retries) = (gang.record.retried, gang.record.run_policy.retries);
        if retried > 0
            && gang.over.is_none()
            && let Some(message) = &status.message
        {
            shown["message"] = json!(format!("retry {retried} of {retries}: {message}"));
        }
        if let Some((run, earlier)) = gang.runs.split_last() {
            shown["run"] = json!(run);
            if !earlier.is_empty() {
                shown["earlierRuns"] = json!(earlier);
            }
        }
        if !gang.record.warnings.is_empty() {
            shown["warnings"] = json!(gang.record.warnings);
        }
        if let (Some(phase), Some(reason)) = (status.phase, &status.reason) {
            let message = shown["message"].as_str().unwrap_or_default();
            let Stamp(now) = self.clock.stamp(self.now);
            let conditions = gang_conditions(phase, reason, message, Some(&gang.status), now);
            shown["conditions"] = json!(conditions);
        }
        if shown == gang.status {
            return;
        }
        let (uid, over) = (gang.uid, gang.over.as_ref().map(|over| over.at));
        let object = verdict.is_none().then(|| self.object_of(gang, &shown));
        // Messages of waiting gangs are recomputed after a restart, so they are not stored.
        if shown["phase"] != gang.status["phase"] || over.is_some() {
            let written = self.store.set_gang_status(uid, &shown, over);
            self.check_store(written);
        }
        if let Some(gang) = self.gangs.get_mut(name) {
            gang.status = shown;
        }
        let at = self.clock.stamp(self.now);
        match object {
            Some(object) => self.outbox.set(at, Kind::Gang, name, object),
            None => self.outbox.set_gang(at, name),
        }
    }

    /// Publishes everything that is committed.
    pub(crate) fn flush_outbox(&mut self) {
        let mut outbox = self.outbox.take();
        outbox.publish(|name| {
            let gang = self.gangs.get(name)?;
            Some(self.object_of(gang, &gang.status))
        });
        self.outbox = outbox;
    }

    /// A gang as published: its spec as submitted, and its status.
    pub(crate) fn object_of(&self, gang: &Gang, status: &Value) -> Value {
        let (namespace, name) = gang.name().split_once('/').unwrap_or(("default", gang.name()));
        let record = &gang.record;
        let mut spec = match record.is_workload() {
            true => json!({"madeOf": record.object.kind()}),
            false => record.object.value().get_mut("spec").map_or_else(|| json!({}), Value::take),
        };
        spec["queue"] = json!(record.spec.queue);
        spec["user"] = json!(record.spec.user);
        spec["priority"] = json!(record.spec.priority);
        if record.is_workload() {
            let roles = record.spec.roles.iter();
            let roles =
                roles.map(|role| json!({"name": role.name, "min": role.min, "max": role.max}));
            spec["roles"] = roles.collect();
        } else if let Some(roles) = spec.get_mut("roles").and_then(Value::as_array_mut) {
            // Scaling changes these fields, not the submitted object.
            for (shown, role) in roles.iter_mut().zip(&record.spec.roles) {
                (shown["min"], shown["max"]) = (json!(role.min), json!(role.max));
            }
        }
        if record.held {
            spec["held"] = json!(true);
        }
        json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Gang",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": gang.uid.to_string(),
                "creationTimestamp": self.clock.stamp(gang.submitted),
            },
            "spec": spec,
            "status": status,
        })
    }

    fn status_of(&self, gang: &Gang, verdict: Option<(&Verdict, Option<Time>)>) -> GangStatus {
        let needs = gang.record.spec.min_members();
        let has = gang.run.as_ref().map_or(0, |run| members_of(&run.seats));
        let stamp = |at: Time| self.clock.stamp(at);
        let mut status =
            GangStatus { waiting_since: Some(stamp(gang.submitted)), ..Default::default() };
        let members = |ready: u32, total: u32| Members { ready: ready as i32, total: total as i32 };
        let mut set = |phase, reason: &str, message: String, count: Members| {
            status.phase = Some(phase);
            status.reason = Some(reason.to_owned());
            status.message = Some(message);
            status.members = Some(count);
            status.progress = Some(count.to_string());
        };
        if let Some(over) = &gang.over {
            let phase = if over.good { GangPhase::Succeeded } else { GangPhase::Failed };
            // All members have succeeded.
            let done = gang.members.max(1);
            let count = if over.good { members(done, done) } else { members(0, needs) };
            set(phase, over.reason, over.message.clone(), count);
            status.ended_at = Some(Stamp(Time(over.at)));
            status.running_since = gang.started.map(|(at, _)| stamp(at));
            return status;
        }
        let known = gang.id.and_then(|id| Some((id, self.world.gang(id)?)));
        let Some((id, known)) = known else {
            let (reason, message) = match gang.record.held {
                true => ("Held", "it is held: release it to let it start"),
                false => ("Later", "it is submitted later"),
            };
            set(GangPhase::Waiting, reason, message.to_owned(), members(0, needs));
            return status;
        };
        // Between two runs of the planner, the phase is enough to describe a gang with seats.
        let implied = match known.phase {
            _ if gang.record.cancelled && gang.run.is_some() => Some(Verdict::Stopping),
            Phase::Running { .. } => Some(Verdict::Running),
            Phase::Admitted { .. } => Some(Verdict::Admitted),
            Phase::Stopping => Some(Verdict::Stopping),
            Phase::Waiting | Phase::Assembling(_) => None,
        };
        match verdict.or(implied.as_ref().map(|verdict| (verdict, None))) {
            None => set(
                GangPhase::Waiting,
                "New",
                "it was not looked at yet".to_owned(),
                members(0, needs),
            ),
            Some((verdict, start)) => {
                let message = words::verdict(&self.world, id, verdict);
                match verdict {
                    Verdict::Admitted => {
                        set(GangPhase::Admitted, "Admitted", message, members(0, has));
                    }
                    Verdict::Running => {
                        set(GangPhase::Running, "Running", message, members(has, has));
                    }
                    Verdict::Stopping => {
                        set(GangPhase::Stopping, "Stopping", message, members(has, has));
                    }
                    Verdict::Provisioning { ready, total, order, .. } => {
                        set(
                            GangPhase::Provisioning,
                            "Provisioning",
                            message,
                            members(*ready, *total),
                        );
                        status.order = Some(format!("order-{}", order.0));
                    }
                    Verdict::Waiting { position, .. } => {
                        set(GangPhase::Waiting, "Waiting", message, members(0, needs));
                        status.position = i32::try_from(*position).ok();
                        status.expected_start = start.map(stamp);
                    }
                    Verdict::Impossible { .. } => {
                        set(GangPhase::Infeasible, "Infeasible", message, members(0, needs));
                    }
                }
            }
        }
        let delayed = gang.run.as_ref().filter(|run| !run.opened && !run.told_to_stop);
        if let Some(why) = delayed.and_then(|run| run.why_delayed.as_ref()) {
            let message = format!("its members cannot be started now and are tried again: {why}");
            set(GangPhase::Admitted, "Delayed", message, members(0, has));
        }
        status.waiting_since = Some(stamp(known.waits_since));
        status.running_since = gang.started.map(|(at, _)| stamp(at));
        let mut nodes: Vec<NodeIdx> = known.seats.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        status.nodes = (!nodes.is_empty()).then_some(nodes.len() as i32);
        status.placement = known.seats.iter().map(|seat| self.placement(gang, seat)).collect();
        status
    }

    fn placement(&self, gang: &Gang, seat: &Seat) -> Placement {
        let role = &gang.record.spec.roles[usize::from(seat.role)].name;
        let node = self.world.node_name(seat.node).map(ToString::to_string);
        Placement {
            role: role.to_string(),
            node: node.unwrap_or_default(),
            members: i32::from(seat.members),
            nodes: Vec::new(),
            pods: Vec::new(),
            devices: seat.devices.iter().map(|device| device as i32).collect(),
        }
    }

    fn publish_nodes(&mut self) {
        let at = self.clock.stamp(self.now);
        let mut here: BTreeSet<Arc<str>> = BTreeSet::new();
        for (index, node) in self.world.nodes() {
            here.insert(node.name.clone());
            let gangs = self.world.gangs_on(index).iter();
            let gangs: Vec<&Arc<str>> =
                gangs.filter_map(|(gang, _)| self.names.get(gang)).collect();
            let shape = self.world.class(node.class);
            let claim = node.claim.and_then(|claim| self.world.claims().get(&claim));
            let pool = claim.map(|claim| &self.world.pools()[claim.offering.pool].spec.name);
            let price =
                claim.map(|claim| self.world.offering(claim.offering).spec.price.as_units());
            let object = json!({
                "apiVersion": "muster.sh/v1alpha1",
                "kind": "Node",
                "metadata": {"name": node.name},
                "spec": {
                    "pool": pool,
                    "hourlyPrice": price,
                    "gpu": shape.gpu.as_ref().map(|gpu| &gpu.model),
                },
                "status": {"ready": node.usable, "gpus": shape.gpus, "gangs": gangs},
            });
            self.outbox.set(at, Kind::Node, &node.name, object);
        }
        self.outbox.keep_only(at, Kind::Node, &here);
    }

    fn publish_pools(&mut self) {
        let at = self.clock.stamp(self.now);
        for (index, pool) in self.world.pools().iter() {
            let name = &pool.spec.name;
            let Some(written) = self.objects.get(&(Kind::Pool, name.clone())) else { continue };
            let target = self.targets.get(&index).copied();
            let status = PoolStatus::of(&self.world, index, target);
            self.outbox.set(
                at,
                Kind::Pool,
                name,
                with_status("Pool", name, written, &json!(status)),
            );
        }
    }

    fn publish_queues(&mut self) {
        let at = self.clock.stamp(self.now);
        let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for gang in self.gangs.values().filter(|gang| gang.over.is_none()) {
            let (waiting, running) = counts.entry(&gang.record.spec.queue).or_default();
            match &gang.run {
                Some(_) => *running += 1,
                None => *waiting += 1,
            }
        }
        let nothing = json!({"spec": {}});
        for queue in self.world.queues().values() {
            let name = &queue.spec.name;
            let written = match self.objects.get(&(Kind::Queue, name.clone())) {
                Some(written) => written,
                None if &**name == "default" => &nothing,
                None => continue,
            };
            let (waiting, running) = counts.get(&**name).copied().unwrap_or_default();
            let gpus = queue.usage.gpu_milli as f64 / 1_000.0;
            let status = json!({"waiting": waiting, "running": running, "gpus": gpus});
            self.outbox.set(at, Kind::Queue, name, with_status("Queue", name, written, &status));
        }
    }

    fn publish_orders(&mut self) {
        let at = self.clock.stamp(self.now);
        let mut here: BTreeSet<Arc<str>> = BTreeSet::new();
        for (id, order) in self.world.orders() {
            let name: Arc<str> = format!("order-{}", id.0).into();
            let gang = self.names.get(&order.spec.gang).and_then(|name| name.split_once('/'));
            let gang = gang.map(|(namespace, name)| json!({"namespace": namespace, "name": name}));
            let claims = order.spec.claims.iter();
            let ready = claims.filter(|(claim, _)| {
                self.world.claims().get(claim).is_some_and(muster_core::order::Claim::is_ready)
            });
            let (ready, total) = (ready.count(), order.spec.claims.len());
            let object = json!({
                "apiVersion": "muster.sh/v1alpha1",
                "kind": "Order",
                "metadata": {"name": name},
                "spec": {"gang": gang, "nodes": total, "deadline": self.clock.stamp(order.spec.deadline)},
                "status": {"phase": "Assembling", "ready": ready},
            });
            self.outbox.set(at, Kind::Order, &name, object);
            here.insert(name);
        }
        self.outbox.keep_only(at, Kind::Order, &here);
    }

    pub(crate) fn id_of(&self, name: &str) -> Option<GangId> {
        self.gangs.get(name)?.id
    }
}

fn with_status(kind: &str, name: &str, written: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": written.get("spec").cloned().unwrap_or_else(|| json!({})),
        "status": status,
    })
}
