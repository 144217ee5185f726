//! A pod's node selector, node affinity and tolerations as planner constraints.

use std::sync::Arc;

use muster_core::constraint::{
    Constraints, Effect, Preference, Requirement, Term, Test, Toleration,
};
use muster_core::topology::HOSTNAME;

use crate::foreign::json::Findings;
use crate::pod::affinity::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};
use crate::pod::spec::{PodSpec, TolerationSpec};

/// The one field of a node that can be matched: its name.
const NAME: &str = "metadata.name";
/// A label that must have one of no values, which no node satisfies: the meaning of a selector without terms.
const NO_NODE_LABEL: &str = "muster.sh/nowhere";

impl PodSpec {
    /// Its constraints on nodes, or what is invalid in them. GPU models and memory are left open: a pod can only
    /// express them by labels.
    pub fn constraints(&self) -> Result<Constraints, Vec<String>> {
        let findings = Findings::default();
        let all = self.node_selector.iter().map(|(key, value)| Requirement {
            key: key.as_str().into(),
            test: Test::In(vec![value.as_str().into()]),
        });
        let mut constraints = Constraints { all: all.collect(), ..Constraints::default() };
        if let Some(nodes) = self.affinity.as_ref().and_then(|wants| wants.node_affinity.as_ref()) {
            constraints.any = required(nodes, &findings);
            constraints.prefer = preferred(nodes, &findings);
        }
        let listed = self.tolerations.iter().enumerate();
        constraints.tolerations =
            listed.filter_map(|(index, written)| toleration(written, index, &findings)).collect();
        findings.settle(constraints)
    }
}

/// Terms of which one must hold. A term without expressions matches nothing, and so does a selector that has no
/// other terms: Kubernetes reads it so, although "anywhere" would come to mind first.
fn required(nodes: &NodeAffinity, findings: &Findings) -> Vec<Term> {
    let Some(selector) = &nodes.required else { return Vec::new() };
    let field = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let listed = selector.node_selector_terms.iter().enumerate();
    let read = |(index, written): (usize, &NodeSelectorTerm)| {
        term(written, &format!("{field}.nodeSelectorTerms[{index}]"), findings)
    };
    let terms: Vec<Term> = listed.map(read).filter(|term| !term.is_empty()).collect();
    if terms.is_empty() {
        return vec![vec![Requirement { key: NO_NODE_LABEL.into(), test: Test::In(Vec::new()) }]];
    }
    terms
}

/// Preferred terms with a weight. A term without expressions is no preference.
fn preferred(nodes: &NodeAffinity, findings: &Findings) -> Vec<Preference> {
    let field = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";
    let mut preferences = Vec::new();
    for (index, preferred) in nodes.preferred.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let term = term(&preferred.preference, &format!("{field}.preference"), findings);
        match u8::try_from(preferred.weight) {
            Ok(0) => {}
            Ok(weight) if weight <= 100 && !term.is_empty() => {
                preferences.push(Preference { weight, term });
            }
            Ok(weight) if weight <= 100 => {}
            _ => findings.push(
                &format!("{field}.weight"),
                format!("must be 1 to 100, not {}", preferred.weight),
            ),
        }
    }
    preferences
}

fn term(written: &NodeSelectorTerm, field: &str, findings: &Findings) -> Term {
    let mut term = Term::new();
    for (index, expression) in written.match_expressions.iter().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        term.extend(requirement(expression, &field, findings));
    }
    for (index, expression) in written.match_fields.iter().enumerate() {
        let field = format!("{field}.matchFields[{index}]");
        term.extend(about_name(expression, &field, findings));
    }
    term
}

fn requirement(
    written: &NodeSelectorRequirement,
    field: &str,
    findings: &Findings,
) -> Option<Requirement> {
    let values = || written.values.iter().map(|value| Arc::from(value.as_str())).collect();
    let number = || match written.values.as_slice() {
        [one] => one.parse::<i64>().ok(),
        _ => None,
    };
    let (test, rule) = match written.operator.as_str() {
        "In" => (some_of(written).then(|| Test::In(values())), "needs at least one value"),
        "NotIn" => (some_of(written).then(|| Test::NotIn(values())), "needs at least one value"),
        "Exists" => (none_of(written).then_some(Test::Exists), "takes no values"),
        "DoesNotExist" => (none_of(written).then_some(Test::DoesNotExist), "takes no values"),
        "Gt" => (number().map(Test::Gt), "takes one whole number in quotes"),
        "Lt" => (number().map(Test::Lt), "takes one whole number in quotes"),
        _ => (None, "is none of In, NotIn, Exists, DoesNotExist, Gt and Lt"),
    };
    if test.is_none() {
        findings.push(field, format!("the operator `{}` {rule}", written.operator));
    }
    Some(Requirement { key: written.key.as_str().into(), test: test? })
}

fn some_of(written: &NodeSelectorRequirement) -> bool {
    !written.values.is_empty()
}

fn none_of(written: &NodeSelectorRequirement) -> bool {
    written.values.is_empty()
}

/// A demand on the node's name, which core knows by the label that carries it.
fn about_name(
    written: &NodeSelectorRequirement,
    field: &str,
    findings: &Findings,
) -> Option<Requirement> {
    let [name] = written.values.as_slice() else {
        findings.push(field, "needs exactly one value");
        return None;
    };
    let values = vec![Arc::from(name.as_str())];
    let test = match (written.key.as_str(), written.operator.as_str()) {
        (NAME, "In") => Test::In(values),
        (NAME, "NotIn") => Test::NotIn(values),
        (NAME, other) => {
            findings.push(field, format!("the operator `{other}` is neither In nor NotIn"));
            return None;
        }
        (other, _) => {
            findings.push(field, format!("`{other}` cannot be matched, only `{NAME}`"));
            return None;
        }
    };
    Some(Requirement { key: HOSTNAME.into(), test })
}

fn toleration(written: &TolerationSpec, index: usize, findings: &Findings) -> Option<Toleration> {
    let field = format!("tolerations[{index}]");
    let effect = match written.effect.as_str() {
        "" => None,
        "NoSchedule" => Some(Effect::NoSchedule),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        other => {
            let reason = format!("`{other}` is none of NoSchedule, PreferNoSchedule and NoExecute");
            findings.push(&format!("{field}.effect"), reason);
            return None;
        }
    };
    let key = (!written.key.is_empty()).then(|| written.key.as_str().into());
    let value = match written.operator.as_str() {
        "Exists" if written.value.is_empty() => None,
        "Exists" => {
            findings.push(&format!("{field}.value"), "must be left out with `Exists`");
            return None;
        }
        "" | "Equal" if key.is_some() => Some(written.value.as_str().into()),
        "" | "Equal" => {
            findings.push(&format!("{field}.key"), "is missing; only `Exists` tolerates every key");
            return None;
        }
        other => {
            let reason =
                format!("`{other}` is neither Equal nor Exists, and nothing else is acted on");
            findings.push(&format!("{field}.operator"), reason);
            return None;
        }
    };
    Some(Toleration { key, value, effect })
}
