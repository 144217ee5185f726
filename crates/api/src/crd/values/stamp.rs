//! Timestamps that Muster writes itself, in the form of Kubernetes objects.

use std::borrow::Cow;

use jiff::Timestamp;
use muster_core::time::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// An instant in Unix time, written as RFC 3339 to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(pub Time);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let instant = Timestamp::from_millisecond(self.0.0).map_err(ser::Error::custom)?;
        serializer.collect_str(&instant)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        crate::yaml::instant::instant(&text).map(Self).map_err(de::Error::custom)
    }
}

impl JsonSchema for Stamp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Stamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "maxLength": 64 })
    }
}
