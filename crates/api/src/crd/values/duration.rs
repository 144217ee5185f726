//! Durations, written as in manifests: `90s`, `15m`, `1h30m`.

use std::borrow::Cow;

use muster_core::time::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The longest text of a duration, well above any that is needed.
const LONGEST: u32 = 64;

macro_rules! durations {
    ($($(#[$doc:meta])* $name:ident($pattern:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Span);

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "maxLength": LONGEST, "pattern": $pattern })
            }
        }
    )*};
}

durations! {
    /// A duration, which may be zero.
    Duration(r"^(0|([0-9]+(w|d|h|m|s|ms))+)$");
    /// A duration above zero: any number of zero components, then a component above zero, then any others.
    DurationAboveZero(r"^(0+(w|d|h|m|s|ms))*0*[1-9][0-9]*(w|d|h|m|s|ms)([0-9]+(w|d|h|m|s|ms))*$");
}
