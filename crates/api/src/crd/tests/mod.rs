//! Definitions against readers, examples and the rules of API servers.

mod columns;
mod examples;
mod fields;
mod patterns;
mod sample;
mod shape;
mod validate;

use schemars::JsonSchema;
use serde_json::Value;

use super::structural::structural;
use super::{Definition, definitions};

/// The definition of one kind.
fn definition(kind: &str) -> Definition {
    definitions().into_iter().find(|definition| definition.kind == kind).expect("it is a kind")
}

/// What a definition says about an object.
fn schema(definition: &Definition) -> &Value {
    &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// What is said about one value.
fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    structural(&mut schema);
    schema
}
