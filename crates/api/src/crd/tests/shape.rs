//! Schemas are structural, and every list and text in them is bounded.

use serde_json::Value;

use crate::crd::definition::definitions;
use crate::crd::tests::schema;

/// The schema keywords that an API server accepts, as far as they are used here.
const KEYWORDS: [&str; 21] = [
    "additionalProperties",
    "default",
    "description",
    "enum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
];
const EXTENSIONS: [&str; 3] = [
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
];

fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(inner, &format!("{path}.{name}"), visit);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(inner) {
            walk(inner, &format!("{path}[]"), visit);
        }
    }
}

#[test]
fn schemas_use_only_keywords_that_api_servers_accept() {
    for definition in definitions() {
        walk(schema(&definition), definition.kind, &mut |path, schema| {
            let fields = schema.as_object().expect("a schema");
            for keyword in fields.keys().map(String::as_str) {
                let known = KEYWORDS.contains(&keyword) || EXTENSIONS.contains(&keyword);
                assert!(known, "{path}: {keyword}");
            }
            let typed = schema["type"].is_string();
            let int_or_string = schema["x-kubernetes-int-or-string"] == true;
            assert!(typed != int_or_string, "{path} has one type");
            let format = schema["format"].as_str();
            let formats = [None, Some("int32"), Some("int64"), Some("double"), Some("date-time")];
            assert!(formats.contains(&format), "{path}: {format:?}");
        });
    }
}

#[test]
fn every_list_of_every_spec_is_bounded() {
    for definition in definitions() {
        walk(schema(&definition), definition.kind, &mut |path, schema| {
            if schema["type"] == "array" {
                assert!(schema["maxItems"].is_u64(), "{path}");
                assert!(schema["x-kubernetes-list-type"].is_string(), "{path}");
            }
        });
    }
}

#[test]
fn every_field_has_a_description() {
    for definition in definitions() {
        walk(schema(&definition), definition.kind, &mut |path, schema| {
            let described = schema["description"].as_str().is_some_and(|text| text.ends_with('.'));
            assert!(described || path.ends_with("[]"), "{path}");
        });
    }
}

#[test]
fn names_do_not_clash() {
    let names: Vec<String> = definitions()
        .iter()
        .map(|definition| {
            let names = &definition.object["spec"]["names"];
            let scope = &definition.object["spec"]["scope"];
            format!("{} {} {} {scope}", names["kind"], names["plural"], names["shortNames"])
        })
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    "Topology" "topologies" ["mtopo"] "Cluster"
    "Queue" "queues" ["mq"] "Cluster"
    "Pool" "pools" ["mpool"] "Cluster"
    "Gang" "gangs" ["gg"] "Namespaced"
    "Order" "orders" ["mo"] "Cluster"
    "#);
}
