//! Tables of every field of a kind, from the schema in its CustomResourceDefinition.

use std::fmt::Write as _;

use muster_api::crd::{self, Definition};
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The table of every field of a kind, and the rules that hold between fields.
pub(super) fn of(definition: &Definition) -> String {
    let schema = &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = Found::default();
    let required = names(schema, "required");
    for part in ["spec", "status"] {
        if let Some(field) = schema["properties"].get(part) {
            let is_required = required.contains(&part);
            found.field(part, field, is_required);
        }
    }
    found.rules("", schema);
    found.page()
}

/// Names and columns of a kind in an API server.
pub(super) fn names_of(definition: &Definition) -> String {
    let spec = &definition.object["spec"];
    let columns = spec["versions"][0]["additionalPrinterColumns"].as_array();
    let (mut always, mut wide) = (Vec::new(), Vec::new());
    for column in columns.into_iter().flatten() {
        let name = column["name"].as_str().unwrap_or_default();
        if column.get("priority").is_some() { wide.push(name) } else { always.push(name) }
    }
    let shorts: Vec<String> = names(&spec["names"], "shortNames").iter().map(|name| format!("`{name}`")).collect();
    let mut out = format!(
        "| | |\n|---|---|\n| API version | `{}/{}` |\n| scope | {} |\n| names for `kubectl` | `{}`, {} |\n| columns | {} |\n",
        crd::GROUP,
        crd::VERSION,
        if spec["scope"] == "Namespaced" { "namespace" } else { "cluster" },
        definition.plural,
        shorts.join(", "),
        always.join(", "),
    );
    if !wide.is_empty() {
        let _ = writeln!(out, "| more with `-o wide` | {} |", wide.join(", "));
    }
    out
}

/// The table of a manifest's Node, which no API server is told of: it is read like an offering of a Pool, but for its count.
pub(super) fn of_node() -> String {
    let pool = crd::definitions().into_iter().find(|one| one.kind == "Pool").expect("the kind Pool");
    let schema = &pool.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let offering = &schema["properties"]["spec"]["properties"]["offerings"]["items"];
    let mut found = Found::default();
    found.field("spec.allocatable", &offering["properties"]["allocatable"], true);
    let count = serde_json::json!({
        "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1,
        "description": "Number of nodes that differ in their names only: `NAME-0`, `NAME-1` and so on where there are several.",
    });
    found.field("spec.count", &count, false);
    for name in ["gpu", "labels", "taints"] {
        found.field(&format!("spec.{name}"), &offering["properties"][name], false);
    }
    found.page()
}

#[derive(Default)]
struct Found {
    rows: String,
    rules: String,
}

impl Found {
    fn page(self) -> String {
        let mut page = format!(
            "| field | type, bounds, default | meaning |\n|---|---|---|\n{}",
            self.rows
        );
        if !self.rules.is_empty() {
            let _ = write!(page, "\nRules that the API server checks between fields:\n\n{}", self.rules);
        }
        page
    }

    /// A row, and rows for everything below it.
    fn field(&mut self, path: &str, schema: &Value, required: bool) {
        let description = schema["description"].as_str().unwrap_or_default();
        let _ = writeln!(
            self.rows,
            "| `{path}` | {} | {} |",
            traits(schema, required),
            cell(description)
        );
        self.rules(path, schema);
        self.below(path, schema);
    }

    fn below(&mut self, path: &str, schema: &Value) {
        if let Some(fields) = schema["properties"].as_object() {
            let required = names(schema, "required");
            for (name, field) in sorted(fields, &required) {
                self.field(&format!("{path}.{name}"), field, required.contains(&name.as_str()));
            }
        }
        if let Some(items) = schema.get("items") {
            self.inner(&format!("{path}[]"), items);
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            self.inner(&format!("{path}.*"), values);
        }
    }

    /// What a list or a map holds has no row of its own: its type is in the row of the list.
    fn inner(&mut self, path: &str, schema: &Value) {
        self.rules(path, schema);
        self.below(path, schema);
    }

    fn rules(&mut self, path: &str, schema: &Value) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap_or_default();
            let at = if path.is_empty() { "the object" } else { path };
            let _ = writeln!(self.rules, "- `{at}`: {message}.");
        }
    }
}

/// Required fields first, then by name.
fn sorted<'a>(fields: &'a Map<String, Value>, required: &[&str]) -> Vec<(&'a String, &'a Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| (!required.contains(&name.as_str()), name.as_str()));
    fields
}

/// Type, bounds and default of a field, in one cell.
fn traits(schema: &Value, required: bool) -> String {
    let mut parts = vec![kind(schema)];
    parts.extend(bounds(schema));
    match schema.get("default") {
        Some(default) => parts.push(format!("default `{}`", plain(default))),
        None if required => parts.push("required".into()),
        None => {}
    }
    parts.join("; ")
}

fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "quantity".into();
    }
    match schema["type"].as_str() {
        Some("string") => text(schema),
        Some("integer") => "whole number".into(),
        Some("number") => "number".into(),
        Some("boolean") => "true or false".into(),
        Some("array") => format!("list of {}", plural(&kind(&schema["items"]))),
        Some("object") => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => format!("map of {}", plural(&kind(values))),
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => "any object".into(),
            None => "object".into(),
        },
        _ => "any value".into(),
    }
}

fn plural(kind: &str) -> String {
    match kind.split_once(' ') {
        Some(("one", rest)) => rest.strip_prefix("of ").unwrap_or(rest).to_owned(),
        Some((first @ ("duration" | "date" | "list"), rest)) => format!("{first}s {rest}"),
        None if kind == "true or false" || kind == "text" => kind.into(),
        _ if kind.ends_with("ity") => format!("{}ies", kind.trim_end_matches('y')),
        _ => format!("{kind}s"),
    }
}

/// What a text may say: one of some words, or what its pattern stands for.
fn text(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", plain(word))).collect();
        return format!("one of {}", words.join(", "));
    }
    if schema["format"] == "date-time" {
        return "date and time".into();
    }
    let Some(pattern) = schema["pattern"].as_str() else { return "text".into() };
    let known = PATTERNS.iter().find(|(example, _)| example()["pattern"] == pattern);
    known.map_or_else(|| format!("text that matches `{}`", pattern.replace('|', "\\|")), |(_, name)| (*name).into())
}

/// What the patterns of `muster_api::crd` are called in the documentation.
const PATTERNS: [(fn() -> Value, &str); 11] = [
    (schema::<crd::Duration>, "duration"),
    (schema::<crd::DurationAboveZero>, "duration above 0"),
    (schema::<crd::Name>, "name"),
    (schema::<crd::Label>, "label name"),
    (schema::<crd::Key>, "key"),
    (schema::<crd::GpuKey>, "name of a GPU resource"),
    (schema::<crd::LabelValue>, "label value"),
    (schema::<crd::Text>, "text"),
    (schema::<crd::Parameter>, "text"),
    (schema::<crd::OfferingName>, "name of an offering"),
    (schema::<crd::Instant>, "date and time"),
];

fn schema<T: JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn bounds(schema: &Value) -> Vec<String> {
    let number = |name: &str| schema.get(name).filter(|value| value.is_number()).map(figure);
    let mut bounds = Vec::new();
    // A quantity is never negative, as its name says; what is as wide as its type is no bound.
    let (mut least, mut most) = (number("minimum"), number("maximum"));
    if schema["x-kubernetes-int-or-string"] == true {
        least = None;
    }
    if most.as_deref() == Some("4,294,967,295") {
        most = None;
    }
    let above = schema["exclusiveMinimum"] == true;
    match (least, most) {
        (Some(least), Some(most)) if above => bounds.push(format!("above {least}, at most {most}")),
        (Some(least), Some(most)) => bounds.push(format!("{least} to {most}")),
        (Some(least), None) => bounds.push(format!("{least} or more")),
        (None, Some(most)) => bounds.push(format!("at most {most}")),
        (None, None) => {}
    }
    let items = |name: &str| number(name);
    match (items("minItems"), items("maxItems")) {
        (Some(least), Some(most)) => bounds.push(format!("{least} to {most} items")),
        (None, Some(most)) => bounds.push(format!("at most {most} items")),
        (Some(least), None) => bounds.push(format!("at least {least} items")),
        (None, None) => {}
    }
    match (number("minProperties").as_deref(), number("maxProperties")) {
        (Some("1"), Some(most)) if most == "1" => bounds.push("exactly one of its fields".into()),
        (_, Some(most)) => bounds.push(format!("at most {most} entries")),
        (Some(least), None) => bounds.push(format!("at least {least} of its fields")),
        (None, None) => {}
    }
    bounds
}

/// A number with a comma after each three digits.
fn figure(value: &Value) -> String {
    let Some(whole) = value.as_i64() else { return value.to_string() };
    let digits = whole.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if whole < 0 { format!("-{out}") } else { out }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn names<'a>(schema: &'a Value, list: &str) -> Vec<&'a str> {
    schema[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every property of a schema, by the path that a table writes.
    fn paths(path: &str, schema: &Value, out: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            out.push(path.clone());
            paths(&path, field, out);
        }
        for (inner, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
            if schema[inner].is_object() {
                paths(&format!("{path}{mark}"), &schema[inner], out);
            }
        }
    }

    #[test]
    fn every_property_of_every_kind_has_a_row() {
        for definition in crd::definitions() {
            let table = of(&definition);
            let schema = &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut expected = Vec::new();
            paths("", schema, &mut expected);
            assert!(expected.len() > 5, "{}: {expected:?}", definition.kind);
            for path in expected {
                let row = format!("| `{}` |", path.trim_start_matches('.'));
                assert!(table.contains(&row), "{} lacks {row}", definition.kind);
            }
        }
    }

    #[test]
    fn node_is_read_with_the_fields_of_its_table() {
        let text = "kind: Node\nmetadata: {name: n}\nspec: {count: 2, allocatable: {cpu: 4}, gpu: {model: H100, memory: 80Gi, count: 8}, \
            labels: {a: b}, taints: [{key: k, value: v, effect: NoSchedule}]}\n";
        let read = muster_api::read_texts(&[("node.yaml", text)]);
        assert_eq!(read.expect("a Node that is right").nodes.len(), 2);
        let table = of_node();
        for path in ["allocatable", "count", "gpu", "gpu.model", "gpu.memory", "gpu.count", "gpu.resource", "labels", "taints"] {
            assert!(table.contains(&format!("| `spec.{path}` |")), "{path} is missing:\n{table}");
        }
    }

    #[test]
    fn type_bounds_and_default_are_in_one_cell() {
        let number = serde_json::json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 5 });
        assert_eq!(traits(&number, false), "whole number; 1 to 1,000,000; default `5`");
        let list = serde_json::json!({ "type": "array", "maxItems": 64, "items": schema::<crd::Duration>() });
        assert_eq!(traits(&list, true), "list of durations; at most 64 items; required");
    }

    #[test]
    fn every_pattern_of_the_schemas_has_a_name() {
        for definition in crd::definitions() {
            let table = of(&definition);
            let unnamed: Vec<&str> =
                table.lines().filter(|line| line.contains("text that matches") && !line.contains("conditions[].reason")).collect();
            assert!(unnamed.is_empty(), "{unnamed:?}");
        }
    }
}
