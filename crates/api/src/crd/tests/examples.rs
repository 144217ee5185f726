//! Every example passes the validation of an API server.

use std::path::Path;

use serde_json::Value;

use crate::crd::tests::validate::wrong;
use crate::crd::tests::{definition, schema};
use crate::yaml::opaque;
use crate::yaml::tree::Documents;

fn documents(text: &str) -> Vec<Value> {
    Documents::new(text).map(|document| opaque::json(&document.expect("a document"))).collect()
}

/// Checks every object except nodes, which a cluster has already; returns their number.
fn check(name: &str, text: &str) -> usize {
    let mut checked = 0;
    for mut object in documents(text) {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        if kind == "Node" {
            continue;
        }
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|field, _| field == "spec");
        let definition = definition(&kind);
        assert_eq!(wrong(schema(&definition), &object), [""; 0], "{name}: {kind}");
        checked += 1;
    }
    checked
}

#[test]
fn every_example_fits_its_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = check("design.yaml", include_str!("../../../tests/api/design.yaml"));
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = std::fs::read_to_string(&path).expect("a text");
            checked += check(&path.display().to_string(), &text);
        }
    }
    assert!(checked > 30, "only {checked} objects");
}

#[test]
fn mistake_in_an_example_is_found() {
    let gang =
        "{kind: Gang, spec: {roles: [{name: w, min: 0, resources: {memory: 1GB}}], priorty: 1}}";
    let object = documents(gang).remove(0);
    let definition = definition("Gang");
    let spec = &schema(&definition)["properties"]["spec"];
    insta::assert_snapshot!(wrong(spec, &object["spec"]).join("\n"), @"
    .priorty: is unknown
    .roles[0].min: is out of range: 0
    .roles[0].resources.memory: does not match: 1GB
    ");
}
