//! Warnings about containers whose commands run as processes.

use serde_json::Value;

/// Differences from a cluster, for all containers anywhere in an object.
pub(crate) fn warnings(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(object, &mut found);
    // A TrainJob describes its container under another name.
    found.extend(object.pointer("/spec/trainer"));
    let mut said: Vec<String> = Vec::new();
    for container in found {
        let more = image(container).into_iter().chain(variables(container));
        for one in more {
            if !said.contains(&one) {
                said.push(one);
            }
        }
    }
    said
}

fn walk<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("containers", Value::Array(containers)) => found.extend(containers),
                    _ => walk(field, found),
                }
            }
        }
        _ => {}
    }
}

fn image(container: &Value) -> Option<String> {
    let image = container.get("image")?.as_str()?;
    Some(format!("image `{image}` is not pulled: its command runs as a process on this machine"))
}

/// Variables whose value is in a cluster.
fn variables(container: &Value) -> Vec<String> {
    let env = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let elsewhere = env.filter(|one| one.get("valueFrom").is_some());
    let name = |one: &Value| one.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut said: Vec<String> = elsewhere
        .filter_map(name)
        .map(|name| format!("variable {name} is not set: its value comes from a cluster"))
        .collect();
    if container.get("envFrom").is_some() {
        said.push("variables of `envFrom` are not set: they come from a cluster".to_owned());
    }
    said
}
