//! Schemas of manifests: the kinds of the CRDs in full, other kinds by their envelope.

use muster_api::crd::{GROUP, GangSpec, PoolSpec, QueueSpec, VERSION};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// One manifest, or a list of them.
pub(crate) fn manifests(types: &mut SchemaGenerator) -> Value {
    let one = json!({ "anyOf": [
        manifest::<GangSpec>("Gang", types),
        manifest::<QueueSpec>("Queue", types),
        manifest::<PoolSpec>("Pool", types),
        foreign(),
    ] });
    json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
}

fn manifest<T: JsonSchema>(kind: &str, types: &mut SchemaGenerator) -> Value {
    json!({
        "type": "object",
        "required": ["kind", "metadata", "spec"],
        "additionalProperties": false,
        "properties": {
            "apiVersion": { "const": format!("{GROUP}/{VERSION}") },
            "kind": { "const": kind },
            "metadata": metadata(),
            "spec": types.subschema_for::<T>(),
        },
    })
}

fn metadata() -> Value {
    let name = |most| json!({ "type": "string", "maxLength": most, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" });
    json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": name(253), "namespace": name(63) },
    })
}

/// Nodes, topologies, and other systems' workloads: Jobs, JobSets, PyTorchJobs and the like.
fn foreign() -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string", "pattern": "^[A-Z][A-Za-z]+$", "not": { "enum": ["Gang", "Queue", "Pool"] } },
            "metadata": { "type": "object" },
            "spec": { "type": "object" },
        },
    })
}
