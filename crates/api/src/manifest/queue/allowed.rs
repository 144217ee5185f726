//! Reads what a queue allows its gangs to declare.

use std::sync::Arc;

use muster_core::constraint::{Requirement, Term, Test};
use muster_core::queue::{Allowed, Namespaces, NonPreemptible};

use crate::manifest::gang::constraints::{labels, requirement};
use crate::yaml::fields::Fields;
use crate::yaml::names::{LABEL_RULE, is_label};
use crate::yaml::value::Value;

const RULES: [(&str, NonPreemptible); 3] = [
    ("Never", NonPreemptible::Never),
    ("WithinGuarantee", NonPreemptible::WithinGuarantee),
    ("Always", NonPreemptible::Always),
];

/// Reads the bounds of a queue's spec.
pub(crate) fn read(spec: &Fields<'_>) -> Allowed {
    let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let max_priority = spec.get("maxPriority").and_then(|value| value.whole(range));
    let rule = spec.get("allowNonPreemptible").and_then(|value| value.one_of(&RULES));
    Allowed {
        namespaces: spec.get("namespaces").and_then(|value| namespaces(&value)),
        max_priority: max_priority.and_then(|number| i32::try_from(number).ok()),
        non_preemptible: rule.unwrap_or_default(),
        max_cost_of_waiting: spec.get("maxCostOfWaiting").and_then(|value| value.money()),
        max_grace: spec.span("maxGrace"),
        max_min_runtime: spec.span("maxMinRuntime"),
        max_provisioning_timeout: spec.span_above_zero("maxProvisioningTimeout"),
    }
}

/// A list of names, a selector, or both. With neither no namespace may use the queue.
fn namespaces(value: &Value<'_>) -> Option<Namespaces> {
    let fields = value.fields()?;
    let names = fields.list("names");
    let names = names.iter().filter_map(|name| name.text_with(is_label, LABEL_RULE));
    let names: Vec<Arc<str>> = names.map(Into::into).collect();
    let selector = fields.get("selector").and_then(|value| selector(&value));
    fields.done();
    Some(Namespaces { names, selector })
}

/// A label selector as in Kubernetes: all of its requirements must match, and an empty one matches everything.
fn selector(value: &Value<'_>) -> Option<Term> {
    let fields = value.fields()?;
    let by_label = labels(&fields, "matchLabels").into_iter();
    let mut term: Term =
        by_label.map(|(key, value)| Requirement { key, test: Test::In(vec![value]) }).collect();
    for expression in fields.list("matchExpressions") {
        let Some(requirement) = requirement(&expression) else { continue };
        if matches!(requirement.test, Test::Gt(_) | Test::Lt(_)) {
            expression
                .error("namespaces are selected by `In`, `NotIn`, `Exists` and `DoesNotExist`");
        }
        term.push(requirement);
    }
    fields.done();
    Some(term)
}
