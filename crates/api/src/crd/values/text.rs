//! Texts with a pattern and a length: the rules of `yaml::names` as JSON Schema.
//!
//! Every text is bounded, because an API server estimates the cost of a CEL rule from the longest possible value.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($longest:literal, $pattern:expr);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "maxLength": $longest, "pattern": $pattern })
            }
        }
    )*};
}

texts! {
    /// A name of an object: parts separated by dots.
    Name(253, NAME);
    /// A name of one part, such as that of a role.
    Label(63, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    /// The key of a label, a taint or a resource.
    Key(317, r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$");
    /// The key of a GPU resource.
    GpuKey(257, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/gpu$");
    /// The value of a label or a taint; it may be empty.
    LabelValue(63, r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$");
    /// Any text that is not empty.
    Text(253, r"^(.|\n)+$");
    /// A parameter of a ProvisioningRequest; it may be empty.
    Parameter(255, r"^(.|\n)*$");
    /// An offering: `instanceType/zone/capacityType`, of which the last may be empty.
    OfferingName(191, r"^[-A-Za-z0-9_.]*/[-A-Za-z0-9_.]*/[-A-Za-z0-9_.]*$");
    /// A date and a time with an offset from UTC.
    Instant(64, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$");
}

const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
