//! From a type to the CustomResourceDefinition that an API server is given.

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

/// What an API server has to know of a kind beside its fields.
///
/// Short names keep clear of those that other schedulers took long ago (`q`, `pg`), and so do plurals where they
/// can: with Volcano installed `kubectl get queues` is a question of which, and `kubectl get mq` is not.
pub trait Resource: JsonSchema {
    /// Its name in manifests.
    const KIND: &'static str;
    /// Its name in addresses.
    const PLURAL: &'static str;
    /// Its name for those who type it often.
    const SHORT: &'static str;
    /// Whether it belongs to a namespace, or to the whole cluster.
    const NAMESPACED: bool = false;
    /// What it is listed with.
    const CATEGORIES: &'static [&'static str] = &["muster"];
    /// What a list of them shows.
    const COLUMNS: &'static [Column];
}

/// One column of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Where its values are.
    pub path: &'static str,
    /// What they are.
    pub kind: &'static str,
    /// Whether only wide lists have it.
    pub wide: bool,
}

impl Column {
    /// How old an object is.
    pub const AGE: Self =
        Self { name: "Age", path: ".metadata.creationTimestamp", kind: "date", wide: false };

    /// Texts. Also instants that lie ahead: a date is shown by its age, and these have none.
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
    /// Only in wide lists.
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
    /// Its name in addresses.
    pub plural: &'static str,
    /// The whole object, as an API server reads it.
    pub object: Value,
}

/// All kinds, in the order one would make objects of them.
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
