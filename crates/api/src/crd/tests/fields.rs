//! The fields of the schemas are exactly those that the manifest readers read.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::crd::gang::spec::Gang;
use crate::crd::order::spec::Order;
use crate::crd::pool::spec::Pool;
use crate::crd::queue::Queue;
use crate::crd::tests::sample::{VARIANTS, object};
use crate::crd::tests::validate::wrong;
use crate::crd::tests::{definition, schema};
use crate::crd::topology::Topology;
use crate::manifest::pool::provider::PROVIDERS;
use crate::read_texts;
use crate::yaml::fields::read_fields;
use crate::yaml::fields::read_fields::ReadFields;

/// The fields of every mapping in a schema by its path, except mappings whose keys the user chooses.
fn of_schema(schema: &Value, path: &str, found: &mut ReadFields) {
    if schema["type"] == "array" {
        return of_schema(&schema["items"], &format!("{path}[]"), found);
    }
    let chosen = schema.get("additionalProperties").is_some()
        || schema["x-kubernetes-preserve-unknown-fields"] == true;
    if schema["type"] != "object" || chosen {
        return;
    }
    let properties = schema["properties"].as_object();
    let names = properties.into_iter().flat_map(Map::keys).cloned().collect();
    found.insert(path.to_owned(), names);
    for (name, inner) in properties.into_iter().flatten() {
        of_schema(inner, &format!("{path}.{name}"), found);
    }
}

/// Objects that give every field of a kind, one object per alternative of exclusive fields.
fn samples(kind: &str) -> Vec<Value> {
    let definition = definition(kind);
    let spec = &schema(&definition)["properties"]["spec"];
    let sample = |variant| {
        let metadata = if kind == "Topology" { json!({}) } else { json!({ "name": "sample" }) };
        json!({ "kind": kind, "metadata": metadata, "spec": object(spec, variant) })
    };
    (0..VARIANTS).map(sample).collect()
}

#[test]
fn fields_of_every_schema_are_exactly_the_fields_that_are_read() {
    for kind in ["Gang", "Queue", "Pool", "Topology"] {
        read_fields::take();
        for sample in samples(kind) {
            // JSON is valid YAML.
            if let Err(findings) = read_texts(&[(kind, sample.to_string())]) {
                panic!("{findings:#?}\n{sample:#}");
            }
        }
        let mut read = read_fields::take();
        read.retain(|path, _| path.starts_with("spec"));
        let definition = definition(kind);
        let mut expected = ReadFields::new();
        of_schema(&schema(&definition)["properties"]["spec"], "spec", &mut expected);
        if kind == "Pool" {
            // The provider is read as a mapping with one key, which names the provider.
            let providers: BTreeSet<String> = PROVIDERS.iter().map(ToString::to_string).collect();
            assert_eq!(expected.remove("spec.provider"), Some(providers));
        }
        for (path, names) in &expected {
            assert_eq!(read.get(path), Some(names), "{kind}: {path}");
        }
        let more: Vec<_> = read.keys().filter(|path| !expected.contains_key(*path)).collect();
        assert!(more.is_empty(), "{kind} is read deeper than its schema goes: {more:?}");
    }
}

/// Deserializes a whole object as its type and serializes it again.
fn there_and_back<T: Serialize + DeserializeOwned>(kind: &str) {
    let definition = definition(kind);
    let schema = schema(&definition);
    for variant in 0..VARIANTS {
        let written = object(schema, variant);
        assert_eq!(wrong(schema, &written), [""; 0], "{kind}");
        let read: T =
            serde_json::from_value(written.clone()).expect("a type has what its schema has");
        let again = serde_json::to_value(&read).expect("it can be written");
        assert_eq!(again, written, "{kind}");
    }
}

#[test]
fn types_deserialize_and_serialize_what_their_schemas_allow() {
    there_and_back::<Topology>("Topology");
    there_and_back::<Queue>("Queue");
    there_and_back::<Pool>("Pool");
    there_and_back::<Gang>("Gang");
    there_and_back::<Order>("Order");
}
