//! Tables of every field of a kind, from the schema in its CustomResourceDefinition.

use std::fmt::Write as _;

use muster_api::crd::{self, Definition};
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// Tables of every field of a kind, one for each object in it, and the rules that hold between fields.
pub(super) fn of(definition: &Definition) -> String {
    let schema = &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = Found::default();
    for part in ["spec", "status"] {
        if let Some(field) = schema["properties"].get(part) {
            found.object(part, field);
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
    let shorts: Vec<String> =
        names(&spec["names"], "shortNames").iter().map(|name| format!("`{name}`")).collect();
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
    let pool =
        crd::definitions().into_iter().find(|one| one.kind == "Pool").expect("the kind Pool");
    let schema = &pool.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let offering = &schema["properties"]["spec"]["properties"]["offerings"]["items"];
    let mut fields = offering.clone();
    fields["description"] = "What each node has.".into();
    fields["required"] = serde_json::json!(["allocatable"]);
    let properties = fields["properties"].as_object_mut().expect("fields of an offering");
    properties
        .retain(|name, _| ["allocatable", "gpu", "labels", "taints"].contains(&name.as_str()));
    let count = serde_json::json!({
        "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1,
        "description": "Number of nodes that differ in their names only: `NAME-0`, `NAME-1` and so on where there are several.",
    });
    properties.insert("count".into(), count);
    let mut found = Found::default();
    found.object("spec", &fields);
    found.page()
}

#[derive(Default)]
struct Found {
    tables: String,
    rules: String,
}

impl Found {
    fn page(self) -> String {
        let mut page = self.tables.trim_end().to_owned() + "\n";
        if !self.rules.is_empty() {
            let _ = write!(
                page,
                "\n### Rules between fields\n\nThe API server checks these:\n\n{}",
                self.rules
            );
        }
        page
    }

    /// A table of the fields of an object, then those of the objects in it.
    fn object(&mut self, path: &str, schema: &Value) {
        self.rules(path, schema);
        let Some(fields) = schema["properties"].as_object() else { return };
        let description = schema["description"].as_str().unwrap_or_default();
        let _ = write!(
            self.tables,
            "### `{path}`\n\n{description}\n\n| field | type, bounds, default | meaning |\n|---|---|---|\n"
        );
        let required = names(schema, "required");
        let fields = sorted(fields, &required);
        for (name, field) in &fields {
            let is_required = required.contains(&name.as_str());
            let below = inner(&format!("{path}.{name}"), field)
                .map(|(path, _)| format!("; see [`{path}`](#{})", anchor(&path)));
            let _ = writeln!(
                self.tables,
                "| `{name}` | {}{} | {} |",
                traits(field, is_required),
                below.unwrap_or_default(),
                cell(field["description"].as_str().unwrap_or_default())
            );
        }
        self.tables.push('\n');
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match inner(&path, field) {
                Some((path, object)) => self.object(&path, object),
                None => self.rules(&path, field),
            }
        }
    }

    fn rules(&mut self, path: &str, schema: &Value) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap_or_default();
            let at = if path.is_empty() { "the object" } else { path };
            let _ = writeln!(self.rules, "- `{at}`: {message}.");
        }
    }
}

/// The object that a field is, or that its list or map holds, with its path.
fn inner<'a>(path: &str, schema: &'a Value) -> Option<(String, &'a Value)> {
    if schema["properties"].is_object() {
        return Some((path.to_owned(), schema));
    }
    let in_list = schema.get("items").and_then(|items| inner(&format!("{path}[]"), items));
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    in_list.or_else(|| values.and_then(|values| inner(&format!("{path}.*"), values)))
}

/// The id of the heading of a path.
fn anchor(path: &str) -> String {
    path.chars()
        .filter(|one| one.is_alphanumeric() || *one == '-')
        .flat_map(char::to_lowercase)
        .collect()
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
        Some("object") => match schema
            .get("additionalProperties")
            .filter(|values| values.is_object())
        {
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
    known.map_or_else(
        || format!("text that matches `{}`", pattern.replace('|', "\\|")),
        |(_, name)| (*name).into(),
    )
}

/// Makes the schema of a type.
type Example = fn() -> Value;

/// What the patterns of `muster_api::crd` are called in the documentation.
const PATTERNS: [(Example, &str); 11] = [
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

    /// Every property of a schema: the path of its object, and its name.
    fn properties(path: &str, schema: &Value, out: &mut Vec<(String, String)>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if !path.is_empty() {
                out.push((path.to_owned(), name.clone()));
            }
            properties(&at, field, out);
        }
        for (inner, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
            if schema[inner].is_object() {
                properties(&format!("{path}{mark}"), &schema[inner], out);
            }
        }
    }

    /// Whether a page has a row for a field in the table of its object.
    fn has(page: &str, object: &str, field: &str) -> bool {
        let heading = format!("### `{object}`\n");
        let table =
            page.split_once(&heading).map(|(_, rest)| rest.split("\n### ").next().unwrap_or(rest));
        table.is_some_and(|table| table.contains(&format!("\n| `{field}` | ")))
    }

    #[test]
    fn every_property_of_every_kind_has_a_row() {
        for definition in crd::definitions() {
            let page = of(&definition);
            let schema = &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut expected = Vec::new();
            properties("", schema, &mut expected);
            assert!(expected.len() > 5, "{}: {expected:?}", definition.kind);
            for (object, field) in expected {
                assert!(has(&page, &object, &field), "{} lacks {object}.{field}", definition.kind);
            }
            assert!(!has(&page, "spec", "noSuchField"));
        }
    }

    #[test]
    fn node_is_read_with_the_fields_of_its_table() {
        let text = "kind: Node\nmetadata: {name: n}\nspec: {count: 2, allocatable: {cpu: 4}, gpu: {model: H100, memory: 80Gi, count: 8}, \
            labels: {a: b}, taints: [{key: k, value: v, effect: NoSchedule}]}\n";
        let read = muster_api::read_texts(&[("node.yaml", text)]);
        assert_eq!(read.expect("a Node that is right").nodes.len(), 2);
        let table = of_node();
        for field in ["allocatable", "count", "gpu", "labels", "taints"] {
            assert!(has(&table, "spec", field), "{field} is missing:\n{table}");
        }
        for field in ["model", "memory", "count", "resource"] {
            assert!(has(&table, "spec.gpu", field), "{field} is missing:\n{table}");
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
            let unnamed: Vec<&str> = table
                .lines()
                .filter(|line| {
                    line.contains("text that matches") && !line.starts_with("| `reason` |")
                })
                .collect();
            assert!(unnamed.is_empty(), "{unnamed:?}");
        }
    }
}
