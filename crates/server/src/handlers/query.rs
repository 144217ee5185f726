//! Parameters in paths and queries: types with bounds, checked here and described in the OpenAPI document.

use std::borrow::Cow;
use std::fmt;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use muster_api::crd::Stamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::ApiError;

/// The query parameters of a request.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

/// Parses a query; unknown parameters are rejected where the type denies them.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    match Query::try_from_uri(uri) {
        Ok(Query(asked)) => Ok(asked),
        Err(error) => Err(ApiError::bad_request(error.body_text())),
    }
}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        query(&parts.uri).map(Self)
    }
}

/// The path parameters of a request.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(error) => Err(ApiError::bad_request(error.body_text())),
        }
    }
}

/// No query parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParams {}

/// An integer within bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number<const LEAST: u64, const MOST: u64>(pub(crate) u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Number<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_u64(Whole)?;
        match (LEAST..=MOST).contains(&number) {
            true => Ok(Self(number)),
            false => Err(D::Error::custom(format_args!("must be from {LEAST} to {MOST}"))),
        }
    }
}

/// Parses integers as JSON Schema defines them: 4.0 is an integer.
struct Whole;

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative")
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        // Every integer below is exact.
        let exact = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        let wrong = || E::invalid_value(Unexpected::Float(number), &self);
        exact.then_some(number as u64).ok_or_else(wrong)
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Number<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Number{LEAST}To{MOST}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

/// A text to match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Word(pub(crate) String);

/// Names in Kubernetes are not longer.
const LONGEST: usize = 253;

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.chars().count() {
            1..=LONGEST => Ok(Self(text)),
            _ => Err(D::Error::custom(format_args!("must be 1 to {LONGEST} characters"))),
        }
    }
}

impl JsonSchema for Word {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": LONGEST })
    }
}

/// An instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct Timestamp(pub(crate) Stamp);

/// The position of a list: the last name of the previous page, in hexadecimal to discourage clients from making one up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContinueToken(pub(crate) String);

impl ContinueToken {
    /// Encodes a position.
    pub(crate) fn write(after: &str) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(after.len() * 2);
        for byte in after.bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn read(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if text.is_empty() || text.len() % 2 == 1 || !digits {
            return None;
        }
        let pairs = (0..text.len()).step_by(2);
        let bytes = pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16));
        let name = String::from_utf8(bytes.collect::<Result<_, _>>().ok()?).ok()?;
        // Any listed name can be a position, also names that an older version accepted.
        Some(Self(name))
    }
}

impl<'de> Deserialize<'de> for ContinueToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| D::Error::custom("is not what a list was cut off with"))
    }
}

impl JsonSchema for ContinueToken {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "GoOn".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Any UTF-8 text is accepted; the ASCII part is enough for generated test values.
        json_schema!({ "type": "string", "pattern": "^([0-7][0-9a-f])+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_token_round_trips_and_malformed_ones_are_rejected() {
        let written = ContinueToken::write("research/llama-7");
        assert_eq!(ContinueToken::read(&written), Some(ContinueToken("research/llama-7".into())));
        for name in ["\u{1b}[2J", "a\n", "\0", "grün", &"x".repeat(300)] {
            assert_eq!(
                ContinueToken::read(&ContinueToken::write(name)),
                Some(ContinueToken(name.into())),
                "{name:?}"
            );
        }
        for text in ["", "6", "6g", "+6", "ff", "6É"] {
            assert_eq!(ContinueToken::read(text), None, "{text}");
        }
    }
}
