//! The queries `why` and `what-if`, and the metrics of the control plane.

use std::sync::Arc;

use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::Action;
use muster_core::time::Time;
use muster_core::verdict::Verdict;
use muster_core::{Event, World};
use muster_plan::{Policy, plan, why};
use muster_server::{Caller, Refused, Subject, Verb, WhatIf, Why};

use crate::daemon::apply::dry_run::user_of;
use crate::daemon::apply::manifests::check_size;
use crate::daemon::inputs::Reply;
use crate::daemon::queries::query_threads::{NewObject, QueryDeadline};
use crate::daemon::state::Daemon;
use crate::intake::manifests::Intake;
use crate::intake::record::Record;
use crate::system::clock::Clock;
use crate::why::lines;

/// Gangs in one `what-if`, at most: each is planned in a copy of the World.
const ASKED_MAX: usize = 64;
/// Members of all of them, at most.
const MEMBERS_MAX: u32 = 8_192;

/// What a query is answered from, while the control plane goes on.
struct Snapshot {
    world: Arc<World>,
    now: Time,
    policy: Policy,
    clock: Clock,
}

impl Daemon {
    /// A copy of the World for queries, shared by all of them until the World changes.
    fn snapshot(&mut self) -> Snapshot {
        let world = self.snapshot.get_or_insert_with(|| Arc::new(self.world.clone())).clone();
        Snapshot { world, now: self.now, policy: self.policy.clone(), clock: self.clock }
    }

    /// Queues a `why` query.
    pub(crate) fn ask_why(&mut self, name: &str, reply: Reply<Why>) {
        let known = match self.why_at_once(name) {
            Ok(Some(known)) => Ok(known),
            Err(refused) => Err(refused),
            Ok(None) => {
                let (id, name) = (self.id_of(name), name.to_owned());
                let on = self.snapshot();
                return self.query_threads.ask("", reply, move |_| Ok(on.why(&name, id)));
            }
        };
        let _ = reply.send(known);
    }

    /// Answers `why` at once, if that needs no planning.
    fn why_at_once(&self, name: &str) -> Result<Option<Why>, Refused> {
        let gang = self.known(name)?;
        let plain = |line: String| Why {
            name: name.to_owned(),
            lines: vec![format!("{name}: {line}")],
            expected_start: None,
        };
        if let Some(over) = &gang.over {
            return Ok(Some(plain(format!("is over: {}", over.message))));
        }
        if self.id_of(name).is_some() {
            return Ok(None);
        }
        Ok(Some(plain(match gang.record.held {
            true => "is held: release it to let it start".to_owned(),
            false => "is submitted later".to_owned(),
        })))
    }

    /// Queues a `what-if` query.
    pub(crate) fn ask_what_if(&mut self, by: &Caller, intake: Intake, reply: Reply<Vec<WhatIf>>) {
        let supply = match self.supply_asked_about(by, &intake) {
            Ok(supply) => supply,
            Err(refused) => return drop(reply.send(Err(refused))),
        };
        let on = self.snapshot();
        let mut gangs = intake.gangs;
        for gang in &mut gangs {
            gang.spec.user = user_of(by, gang);
        }
        self.query_threads
            .ask(&by.name, reply, move |deadline| on.what_if(deadline, supply, gangs));
    }

    /// The objects of a query that are not in the World yet, if the query is within its limits.
    fn supply_asked_about(&self, by: &Caller, intake: &Intake) -> Result<Vec<NewObject>, Refused> {
        if intake.gangs.len() > ASKED_MAX {
            let asked = intake.gangs.len();
            let why =
                format!("{asked} gangs are too many to ask about at once: {ASKED_MAX} at most");
            return Err(Refused::Invalid(why));
        }
        let mut members = 0u32;
        for gang in &intake.gangs {
            check_size(&gang.spec)?;
            let most = gang.spec.roles.iter().map(|role| role.max);
            members = most.fold(members, u32::saturating_add);
        }
        if members > MEMBERS_MAX {
            let why = format!(
                "gangs of {members} members are too many to ask about at once: {MEMBERS_MAX} at most"
            );
            return Err(Refused::Invalid(why));
        }
        if self.has_other_levels(intake) {
            by.check(Verb::Change, Subject::Topology, None)?;
            let why = "what-if asks with the topology there is: apply another one first";
            return Err(Refused::Invalid(why.to_owned()));
        }
        Ok(self.new_objects(intake))
    }
}

impl Snapshot {
    fn why(&self, name: &str, id: Option<GangId>) -> Why {
        let known = id.and_then(|id| Some((id, why(&self.world, self.now, &self.policy, id)?)));
        let Some((id, known)) = known else {
            let lines = vec![format!("{name}: nothing was decided yet")];
            return Why { name: name.to_owned(), lines, expected_start: None };
        };
        let expected_start = known.start.map(|at| self.clock.stamp(at));
        Why { name: name.to_owned(), lines: lines(&self.world, id, &known), expected_start }
    }

    /// Submits each gang to a copy of the World, and reports what the planner decides there.
    fn what_if(
        &self,
        deadline: &QueryDeadline<'_>,
        supply: Vec<NewObject>,
        gangs: Vec<Record>,
    ) -> Result<Vec<WhatIf>, Refused> {
        let mut answers = Vec::new();
        // Queues, pools and nodes of the manifests are added for all gangs; each gang is submitted alone.
        let mut supplied = World::clone(&self.world);
        for (kind, name, event) in supply {
            let told = supplied.apply(self.now, &event);
            told.map_err(|refusal| Refused::Invalid(format!("{kind:?} {name}: {refusal}")))?;
        }
        for mut gang in gangs {
            deadline.check()?;
            let name = gang.spec.name.to_string();
            let mut world = supplied.clone();
            if world.gang_named(&name).is_some() {
                // A gang of that name exists: this one is submitted beside it.
                gang.spec.name = format!("{name} (what if)").into();
            }
            let told = world.apply(self.now, &Event::GangSubmitted(gang.spec.clone()));
            told.map_err(|refusal| Refused::Invalid(format!("gang {name}: {refusal}")))?;
            let Some(id) = world.gang_named(&gang.spec.name) else { continue };
            let policy = Policy { explain: true, ..self.policy.clone() };
            let decided = plan(&world, self.now, &policy);
            let (mut nodes, mut hourly, mut boots) = (0, 0.0, None);
            let mut admitted = false;
            for action in decided.actions() {
                match action {
                    Action::Order(order) if order.gang == id => {
                        nodes = order.claims.len() as u32;
                        for (_, offering) in &order.claims {
                            let spec = &world.offering(*offering).spec;
                            hourly += spec.price.as_units();
                            boots = boots.max(Some(spec.boot_time));
                        }
                    }
                    Action::Admit { gang, .. } if *gang == id => admitted = true,
                    _ => {}
                }
            }
            let known = why(&world, self.now, &self.policy, id);
            let waits = known.as_ref().and_then(|known| known.start);
            let starts = match (admitted, boots) {
                (true, _) => Some(self.now),
                (false, Some(boots)) => Some(self.now + boots),
                (false, None) => waits,
            };
            let mut said = match (admitted, nodes) {
                (true, _) => vec![format!("{name}: would start now")],
                (false, 0) => known.map(|known| lines(&world, id, &known)).unwrap_or_default(),
                (false, nodes) => {
                    let nodes = muster_api::figures::count(nodes as usize, "node");
                    vec![format!("{name}: {nodes} would be bought for it, {hourly:.2} an hour")]
                }
            };
            if let Some((_, Verdict::Impossible { .. })) =
                decided.verdicts.iter().find(|(of, _)| *of == id)
                && said.is_empty()
            {
                said.push(format!("{name}: could never run"));
            }
            let hours = gang.spec.expected_duration.map(|takes| takes.as_secs_f64() / 3_600.0);
            answers.push(WhatIf {
                name,
                starts: starts.map(|at| self.clock.stamp(at)),
                nodes,
                hourly,
                cost: hours.filter(|_| nodes > 0).map(|hours| hours * hourly),
                lines: said,
            });
        }
        Ok(answers)
    }
}

impl Daemon {
    /// Metrics in the Prometheus text format.
    pub(crate) fn metrics(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        let counts = &self.counts;
        let mut counter = |name: &str, help: &str, value: u64| {
            let _ = write!(
                text,
                "# HELP muster_{name}_total {help}\n# TYPE muster_{name}_total counter\nmuster_{name}_total {value}\n"
            );
        };
        counter("turns", "Turns of the control plane.", counts.turns);
        counter("gangs_submitted", "Gangs that entered a queue.", counts.submitted);
        counter("gangs_started", "Gangs whose members were all started.", counts.started);
        counter("gangs_ended", "Gangs that are over.", counts.ended);
        counter("gangs_failed", "Gangs that are over and not done.", counts.failed);
        counter("gangs_stopped", "Gangs that were stopped before they were done.", counts.stopped);
        counter("orders_placed", "Orders placed.", counts.orders);
        counter("orders_rolled_back", "Orders given up whole.", counts.rolled_back);
        counter("plan_microseconds", "Time spent planning.", counts.plan_us);
        let mut phases = [("waiting", 0u64), ("running", 0), ("stopping", 0)];
        for (_, gang) in self.world.gangs() {
            let at = match gang.phase {
                Phase::Waiting | Phase::Assembling(_) => 0,
                Phase::Admitted { .. } | Phase::Running { .. } => 1,
                Phase::Stopping => 2,
            };
            phases[at].1 += 1;
        }
        text.push_str("# HELP muster_gangs Gangs that are not over.\n# TYPE muster_gangs gauge\n");
        for (phase, count) in phases {
            let _ = writeln!(text, "muster_gangs{{phase=\"{phase}\"}} {count}");
        }
        text.push_str("# HELP muster_nodes Nodes there are.\n# TYPE muster_nodes gauge\n");
        let _ = writeln!(text, "muster_nodes {}", self.world.nodes().count());
        text
    }
}
