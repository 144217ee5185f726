//! Tests of the definitions against the manifest readers, the examples and the rules of API servers.

mod columns;
mod examples;
mod fields;
mod patterns;
mod sample;
mod shape;
mod validate;

use schemars::JsonSchema;
use serde_json::Value;

use crate::crd::definition::{Definition, definitions};
use crate::crd::structural::structural;

/// The definition of one kind.
fn definition(kind: &str) -> Definition {
    definitions().into_iter().find(|definition| definition.kind == kind).expect("it is a kind")
}

/// The schema of the objects of a definition.
fn schema(definition: &Definition) -> &Value {
    &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// The schema of one type.
fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    structural(&mut schema);
    schema
}
