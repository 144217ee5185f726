//! Finds installed CustomResourceDefinitions that are older than this controller.
//!
//! The API server silently drops fields that a CRD does not have: a controller that is newer than the CRDs in its cluster
//! would lose state that it writes. The served schemas are read from the OpenAPI document, which every client may read.

use kube::Client;
use muster_api::crd::{Definition, GROUP, VERSION, definitions};
use serde_json::Value;

/// The most missing fields that a message names; one is enough to see that the CRD must be updated.
const NAMED_MAX: usize = 5;

/// A CRD that is older than this controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OutdatedCrd {
    /// The name of the CustomResourceDefinition.
    pub(crate) name: String,
    /// Some of the fields that it does not have.
    pub(crate) missing: Vec<String>,
}

impl OutdatedCrd {
    /// The message, with the command that updates the CRD.
    pub(crate) fn message(&self) -> String {
        let missing = self.missing.join(", ");
        format!(
            "the CustomResourceDefinition is older than this controller, and the API server drops {missing}: \
             `muster crds | kubectl apply --server-side -f -` of this version brings it up to date"
        )
    }
}

/// Installed CRDs that are older than this controller.
///
/// # Errors
/// When the API server does not return its OpenAPI document.
pub(crate) async fn outdated_crds(client: &Client) -> kube::Result<Vec<OutdatedCrd>> {
    let path = format!("/openapi/v3/apis/{GROUP}/{VERSION}");
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let document: Value = client.request(request).await?;
    Ok(compare(&definitions(), &document))
}

fn compare(expected: &[Definition], document: &Value) -> Vec<OutdatedCrd> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let served = |kind: &str| {
        let ends = |name: &&String| name.rsplit('.').next() == Some(kind);
        schemas?.iter().find(|(name, _)| ends(name)).map(|(_, schema)| schema)
    };
    let compared = expected.iter().filter_map(|definition| {
        let schema = definition.object.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
        let mut missing = Vec::new();
        add_missing(schema, served(definition.kind)?, "", &mut missing);
        let name = format!("{}.{GROUP}", definition.plural);
        (!missing.is_empty()).then_some(OutdatedCrd { name, missing })
    });
    compared.collect()
}

/// Adds the fields of the expected schema that the served schema does not have.
fn add_missing(expected: &Value, served: &Value, path: &str, missing: &mut Vec<String>) {
    let fields = expected.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // The API server defines these fields itself.
        if matches!(&*path, "apiVersion" | "kind" | "metadata") || missing.len() >= NAMED_MAX {
            continue;
        }
        match served.pointer("/properties").and_then(|all| all.get(name)) {
            Some(served) => add_missing(field, served, &path, missing),
            None => missing.push(path),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let (Some(expected), Some(served)) = (expected.get(inner), served.get(inner)) {
            add_missing(expected, served, path, missing);
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
    fn crds_of_this_version_lack_no_field() {
        assert_eq!(compare(&definitions(), &document(|_| {})), []);
        // An empty document is no evidence of an outdated CRD.
        assert_eq!(compare(&definitions(), &json!({})), []);
    }

    #[test]
    fn field_missing_in_a_crd_is_named() {
        let document = document(|gang| {
            let placement = "/properties/status/properties/placement/items/properties";
            let fields = gang.pointer_mut(placement).and_then(Value::as_object_mut);
            fields.expect("fields").remove("nodes");
        });
        let outdated = compare(&definitions(), &document);
        let missing = vec!["status.placement.nodes".to_owned()];
        assert_eq!(outdated, [OutdatedCrd { name: "gangs.muster.sh".to_owned(), missing }]);
        let message = outdated[0].message();
        assert!(message.contains("drops status.placement.nodes"), "{message}");
    }
}
