//! What containers ask for, as written.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::pod::lenient::or_default;

/// A quantity as written: text, or a bare number in templates no API server has seen. Whether it is one is asked
/// when it is needed, so that a bad one is a finding about its field and not the end of the reading.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl de::Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 8, 500m or 80Gi")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
        Ok(Amount(text.to_owned()))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
        Ok(Amount(number.to_string()))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
        Ok(Amount(number.to_string()))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
        Ok(Amount(number.to_string()))
    }
}

/// What a container, or a whole pod, asks for and is held to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct Resources {
    /// What it is promised.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Amount>,
    /// What it gets at most; also what it is promised where `requests` says nothing.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Amount>,
}

impl Resources {
    /// What is promised: the requests, and the limits of resources that have none.
    pub(crate) fn promised(&self) -> impl Iterator<Item = (&'static str, &str, &Amount)> {
        let only_limited =
            self.limits.iter().filter(|(name, _)| !self.requests.contains_key(*name));
        let requests =
            self.requests.iter().map(|(name, amount)| ("requests", name.as_str(), amount));
        requests.chain(only_limited.map(|(name, amount)| ("limits", name.as_str(), amount)))
    }
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}
