//! What people ask: why a gang waits, what would become of one, and how much has happened.

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::plan::Action;
use muster_core::verdict::Verdict;
use muster_plan::{Policy, plan, why};
use muster_server::{Caller, Refused, WhatIf, Why};

use super::Daemon;
use super::rehearse::user_of;
use crate::intake::Intake;
use crate::why::lines;

/// Gangs that are asked about at once, at most: each is planned for in a copy of the World.
const ASKED_MAX: usize = 64;

impl Daemon {
    pub(super) fn why(&self, name: &str) -> Result<Why, Refused> {
        let gang = self.known(name)?;
        let plain = |line: String| Why {
            name: name.to_owned(),
            lines: vec![format!("{name}: {line}")],
            expected_start: None,
        };
        if let Some(over) = &gang.over {
            return Ok(plain(format!("is over: {}", over.message)));
        }
        let Some(id) = self.id_of(name) else {
            return Ok(plain(match gang.record.held {
                true => "is held: release it to let it start".to_owned(),
                false => "is submitted later".to_owned(),
            }));
        };
        let Some(known) = why(&self.world, self.now, &self.policy, id) else {
            return Ok(plain("nothing was decided yet".to_owned()));
        };
        let expected_start = known.start.map(|at| self.clock.stamp(at));
        let lines = lines(&self.world, id, &known);
        Ok(Why { name: name.to_owned(), lines, expected_start })
    }

    /// Submits gangs to a copy of the World, and tells what the planner says there.
    pub(super) fn what_if(&self, by: &Caller, intake: Intake) -> Result<Vec<WhatIf>, Refused> {
        if intake.gangs.len() > ASKED_MAX {
            let asked = intake.gangs.len();
            let why =
                format!("{asked} gangs are too many to ask about at once: {ASKED_MAX} at most");
            return Err(Refused::Invalid(why));
        }
        let mut answers = Vec::new();
        // Queues, pools and nodes of the manifests are there for all of them; each gang comes alone.
        let supplied = self.rehearsed_supply(&intake)?;
        for mut gang in intake.gangs {
            gang.spec.user = user_of(by, &gang);
            let name = gang.spec.name.to_string();
            let mut world = supplied.clone();
            if world.gang_named(&name).is_some() {
                // One of that name is there: what if this one came as well?
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

    /// Counts and gauges, as Prometheus reads them.
    pub(super) fn metrics(&self) -> String {
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
