//! Hides the values of environment variables from callers who may not see them.
//!
//! Names stay: they say how a gang is set up, and values are where secrets are. Arguments of commands are shown as they
//! are; a secret does not belong there, since every process of the machine can read them.

use serde_json::Value;

use crate::{Caller, Kind, Subject, Verb};

/// What stands in place of a value.
pub(crate) const HIDDEN: &str = "(hidden)";

/// The queue that a gang is in.
pub(crate) fn queue_of(gang: &Value) -> Option<&str> {
    gang.pointer("/spec/queue").and_then(Value::as_str)
}

/// Whether a caller sees all of an object, which may be in a queue.
pub(crate) fn may_see_values(by: &Caller, kind: Kind, queue: Option<&str>) -> bool {
    by.check(Verb::ReadValues, Subject::from(kind), queue).is_ok()
}

/// The object without values of environment variables; `None` when there are none in it.
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

/// An entry as in a container: all but its name may hold the value.
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
    fn values_are_hidden_wherever_an_environment_is_and_names_are_not() {
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
