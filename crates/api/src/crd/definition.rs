//! Generates the CustomResourceDefinition of each kind from its Rust type.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::crd::gang::spec::Gang;
use crate::crd::order::spec::Order;
use crate::crd::pool::spec::Pool;
use crate::crd::queue::Queue;
use crate::crd::structural::structural;
use crate::crd::topology::Topology;

/// The API group of every kind.
pub const GROUP: &str = "muster.sh";
/// The only version so far.
pub const VERSION: &str = "v1alpha1";

/// What a CustomResourceDefinition states about a kind beside its fields.
///
/// Short names avoid those of other schedulers (`q`, `pg`), and so do plurals where they can: with Volcano installed
/// `kubectl get queues` is ambiguous and `kubectl get mq` is not.
pub trait Resource: JsonSchema {
    /// Its kind in manifests.
    const KIND: &'static str;
    /// Its plural name in URLs.
    const PLURAL: &'static str;
    /// Its short name for kubectl.
    const SHORT: &'static str;
    /// Whether it belongs to a namespace, or to the whole cluster.
    const NAMESPACED: bool = false;
    /// The categories it is listed in, as in `kubectl get muster`.
    const CATEGORIES: &'static [&'static str] = &["muster"];
    /// The columns that `kubectl get` prints.
    const COLUMNS: &'static [Column];
}

/// One column of `kubectl get`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// The JSON path of its values.
    pub path: &'static str,
    /// The type of its values.
    pub kind: &'static str,
    /// Whether only `-o wide` prints it.
    pub wide: bool,
}

impl Column {
    /// The age of the object.
    pub const AGE: Self =
        Self { name: "Age", path: ".metadata.creationTimestamp", kind: "date", wide: false };

    /// Text. Also instants in the future: kubectl prints a date as its age, and these have none.
    pub const fn text(name: &'static str, path: &'static str) -> Self {
        Self { name, path, kind: "string", wide: false }
    }
    /// Whole numbers.
    pub const fn number(name: &'static str, path: &'static str) -> Self {
        Self { name, path, kind: "integer", wide: false }
    }
    /// Numbers with a fraction.
    pub const fn fraction(name: &'static str, path: &'static str) -> Self {
        Self { name, path, kind: "number", wide: false }
    }
    /// Printed only with `-o wide`.
    pub const fn when_wide(self) -> Self {
        Self { wide: true, ..self }
    }

    fn json(&self) -> Value {
        let mut column = json!({ "name": self.name, "jsonPath": self.path, "type": self.kind });
        if self.wide {
            column["priority"] = json!(1);
        }
        column
    }
}

/// A CustomResourceDefinition.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The kind it defines.
    pub kind: &'static str,
    /// Its plural name in URLs.
    pub plural: &'static str,
    /// The whole object, as an API server reads it.
    pub object: Value,
}

/// All kinds, in the order in which their objects would be created.
pub fn definitions() -> Vec<Definition> {
    vec![of::<Topology>(), of::<Queue>(), of::<Pool>(), of::<Gang>(), of::<Order>()]
}

fn of<R: Resource>() -> Definition {
    let columns: Vec<Value> = R::COLUMNS.iter().map(Column::json).collect();
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", R::PLURAL) },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": R::KIND,
                "listKind": format!("{}List", R::KIND),
                "plural": R::PLURAL,
                "singular": R::KIND.to_lowercase(),
                "shortNames": [R::SHORT],
                "categories": R::CATEGORIES,
            },
            "scope": if R::NAMESPACED { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema::<R>() },
            }],
        },
    });
    Definition { kind: R::KIND, plural: R::PLURAL, object }
}

fn schema<R: Resource>() -> Value {
    // A structural schema has no references.
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<R>().to_value();
    structural(&mut schema);
    schema
}
