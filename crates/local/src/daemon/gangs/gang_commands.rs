//! Users' commands: cancel, hold, release, scale, change and remove gangs; remove other objects.

use std::sync::Arc;

use muster_core::Event;
use muster_core::Fact;
use muster_core::gang::Phase;
use muster_core::pool::PoolLimits;
use muster_server::{Caller, Change, Kind, Refused, Subject, Verb};
use serde_json::Value;

use crate::daemon::effects::Effect;
use crate::daemon::gangs::gang::Gang;
use crate::daemon::state::Daemon;
use crate::intake::record::Record;

impl Daemon {
    pub(crate) fn change_gang(
        &mut self,
        by: &Caller,
        name: &Arc<str>,
        change: Change,
    ) -> Result<Arc<Value>, Refused> {
        let gang = self.known(name)?;
        let queue = &gang.record.spec.queue;
        by.check(Verb::Change, Subject::Gang, Some(queue))?;
        if let Some(over) = &gang.over {
            return Err(Refused::Conflict(format!("{name} is over: {}", over.message)));
        }
        if gang.record.cancelled && !matches!(change, Change::Cancel) {
            return Err(already_cancelled(name));
        }
        match change {
            Change::Cancel => self.cancel_gang(name),
            Change::Hold => self.hold_gang(name)?,
            Change::Release => self.release_gang(name)?,
            Change::Scale { role, min, max } => self.scale(name, role.as_deref(), min, max)?,
        }
        self.mark_stale();
        self.publish_gang(name, None);
        self.outbox
            .latest(Kind::Gang, name)
            .ok_or_else(|| Refused::NotFound(format!("gang {name} does not exist")))
    }

    pub(crate) fn known(&self, name: &str) -> Result<&Gang, Refused> {
        let missing = || Refused::NotFound(format!("gang {name} does not exist"));
        self.gangs.get(name).ok_or_else(missing)
    }

    /// Cancels a gang. The planner stops a running gang, like any that must stop.
    fn cancel_gang(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        if std::mem::replace(&mut gang.record.cancelled, true) {
            return self.write_record(name);
        }
        let id = gang.id;
        self.write_record(name);
        if let Some(id) = id {
            self.apply_or_log(&Event::GangCancelled(id));
            self.fact(&Fact::GangCancelled { gang: id });
        }
        self.finish_cancelled(name);
    }

    /// A cancelled gang is finished when the World no longer has it: at once if it waits, when its order is rolled back
    /// if its nodes are on their way, when its members have stopped if it runs.
    pub(crate) fn finish_cancelled(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get(name) else { return };
        let there = gang.id.is_some_and(|id| self.world.gang(id).is_some());
        if there || !gang.record.cancelled || gang.over.is_some() {
            return;
        }
        if let Some(id) = gang.id {
            self.names.remove(&id);
        }
        self.finish(name, false, "Cancelled", "it was cancelled".to_owned());
    }

    /// Holds a gang until it is released. A gang that has started, or whose nodes are on their way, goes on.
    fn hold_gang(&mut self, name: &Arc<str>) -> Result<(), Refused> {
        let gang = self.known(name)?;
        let id = gang.id;
        let phase = id.and_then(|id| self.world.gang(id)).map(|gang| gang.phase.clone());
        if phase.as_ref().is_some_and(|phase| *phase != Phase::Waiting) {
            let why = format!("{name} does not wait any more: cancel it, or let it run");
            return Err(Refused::Conflict(why));
        }
        if let Some(id) = id {
            self.apply_or_log(&Event::GangCancelled(id));
            self.names.remove(&id);
        }
        self.set_held(name, true);
        Ok(())
    }

    fn release_gang(&mut self, name: &Arc<str>) -> Result<(), Refused> {
        if !self.known(name)?.record.held {
            return Err(Refused::Conflict(format!("{name} is not held")));
        }
        self.set_held(name, false);
        self.submit(name);
        Ok(())
    }

    fn set_held(&mut self, name: &Arc<str>, held: bool) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        gang.record.held = held;
        gang.id = gang.id.filter(|_| !held);
        self.write_record(name);
    }

    pub(crate) fn write_record(&mut self, name: &Arc<str>) {
        let gang = &self.gangs[name];
        let record = serde_json::to_value(&gang.record).unwrap_or_default();
        let written = self.store.set_gang_record(gang.uid, &record);
        self.check_store(written);
    }

    /// Checks whether an existing gang may be changed to this.
    pub(crate) fn check_change(&self, known: &Gang, new: &Record) -> Result<(), Refused> {
        if known.record.cancelled {
            return Err(already_cancelled(known.name()));
        }
        let phase = known.id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
        let waits = phase.is_none_or(|phase| *phase == Phase::Waiting);
        if waits {
            return Ok(());
        }
        let name = known.name();
        let queue = new.spec.queue == known.record.spec.queue;
        let why = format!("{name} has started or is about to: cancel it first, or scale it");
        if queue && new.tasks == known.record.tasks { Ok(()) } else { Err(Refused::Conflict(why)) }
    }

    /// Changes an existing gang, which keeps its place in the queue.
    pub(crate) fn change_record(&mut self, name: &Arc<str>, new: Record) -> Result<(), Refused> {
        if self.known(name)?.id.is_some() {
            let told = self.apply_event(&Event::GangChanged(new.spec.clone()));
            told.map_err(|refusal| Refused::Conflict(format!("{name}: {refusal}")))?;
        }
        if let Some(gang) = self.gangs.get_mut(name) {
            let (held, retried) = (gang.record.held, gang.record.retried);
            gang.record = Record { held, retried, ..new };
        }
        self.write_record(name);
        Ok(())
    }

    pub(crate) fn remove(&mut self, by: &Caller, kind: Kind, name: &str) -> Result<(), Refused> {
        let name: Arc<str> = name.into();
        match kind {
            Kind::Gang => self.remove_gang(by, &name),
            Kind::Order => Err(Refused::Unsupported("orders are Muster's own".to_owned())),
            Kind::Queue | Kind::Pool | Kind::Node => {
                by.check(Verb::Remove, kind.into(), None)?;
                if !self.objects.contains_key(&(kind, name.clone())) {
                    return Err(Refused::NotFound(format!("there is no {kind:?} {name}")));
                }
                self.remove_other(kind, &name)
            }
        }
    }

    fn remove_gang(&mut self, by: &Caller, name: &Arc<str>) -> Result<(), Refused> {
        let gang = self.known(name)?;
        let queue = &gang.record.spec.queue;
        by.check(Verb::Remove, Subject::Gang, Some(queue))?;
        if gang.over.is_some() {
            self.forget(name);
        } else {
            if let Some(gang) = self.gangs.get_mut(name) {
                gang.record.forget = true;
            }
            self.cancel_gang(name);
        }
        Ok(())
    }

    /// Deletes a finished gang and all earlier gangs of its name; their usage is kept.
    pub(crate) fn forget(&mut self, name: &Arc<str>) {
        if self.gangs.remove(name).is_none() {
            return;
        }
        let runs = self.store.forget_gangs(name);
        for run in self.check_store(runs).unwrap_or_default() {
            self.effects.push(Effect::RemoveDirectory(self.run_directory(run)));
        }
        self.outbox.remove(self.clock.stamp(self.now), Kind::Gang, name);
    }

    fn remove_other(&mut self, kind: Kind, name: &Arc<str>) -> Result<(), Refused> {
        match kind {
            Kind::Queue => {
                let used = self
                    .gangs
                    .values()
                    .any(|gang| gang.over.is_none() && gang.record.spec.queue == *name);
                let mut queues = self.world.queues().values();
                let parent = queues.any(|queue| {
                    queue.spec.parent.as_ref() == Some(name) && self.has_queue(&queue.spec.name)
                });
                if used || parent {
                    let why = format!("queue {name} has gangs or other queues in it");
                    return Err(Refused::Conflict(why));
                }
            }
            Kind::Pool => {
                // The pool buys nothing from now on, and its nodes are released when idle.
                if let Some((mut spec, model)) =
                    self.clouds.iter().find(|(spec, _)| spec.name == *name).cloned()
                {
                    spec.limits = PoolLimits { nodes: Some(0), ..PoolLimits::default() };
                    spec.ahead = Default::default();
                    self.apply_or_log(&Event::PoolSet(spec.clone()));
                    self.set_cloud(spec, model);
                }
            }
            Kind::Node => drop(self.lose_node(name)),
            Kind::Gang | Kind::Order => {}
        }
        let written = self.store.remove_object(&format!("{kind:?}"), name);
        self.check_store(written);
        self.objects.remove(&(kind, name.clone()));
        self.outbox.remove(self.clock.stamp(self.now), kind, name);
        self.mark_stale();
        Ok(())
    }
}

/// The refusal for commands to a gang that is being cancelled.
fn already_cancelled(name: &str) -> Refused {
    Refused::Conflict(format!("{name} was cancelled and is being stopped: wait until it is over"))
}
