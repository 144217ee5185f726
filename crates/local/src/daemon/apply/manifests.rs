//! Applies manifests: all objects of a request, or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_api::{PoolManifest, Provider};
use muster_core::node::NodeSpec;
use muster_core::pool::PoolSpec;
use muster_core::queue::{QueueSpec, parents_first};
use muster_core::time::Span;
use muster_core::topology::Levels;
use muster_core::{Event, Fact};
use muster_server::{
    ANSWER_RETENTION_MS, Applied, AppliedEffect, Caller, Kind, Refused, RequestKey, Subject, Verb,
};
use muster_sim::cloud::CloudModel;
use serde_json::{Value, json};

use crate::daemon::apply::dry_run::user_of;
use crate::daemon::gangs::gang::Gang;
use crate::daemon::state::Daemon;
use crate::daemon::timers::Timer;
use crate::intake::manifests::Intake;
use crate::intake::record::Record;
use crate::nodes::simulated_cloud::cloud_of;
use crate::store::answers::AnswerRow;
use crate::system::clock::wall_now;

impl Daemon {
    /// Applies manifests, and stores the result under the request's idempotency key in the same transaction: a repeated
    /// request is not executed again.
    pub(crate) fn apply_once(
        &mut self,
        by: &Caller,
        intake: Intake,
        dry_run: bool,
    ) -> Result<Vec<Applied>, Refused> {
        let Some(RequestKey { key, request }) = by.key.as_ref().filter(|_| !dry_run) else {
            return self.apply(by, intake, dry_run);
        };
        let (key, request) = (format!("applied {key}"), request.to_vec());
        let known = self.store.answer(&by.name, &key);
        if let Some(known) = self
            .check_store(known)
            .flatten()
            .filter(|known| known.at >= wall_now() - ANSWER_RETENTION_MS)
        {
            if known.request != request {
                let why = "the key was used for another request".to_owned();
                return Err(Refused::KeyReused(why));
            }
            if let Ok(applied) = serde_json::from_str(&known.answer) {
                return Ok(applied);
            }
        }
        let applied = self.apply(by, intake, dry_run)?;
        let at = wall_now();
        let answer = serde_json::to_string(&applied).unwrap_or_default();
        let row = AnswerRow { request, code: 200, answer, at };
        let written = self.store.set_answer(&by.name, &key, &row, at - ANSWER_RETENTION_MS);
        self.check_store(written);
        Ok(applied)
    }

    /// Applies manifests. Refusals happen before the first object is applied.
    pub(crate) fn apply(
        &mut self,
        by: &Caller,
        intake: Intake,
        dry_run: bool,
    ) -> Result<Vec<Applied>, Refused> {
        if let Some(why) = self.disk.trouble.why().filter(|_| !dry_run && !intake.is_empty()) {
            return Err(Refused::Unavailable(why));
        }
        self.check(by, &intake)?;
        if !self.is_simple(&intake) {
            self.dry_run(by, &intake)?;
        }
        let Intake { levels, queues, pools, nodes, gangs } = intake;
        let mut applied = Vec::new();
        if !dry_run {
            self.set_levels(levels);
        }
        for (queue, object) in parents_first(queues, |(queue, _)| queue) {
            let effect = self.effect(Kind::Queue, &queue.name, &object);
            applied.push(done(Kind::Queue, &queue.name, effect, Vec::new()));
            if !dry_run && effect != AppliedEffect::Unchanged {
                self.set_queue(queue, object)?;
            }
        }
        for (pool, object) in pools {
            let name = pool.spec.name.clone();
            let effect = self.effect(Kind::Pool, &name, &object);
            applied.push(done(Kind::Pool, &name, effect, played(&pool)));
            if !dry_run && effect != AppliedEffect::Unchanged {
                self.set_pool(pool, object)?;
            }
        }
        for (node, object) in nodes {
            let effect = self.effect(Kind::Node, &node.name, &object);
            applied.push(done(Kind::Node, &node.name, effect, Vec::new()));
            if !dry_run && effect != AppliedEffect::Unchanged {
                self.set_node(node, object);
            }
        }
        for mut gang in gangs {
            gang.spec.user = user_of(by, &gang);
            gang.run_as = by.run_as.clone();
            let name = gang.spec.name.clone();
            let effect = match self.gangs.get(&name).filter(|known| known.over.is_none()) {
                Some(known) if known.record.object == gang.object => AppliedEffect::Unchanged,
                Some(_) => AppliedEffect::Changed,
                None if self.gangs.contains_key(&name) => AppliedEffect::Replaced,
                None => AppliedEffect::Created,
            };
            applied.push(done(Kind::Gang, &name, effect, gang.warnings.clone()));
            match effect {
                _ if dry_run => {}
                AppliedEffect::Unchanged => {}
                AppliedEffect::Changed => self.change_record(&name, gang)?,
                AppliedEffect::Created | AppliedEffect::Replaced => self.add_gang(gang),
            }
        }
        self.mark_stale();
        Ok(applied)
    }

    /// Checks the caller's rights and the validity of all objects.
    fn check(&self, by: &Caller, intake: &Intake) -> Result<(), Refused> {
        for (there, subject) in [
            (!intake.queues.is_empty(), Subject::Queue),
            (!intake.pools.is_empty(), Subject::Pool),
            (!intake.nodes.is_empty(), Subject::Node),
            (intake.levels != Levels::default(), Subject::Topology),
        ] {
            if there {
                by.check(Verb::Change, subject, None)?;
            }
        }
        self.check_bytes(by, intake)?;
        let new = |name: &str| intake.queues.iter().any(|(queue, _)| *queue.name == *name);
        for (queue, _) in &intake.queues {
            if let Some(parent) =
                queue.parent.as_ref().filter(|parent| !self.has_queue(parent) && !new(parent))
            {
                let why = format!("queue {}: its parent {parent} does not exist", queue.name);
                return Err(Refused::Invalid(why));
            }
        }
        for (pool, _) in &intake.pools {
            if matches!(pool.provider, Provider::Local) {
                let why = "provider `local` buys nothing: this machine is a node by itself, unless --no-local, and \
                           other places on it are declared with `kind: Node`";
                return Err(Refused::Invalid(format!("pool {}: {why}", pool.spec.name)));
            }
        }
        for gang in &intake.gangs {
            let (name, queue) = (&gang.spec.name, &gang.spec.queue);
            by.check(Verb::Change, Subject::Gang, Some(queue))?;
            if !self.has_queue(queue) && !new(queue) {
                let why = format!("gang {name}: queue {queue} does not exist");
                return Err(Refused::Invalid(why));
            }
            check_size(&gang.spec)?;
            if let Some(known) = self.gangs.get(name) {
                // Finished gangs too: their records and output belong to their queue.
                let theirs = &known.record.spec.queue;
                if by.check(Verb::Change, Subject::Gang, Some(theirs)).is_err() {
                    let why =
                        format!("gang {name} is in queue {theirs}, which {} may not use", by.name);
                    return Err(Refused::Forbidden(why));
                }
                if known.over.is_none() {
                    self.check_change(known, gang)?;
                }
            }
            // Anything that the World would refuse is refused here.
            let mut scratch = gang.spec.clone();
            scratch.queue = if self.has_queue(queue) { queue.clone() } else { "default".into() };
            scratch.name = format!("{name} (checked)").into();
            if let Err(refusal) = self.world.check_submission(&scratch) {
                return Err(Refused::Invalid(format!("gang {name}: {refusal}")));
            }
        }
        Ok(())
    }

    /// Checks the memory limit of a user's gangs, including those that are kept already, finished or not.
    fn check_bytes(&self, by: &Caller, intake: &Intake) -> Result<(), Refused> {
        if by.is_admin() {
            return Ok(());
        }
        let new: usize = intake.gangs.iter().map(|gang| gang.bytes).sum();
        let mine = self.gangs.values().filter(|gang| gang.record.spec.user == by.name);
        let kept: usize = mine.map(|gang| gang.record.bytes).sum();
        if new + kept <= USER_BYTES {
            return Ok(());
        }
        Err(Refused::Conflict(format!(
            "the gangs of {} would take {} KiB, and {} KiB are kept for one user: delete some that are over",
            by.name,
            (new + kept) >> 10,
            USER_BYTES >> 10
        )))
    }

    /// Whether it is only new gangs, each of them checked on its own: then no copy of the World is needed.
    fn is_simple(&self, intake: &Intake) -> bool {
        let Intake { levels, queues, pools, nodes, gangs } = intake;
        let others = !queues.is_empty() || !pools.is_empty() || !nodes.is_empty();
        let is_known = |name| self.gangs.get(name).is_some_and(|known| known.over.is_none());
        let mut names = BTreeSet::new();
        let are_new =
            gangs.iter().all(|gang| names.insert(&gang.spec.name) && !is_known(&gang.spec.name));
        let levels_stay = *levels == self.levels || *levels == Levels::default();
        !gangs.is_empty() && are_new && !others && levels_stay
    }

    pub(crate) fn has_queue(&self, name: &str) -> bool {
        name == "default" || self.objects.contains_key(&(Kind::Queue, name.into()))
    }

    pub(crate) fn check_levels(&self, levels: &Levels) -> Result<(), Refused> {
        let new = *levels != self.levels && *levels != Levels::default();
        let used = self.world.nodes().next().is_some() || self.world.gangs().next().is_some();
        if new && used {
            let why = "the topology can be set only before there are nodes and gangs";
            return Err(Refused::Conflict(why.to_owned()));
        }
        Ok(())
    }

    fn set_levels(&mut self, levels: Levels) {
        if levels == self.levels || levels == Levels::default() {
            return;
        }
        let written = self.store.set_fact("levels", &json!(levels).to_string());
        self.check_store(written);
        self.levels = levels;
        // Replaying the log rebuilds the same World with the new levels: nothing in it depends on them yet.
        let read = self.replay_log();
        if let Some(world) = self.check_store(read) {
            self.world = world;
            self.snapshot = None;
        }
    }

    fn effect(&self, kind: Kind, name: &Arc<str>, object: &Value) -> AppliedEffect {
        match self.objects.get(&(kind, name.clone())) {
            Some(known) if known == object => AppliedEffect::Unchanged,
            Some(_) => AppliedEffect::Changed,
            None => AppliedEffect::Created,
        }
    }

    fn set_object(&mut self, kind: Kind, name: &Arc<str>, object: Value) {
        let written = self.store.set_object(&format!("{kind:?}"), name, &object);
        self.check_store(written);
        self.objects.insert((kind, name.clone()), object);
    }

    fn set_queue(&mut self, queue: QueueSpec, object: Value) -> Result<(), Refused> {
        let name = queue.name.clone();
        let told = self.apply_event(&Event::QueueSet(queue));
        told.map_err(|refusal| Refused::Invalid(format!("queue {name}: {refusal}")))?;
        self.set_object(Kind::Queue, &name, object);
        Ok(())
    }

    fn set_pool(&mut self, pool: PoolManifest, object: Value) -> Result<(), Refused> {
        let name = pool.spec.name.clone();
        let (spec, model) = cloud_of(pool);
        let told = self.apply_event(&Event::PoolSet(spec.clone()));
        told.map_err(|refusal| Refused::Invalid(format!("pool {name}: {refusal}")))?;
        self.set_cloud(spec, model);
        self.set_object(Kind::Pool, &name, object);
        self.expect_forecast();
        Ok(())
    }

    /// Sets the simulated cloud behind a pool.
    pub(crate) fn set_cloud(&mut self, spec: PoolSpec, model: CloudModel) {
        match self.clouds.iter_mut().find(|(known, _)| known.name == spec.name) {
            Some(known) => *known = (spec, model),
            None => self.clouds.push((spec, model)),
        }
        self.cloud.set_pools(self.clouds.clone());
    }

    fn set_node(&mut self, node: NodeSpec, object: Value) {
        let name = node.name.clone();
        self.see_node(node);
        self.set_object(Kind::Node, &name, object);
    }

    fn add_gang(&mut self, record: Record) {
        let name = record.spec.name.clone();
        let value = serde_json::to_value(&record).unwrap_or_default();
        let submitted = self.clock.stamp(self.now).0.0;
        let added = self.store.add_gang(&name, None, &value, submitted);
        let Some(uid) = self.check_store(added) else { return };
        let after = record.submit_after;
        // The output of the previous gang stays readable by its run numbers.
        let runs = self.gangs.get(&name).map(|known| known.runs.clone()).unwrap_or_default();
        self.gangs.insert(name.clone(), Gang { runs, ..Gang::new(uid, record, self.now) });
        if after > Span::ZERO {
            self.timers.add(self.now + after, Timer::Submit(name.clone(), uid));
            self.publish_gang(&name, None);
        } else {
            self.submit(&name);
        }
    }

    /// Submits a gang to its queue.
    pub(crate) fn submit(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get(name) else { return };
        if gang.id.is_some() || gang.over.is_some() || gang.record.held {
            return;
        }
        let (uid, spec) = (gang.uid, gang.record.spec.clone());
        if let Err(refusal) = self.apply_event(&Event::GangSubmitted(spec.clone())) {
            let name = name.clone();
            self.fact(&Fact::GangRefused { name: name.clone(), why: refusal.to_string() });
            return self.finish(&name, false, "Refused", refusal.to_string());
        }
        let Some(id) = self.world.gang_named(name) else { return };
        let written = self.store.set_gang_world(uid, Some(id.0));
        self.check_store(written);
        self.names.insert(id, name.clone());
        if let Some(gang) = self.gangs.get_mut(name) {
            gang.id = Some(id);
        }
        self.counts.submitted += 1;
        self.fact(&Fact::GangSubmitted { gang: id, spec: Arc::new(spec) });
        self.mark_stale();
        self.publish_gang(name, None);
    }
}

/// Memory of one user's gangs in bytes, at most. The smallest gang counts about 4.5 KB.
const USER_BYTES: usize = 20 << 20;

/// Members of a gang on this machine, at most: all are started behind one gate, and one write with a byte for each
/// opens it.
const MEMBERS_MAX: u32 = 1_024;

/// Checks that this machine can run this many processes of a gang.
pub(crate) fn check_size(spec: &muster_core::gang::GangSpec) -> Result<(), Refused> {
    let mut sum = 0u32;
    for (at, role) in spec.roles.iter().enumerate() {
        sum = sum.saturating_add(role.max);
        if sum > MEMBERS_MAX {
            let (name, max) = (&spec.name, role.max);
            let field = if role.min == role.max { "min" } else { "max" };
            return Err(Refused::Invalid(format!(
                "gang {name}: spec.roles[{at}].{field}: {max} members are too many: a gang has {MEMBERS_MAX} on this \
                 machine at most"
            )));
        }
    }
    Ok(())
}

fn done(kind: Kind, name: &Arc<str>, effect: AppliedEffect, warnings: Vec<String>) -> Applied {
    Applied { kind, name: name.clone(), effect, warnings }
}

/// A warning for pools whose provider is not available here.
fn played(pool: &PoolManifest) -> Vec<String> {
    match pool.provider {
        Provider::Simulated(_) => Vec::new(),
        Provider::Local | Provider::Karpenter { .. } | Provider::ProvisioningRequest(_) => {
            vec!["its provider is not here: its nodes are simulated".to_owned()]
        }
    }
}
