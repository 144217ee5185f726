//! Node selectors, node affinity, tolerations and taints, written as in a pod and on a node.

use std::sync::Arc;

use muster_core::constraint::{
    Constraints, Effect, Labels, Preference, Requirement, Taint, Term, Test, Toleration,
};

use crate::yaml::fields::Fields;
use crate::yaml::names::{KEY_RULE, VALUE_RULE, is_key, is_value};
use crate::yaml::value::Value;

const EFFECTS: [(&str, Effect); 3] = [
    ("NoSchedule", Effect::NoSchedule),
    ("PreferNoSchedule", Effect::PreferNoSchedule),
    ("NoExecute", Effect::NoExecute),
];

/// The scheduling constraints of a role, except those of its GPUs.
pub(crate) fn constraints(role: &Fields<'_>) -> Constraints {
    let selector = labels(role, "nodeSelector");
    let all =
        selector.into_iter().map(|(key, value)| Requirement { key, test: Test::In(vec![value]) });
    let mut constraints = Constraints { all: all.collect(), ..Constraints::default() };
    if let Some(affinity) = role.get("affinity").and_then(|value| value.fields()) {
        if let Some(node) = affinity.get("nodeAffinity").and_then(|value| value.fields()) {
            constraints.any = required(&node);
            constraints.prefer = preferred(&node);
            node.done();
        }
        affinity.done();
    }
    constraints.tolerations = role.list("tolerations").iter().filter_map(toleration).collect();
    constraints
}

fn required(affinity: &Fields<'_>) -> Vec<Term> {
    let Some(required) = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") else {
        return Vec::new();
    };
    let Some(required) = required.fields() else { return Vec::new() };
    let terms = required.need("nodeSelectorTerms").and_then(|value| value.items("term"));
    required.done();
    terms.unwrap_or_default().iter().filter_map(term).collect()
}

fn preferred(affinity: &Fields<'_>) -> Vec<Preference> {
    let read = |value: &Value<'_>| {
        let fields = value.fields()?;
        let weight = fields.need("weight").and_then(|value| value.count(1..=100));
        let term = fields.need("preference").and_then(|value| term(&value));
        fields.done();
        Some(Preference { weight: u8::try_from(weight?).ok()?, term: term? })
    };
    let wishes = affinity.list("preferredDuringSchedulingIgnoredDuringExecution");
    wishes.iter().filter_map(read).collect()
}

/// A term without expressions is an error: in Kubernetes it matches nothing, which is never intended.
fn term(value: &Value<'_>) -> Option<Term> {
    let fields = value.fields()?;
    let expressions = fields.need("matchExpressions").and_then(|value| value.items("expression"));
    fields.done();
    Some(expressions?.iter().filter_map(requirement).collect())
}

/// One expression of a selector.
pub(crate) fn requirement(value: &Value<'_>) -> Option<Requirement> {
    let fields = value.fields()?;
    let key = fields.need("key").and_then(|value| value.text_with(is_key, KEY_RULE));
    let values = fields.texts("values");
    let operator = fields.need("operator");
    let shared = || values.iter().map(|text| Arc::from(*text)).collect();
    let test = operator.as_ref().and_then(|operator| {
        let test = operator.one_of(&[
            ("In", Test::In as fn(_) -> _),
            ("NotIn", Test::NotIn),
            ("Exists", |_| Test::Exists),
            ("DoesNotExist", |_| Test::DoesNotExist),
            ("Gt", |_| Test::Gt(0)),
            ("Lt", |_| Test::Lt(0)),
        ])?;
        Some(test(shared()))
    });
    let test = test.and_then(|test| with_values(test, &fields, &values));
    fields.done();
    Some(Requirement { key: key?.into(), test: test? })
}

/// Checks the operator against its values: how many there are, and whether they are numbers.
fn with_values(test: Test, fields: &Fields<'_>, values: &[&str]) -> Option<Test> {
    let number = || match values {
        [one] => one.parse::<i64>().ok(),
        _ => None,
    };
    let (good, rule) = match &test {
        Test::In(_) | Test::NotIn(_) => (!values.is_empty(), "must name at least one value"),
        Test::Exists | Test::DoesNotExist => {
            (values.is_empty(), "must be left out with `Exists` and `DoesNotExist`")
        }
        Test::Gt(_) | Test::Lt(_) => {
            (number().is_some(), "must be one whole number in quotes, with `Gt` and `Lt`")
        }
    };
    if !good {
        match fields.get("values") {
            Some(value) => value.error(rule),
            None => fields.missing("values"),
        }
        return None;
    }
    Some(match test {
        Test::Gt(_) => Test::Gt(number()?),
        Test::Lt(_) => Test::Lt(number()?),
        other => other,
    })
}

fn toleration(value: &Value<'_>) -> Option<Toleration> {
    let fields = value.fields()?;
    let exists = fields
        .get("operator")
        .map_or(Some(false), |value| value.one_of(&[("Equal", false), ("Exists", true)]));
    let key = fields.get("key").and_then(|value| value.text_with(is_key, KEY_RULE));
    let text = fields.get("value").and_then(|value| value.text_with(is_value, VALUE_RULE));
    let effect = fields.get("effect").and_then(|value| value.one_of(&EFFECTS));
    if let Some(seconds) = fields.get("tolerationSeconds") {
        seconds.whole(0..=i64::MAX);
        seconds.not_acted_on();
    }
    if exists == Some(true)
        && let Some(value) = fields.get("value")
    {
        value.error("must be left out with the operator `Exists`");
    }
    if exists == Some(false) && fields.get("key").is_none() {
        value.error("needs a `key`, or the operator `Exists` to tolerate every taint");
    }
    fields.done();
    let value = (!exists?).then(|| text.unwrap_or_default().into());
    Some(Toleration { key: key.map(Into::into), value, effect })
}

/// The taints of a node or an offering.
pub(crate) fn taints(fields: &Fields<'_>, name: &'static str) -> Vec<Taint> {
    let read = |value: &Value<'_>| {
        let fields = value.fields()?;
        let key = fields.need("key").and_then(|value| value.text_with(is_key, KEY_RULE));
        let text = fields.get("value").and_then(|value| value.text_with(is_value, VALUE_RULE));
        let effect = fields.need("effect").and_then(|value| value.one_of(&EFFECTS));
        fields.done();
        Some(Taint { key: key?.into(), value: text.unwrap_or_default().into(), effect: effect? })
    };
    fields.list(name).iter().filter_map(read).collect()
}

/// A mapping of label keys to label values.
pub(crate) fn labels(fields: &Fields<'_>, name: &'static str) -> Labels {
    let read = |(key, value): &(&str, Value<'_>)| {
        if !is_key(key) {
            value.error(format!("a label key {KEY_RULE}"));
        }
        let text = value.text_with(is_value, VALUE_RULE)?;
        Some((Arc::from(*key), Arc::from(text)))
    };
    fields.pairs(name).iter().filter_map(read).collect()
}
