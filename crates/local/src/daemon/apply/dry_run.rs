//! Applies manifests to a copy of the World, before any of them is applied for real.

use muster_core::queue::parents_first;
use muster_core::topology::Levels;
use muster_core::{Event, World};
use muster_server::{Caller, Kind, Refused};

use crate::daemon::queries::query_threads::NewObject;
use crate::daemon::state::Daemon;
use crate::intake::manifests::Intake;
use crate::intake::record::Record;
use crate::nodes::simulated_cloud::cloud_of;

impl Daemon {
    /// The World with everything that is new in these manifests, or the reason why it is refused. Changes nothing.
    pub(crate) fn dry_run(&self, by: &Caller, intake: &Intake) -> Result<World, Refused> {
        let mut world = self.dry_run_supply(intake)?;
        for gang in &intake.gangs {
            let mut spec = gang.spec.clone();
            spec.user = user_of(by, gang);
            let known = self.gangs.get(&spec.name).filter(|known| known.over.is_none());
            let name = spec.name.clone();
            let told = match known {
                Some(known) if known.record.object == gang.object => continue,
                Some(known) if known.id.is_some() => {
                    world.apply(self.now, &Event::GangChanged(spec))
                }
                _ => world.apply(self.now, &Event::GangSubmitted(spec)),
            };
            told.map_err(|refusal| match known {
                Some(_) => Refused::Conflict(format!("gang {name}: {refusal}")),
                None => Refused::Invalid(format!("gang {name}: {refusal}")),
            })?;
        }
        Ok(world)
    }

    /// The same for queues, pools and nodes only.
    pub(crate) fn dry_run_supply(&self, intake: &Intake) -> Result<World, Refused> {
        self.check_levels(&intake.levels)?;
        let mut world = match intake.levels == self.levels || intake.levels == Levels::default() {
            true => self.world.clone(),
            false => self.replay_log_with(intake.levels.clone()).map_err(|error| {
                Refused::Unavailable(format!("the log cannot be read again: {error}"))
            })?,
        };
        for (kind, name, event) in self.new_objects(intake) {
            let told = world.apply(self.now, &event);
            told.map_err(|refusal| Refused::Invalid(format!("{kind:?} {name}: {refusal}")))?;
        }
        Ok(world)
    }

    /// Whether manifests bring a topology other than the present one.
    pub(crate) fn has_other_levels(&self, intake: &Intake) -> bool {
        intake.levels != self.levels && intake.levels != Levels::default()
    }

    /// The queues, pools and nodes of manifests that are new or changed.
    pub(crate) fn new_objects(&self, intake: &Intake) -> Vec<NewObject> {
        let mut news = Vec::new();
        for (queue, object) in parents_first(intake.queues.clone(), |(queue, _)| queue) {
            if self.is_new(Kind::Queue, &queue.name, &object) {
                news.push((Kind::Queue, queue.name.clone(), Event::QueueSet(queue)));
            }
        }
        for (pool, object) in &intake.pools {
            if self.is_new(Kind::Pool, &pool.spec.name, object) {
                let (spec, _) = cloud_of(pool.clone());
                news.push((Kind::Pool, pool.spec.name.clone(), Event::PoolSet(spec)));
            }
        }
        for (node, object) in &intake.nodes {
            if self.is_new(Kind::Node, &node.name, object) {
                news.push((Kind::Node, node.name.clone(), Event::NodeSeen(node.clone())));
            }
        }
        news
    }

    fn is_new(&self, kind: Kind, name: &std::sync::Arc<str>, object: &serde_json::Value) -> bool {
        self.objects.get(&(kind, name.clone())) != Some(object)
    }
}

/// The user of a gang: the caller; an admin may name another user.
pub(crate) fn user_of(by: &Caller, gang: &Record) -> std::sync::Arc<str> {
    match by.is_admin() && !gang.spec.user.is_empty() {
        true => gang.spec.user.clone(),
        false => by.name.clone(),
    }
}
