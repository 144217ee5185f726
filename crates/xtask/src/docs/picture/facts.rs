//! What happened in a run of `muster rehearse --json`: nodes by their claims, and what ran on them.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::Value;

/// One node that was bought.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Machine {
    pub(super) requested: f64,
    /// When it was ready with every GPU.
    pub(super) ready: Option<f64>,
    /// When it failed, or was given back.
    pub(super) ended: Option<f64>,
    pub(super) failed: bool,
    /// What ran on it: gang, from, to.
    pub(super) uses: Vec<(String, f64, f64)>,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Facts {
    pub(super) machines: Vec<Machine>,
    /// When each gang started, by its name without the namespace.
    pub(super) starts: BTreeMap<String, f64>,
    pub(super) end: f64,
    pub(super) cost: f64,
}

/// Numbers that facts name things by, and what they stand for.
#[derive(Default)]
struct Names {
    gangs: BTreeMap<u64, String>,
    machines: BTreeMap<u64, usize>,
    machine_of_node: BTreeMap<u64, usize>,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &str) -> anyhow::Result<Facts> {
    let (mut facts, mut names) = (Facts::default(), Names::default());
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        if let Some(summary) = line.get("summary") {
            facts.cost = summary["cost"].as_f64().context("a cost")?;
            facts.end = summary["makespan_s"].as_f64().context("an end")?;
            continue;
        }
        let at = line["at_s"].as_f64().context("a time")?;
        let Some((kind, fact)) = line["fact"].as_object().and_then(|fact| fact.iter().next())
        else {
            continue;
        };
        facts.take(&mut names, at, kind, fact)?;
    }
    if facts.machines.iter().all(|machine| machine.uses.is_empty()) {
        bail!("nothing ran on a node that was bought: the facts are not read as they are written");
    }
    Ok(facts)
}

impl Facts {
    fn take(&mut self, names: &mut Names, at: f64, kind: &str, fact: &Value) -> anyhow::Result<()> {
        let number =
            |name: &str| fact[name].as_u64().with_context(|| format!("{kind} without {name}"));
        match kind {
            "GangSubmitted" => {
                let name = fact["spec"]["name"].as_str().context("a gang without a name")?;
                let name = name.rsplit('/').next().unwrap_or(name);
                names.gangs.insert(number("gang")?, name.to_owned());
            }
            "GangStarted" => {
                let gang = names.gangs.get(&number("gang")?).context("an unknown gang")?;
                self.starts.insert(gang.clone(), at);
            }
            "ClaimRequested" => {
                names.machines.insert(number("claim")?, self.machines.len());
                let machine = Machine {
                    requested: at,
                    ready: None,
                    ended: None,
                    failed: false,
                    uses: Vec::new(),
                };
                self.machines.push(machine);
            }
            "NodeSeen" => {
                let machine =
                    fact["claim"].as_u64().and_then(|claim| names.machines.get(&claim)).copied();
                if let Some(machine) = machine {
                    names.machine_of_node.insert(number("node")?, machine);
                    if fact["ready"] == true && number("gpus")? > 0 {
                        self.machines[machine].ready.get_or_insert(at);
                    }
                }
            }
            "MembersStarted" | "MembersStopped" => {
                let gang = names.gangs.get(&number("gang")?).context("an unknown gang")?.clone();
                let Some(&machine) = names.machine_of_node.get(&number("node")?) else {
                    return Ok(());
                };
                let uses = &mut self.machines[machine].uses;
                if kind == "MembersStarted" {
                    uses.push((gang, at, f64::INFINITY));
                } else if let Some(last) = uses.iter_mut().rev().find(|last| last.0 == gang) {
                    last.2 = at;
                }
            }
            "ClaimFailed" | "ClaimReleased" => {
                if let Some(&machine) = names.machines.get(&number("claim")?) {
                    self.machines[machine].ended.get_or_insert(at);
                    self.machines[machine].failed |= kind == "ClaimFailed";
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_is_followed_from_its_claim_to_its_end() {
        let lines = [
            r#"{"at_s":0.0,"fact":{"GangSubmitted":{"gang":3,"spec":{"name":"research/a"}}}}"#,
            r#"{"at_s":1.0,"fact":{"ClaimRequested":{"claim":7}}}"#,
            r#"{"at_s":2.0,"fact":{"NodeSeen":{"claim":7,"node":5,"ready":true,"gpus":0}}}"#,
            r#"{"at_s":3.0,"fact":{"NodeSeen":{"claim":7,"node":5,"ready":true,"gpus":8}}}"#,
            r#"{"at_s":4.0,"fact":{"MembersStarted":{"gang":3,"node":5}}}"#,
            r#"{"at_s":4.0,"fact":{"GangStarted":{"gang":3}}}"#,
            r#"{"at_s":6.0,"fact":{"MembersStopped":{"gang":3,"node":5}}}"#,
            r#"{"at_s":8.0,"fact":{"ClaimReleased":{"claim":7}}}"#,
            r#"{"summary":{"cost":1.5,"makespan_s":6.0}}"#,
        ];
        let facts = read(&lines.join("\n")).expect("facts");
        let machine = &facts.machines[0];
        assert_eq!((machine.requested, machine.ready, machine.ended), (1.0, Some(3.0), Some(8.0)));
        assert_eq!(machine.uses, [("a".to_owned(), 4.0, 6.0)]);
        assert_eq!((facts.starts["a"], facts.cost, facts.end), (4.0, 1.5, 6.0));
        assert!(read("").is_err());
    }
}
