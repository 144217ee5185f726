//! Definitions against readers, examples and the rules of API servers.

pub(crate) mod columns;
pub(crate) mod examples;
pub(crate) mod fields;
pub(crate) mod patterns;
pub(crate) mod sample;
pub(crate) mod shape;
pub(crate) mod validate;

use schemars::JsonSchema;
use serde_json::Value;

use crate::crd::definition::{Definition, definitions};
use crate::crd::structural::structural;

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
