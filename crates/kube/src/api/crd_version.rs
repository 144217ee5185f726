//! Compares Muster's CustomResourceDefinitions with what this controller writes.
//!
//! An API server drops fields that a definition does not have, without a word: a controller that is newer than the
//! definitions in its cluster would lose what it writes down. What the server has is read from its OpenAPI document, which
//! every client may read.

use kube::Client;
use muster_api::crd::{Definition, GROUP, VERSION, definitions};
use serde_json::Value;

/// Fields that are named, at most; one is enough to know what to do.
const NAMED: usize = 5;

/// A definition that is older than this controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Older {
    /// The name of the CustomResourceDefinition.
    pub(crate) name: String,
    /// Some of the fields that it does not have.
    pub(crate) lacks: Vec<String>,
}

impl Older {
    /// What to do about it.
    pub(crate) fn words(&self) -> String {
        let lacks = self.lacks.join(", ");
        format!(
            "the CustomResourceDefinition is older than this controller, and the API server drops {lacks}: \
             `muster crds | kubectl apply --server-side -f -` of this version brings it up to date"
        )
    }
}

/// Definitions in the cluster that are older than this controller.
///
/// # Errors
/// When the server does not say what it has.
pub(crate) async fn older(client: &Client) -> kube::Result<Vec<Older>> {
    let path = format!("/openapi/v3/apis/{GROUP}/{VERSION}");
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let document: Value = client.request(request).await?;
    Ok(compare(&definitions(), &document))
}

fn compare(expected: &[Definition], document: &Value) -> Vec<Older> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let served = |kind: &str| {
        let ends = |name: &&String| name.rsplit('.').next() == Some(kind);
        schemas?.iter().find(|(name, _)| ends(name)).map(|(_, schema)| schema)
    };
    let compared = expected.iter().filter_map(|definition| {
        let schema = definition.object.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
        let mut lacks = Vec::new();
        lacking(schema, served(definition.kind)?, "", &mut lacks);
        let name = format!("{}.{GROUP}", definition.plural);
        (!lacks.is_empty()).then_some(Older { name, lacks })
    });
    compared.collect()
}

/// Fields of a schema that another does not have.
fn lacking(expected: &Value, served: &Value, path: &str, lacks: &mut Vec<String>) {
    let fields = expected.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // What every object has is not Muster's.
        if matches!(&*path, "apiVersion" | "kind" | "metadata") || lacks.len() >= NAMED {
            continue;
        }
        match served.pointer("/properties").and_then(|all| all.get(name)) {
            Some(served) => lacking(field, served, &path, lacks),
            None => lacks.push(path),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let (Some(expected), Some(served)) = (expected.get(inner), served.get(inner)) {
            lacking(expected, served, path, lacks);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use crate::api::crd_version::*;

    fn document(change: impl Fn(&mut Value)) -> Value {
        let one = |definition: &Definition| {
            let schema = definition.object.pointer("/spec/versions/0/schema/openAPIV3Schema");
            let mut schema = schema.expect("a schema").clone();
            if definition.kind == "Gang" {
                change(&mut schema);
            }
            (format!("sh.muster.v1alpha1.{}", definition.kind), schema)
        };
        let schemas: Map<String, Value> = definitions().iter().map(one).collect();
        json!({"components": {"schemas": schemas}})
    }

    #[test]
    fn definitions_of_this_version_lack_nothing() {
        assert_eq!(compare(&definitions(), &document(|_| {})), []);
        // A server that says nothing has said nothing against them.
        assert_eq!(compare(&definitions(), &json!({})), []);
    }

    #[test]
    fn a_field_that_a_definition_does_not_have_is_named() {
        let document = document(|gang| {
            let placement = "/properties/status/properties/placement/items/properties";
            let fields = gang.pointer_mut(placement).and_then(Value::as_object_mut);
            fields.expect("fields").remove("nodes");
        });
        let older = compare(&definitions(), &document);
        let lacks = vec!["status.placement.nodes".to_owned()];
        assert_eq!(older, [Older { name: "gangs.muster.sh".to_owned(), lacks }]);
        assert!(older[0].words().contains("drops status.placement.nodes"), "{}", older[0].words());
    }
}
