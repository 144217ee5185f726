//! Every printed column shows an existing field of the right type.

use serde_json::Value;

use crate::crd::definition::definitions;
use crate::crd::tests::schema;

/// The schema of the value at a path.
fn at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('.').skip(1).fold(schema, |here, step| &here["properties"][step])
}

#[test]
fn every_column_shows_a_field_of_its_type() {
    for definition in definitions() {
        let version = &definition.object["spec"]["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().expect("columns");
        for column in columns {
            let path = column["jsonPath"].as_str().expect("a path");
            if path.starts_with(".metadata.") {
                continue;
            }
            let field = at(schema(&definition), path);
            // A quantity is printed as written.
            let quantity = field["x-kubernetes-int-or-string"] == true;
            let kind = if quantity { "string" } else { field["type"].as_str().unwrap_or_default() };
            assert_eq!(kind, column["type"], "{} {path}", definition.kind);
        }
        let age = columns.last().expect("columns");
        assert_eq!(age["name"], "Age", "{}", definition.kind);
    }
}

#[test]
fn columns_of_every_kind() {
    let headings = |definition: &crate::crd::definition::Definition| {
        let columns = &definition.object["spec"]["versions"][0]["additionalPrinterColumns"];
        let heading = |column: &Value| {
            let name = column["name"].as_str().unwrap_or_default();
            if column["priority"] == 1 { format!("[{name}]") } else { name.to_owned() }
        };
        columns.as_array().into_iter().flatten().map(heading).collect::<Vec<_>>().join(" ")
    };
    let lists: Vec<String> = definitions()
        .iter()
        .map(|definition| format!("{}: {}", definition.plural, headings(definition)))
        .collect();
    insta::assert_snapshot!(lists.join("\n"), @"
    topologies: Age
    queues: Parent Weight Held [Running] Waiting Age
    pools: Tier Nodes [Ready] GPUs Spend [Target] Age
    gangs: Queue Phase Ready Nodes Why [Starts] [Message] Age
    orders: [Namespace] Gang Phase Ready Deadline Age
    ");
}
