//! Redacts the values of environment variables for callers without the right to see them.
//!
//! Names stay visible: they show how a gang is set up, and secrets are in the values. Command arguments are shown: a
//! secret does not belong there, since every process of the machine can read them.

use serde_json::Value;

use crate::{Caller, Kind, Subject, Verb};

/// The replacement for a redacted value.
pub(crate) const HIDDEN: &str = "(hidden)";

/// The queue of a gang object.
pub(crate) fn queue_of(gang: &Value) -> Option<&str> {
    gang.pointer("/spec/queue").and_then(Value::as_str)
}

/// Whether a caller may see the values in an object, given the queue of a gang.
pub(crate) fn may_see_values(by: &Caller, kind: Kind, queue: Option<&str>) -> bool {
    by.check(Verb::ReadValues, Subject::from(kind), queue).is_ok()
}

/// A redacted copy of the object; `None` if it has no values to redact.
pub(crate) fn redacted(object: &Value) -> Option<Value> {
    if !has_values(object) {
        return None;
    }
    let mut copy = object.clone();
    redact(&mut copy);
    Some(copy)
}

fn has_values(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| match (name.as_str(), value) {
            ("env", Value::Object(all)) => !all.is_empty(),
            ("env", Value::Array(all)) => !all.is_empty(),
            _ => has_values(value),
        }),
        Value::Array(items) => items.iter().any(has_values),
        _ => false,
    }
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("env", Value::Object(all)) => all.values_mut().for_each(redact_value),
                    ("env", Value::Array(all)) => all.iter_mut().for_each(redact_entry),
                    (_, value) => redact(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Redacts an `env` entry of a container: every field but its name may hold the value.
fn redact_entry(entry: &mut Value) {
    match entry {
        Value::Object(fields) => {
            fields.iter_mut().filter(|(name, _)| *name != "name").for_each(|(_, value)| {
                redact_value(value);
            });
        }
        other => redact_value(other),
    }
}

fn redact_value(value: &mut Value) {
    *value = Value::from(HIDDEN);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn environment_values_are_redacted_and_names_are_kept() {
        let gang = json!({"spec": {"roles": [
            {"run": {"command": ["sh"], "env": {"KEY": "hunter2"}}},
            {"template": {"spec": {"containers": [{"env": [{"name": "PW", "value": "hunter2"}]}]}}},
        ]}});
        let shown = redacted(&gang).unwrap().to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("KEY") && shown.contains("PW") && shown.contains("sh"), "{shown}");
        assert_eq!(redacted(&json!({"spec": {"env": {}}})), None);
    }
}
