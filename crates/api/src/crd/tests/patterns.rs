//! Patterns accept exactly what the manifest readers accept.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use muster_core::quantity::{Quantity, QuantityError};
use muster_core::time::{Span, Time};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde_json::json;

use crate::crd::tests::schema_of;
use crate::crd::tests::validate::wrong;
use crate::crd::values::amount::Amount;
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::stamp::Stamp;
use crate::crd::values::text::{GpuKey, Instant, Key, Label, LabelValue, Name};
use crate::yaml::instant::instant;
use crate::yaml::names::{is_key, is_label, is_name, is_value};

fn allows<T: JsonSchema>(text: &str) -> bool {
    wrong(&schema_of::<T>(), &json!(text)).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn durations(text in "([0-9]{1,3}(w|d|h|m|s|ms)){1,4}|0|[0-9wdhms. -]{0,6}") {
        let span = text.parse::<Span>();
        prop_assert_eq!(allows::<Duration>(&text), span.is_ok(), "{}", text);
        let above_zero = span.is_ok_and(|span| span > Span::ZERO);
        prop_assert_eq!(allows::<DurationAboveZero>(&text), above_zero, "{}", text);
    }

    #[test]
    fn quantities(text in r"[+-]?[0-9]{0,4}\.?[0-9]{0,3}(n|u|m|k|M|G|T|P|E|[KMGTPE]i|[eE][+-]?[0-9]{0,5}|[a-z])?") {
        let readable = match text.parse::<Quantity>() {
            Ok(_) | Err(QuantityError::TooLarge(_)) => !text.starts_with('-'),
            Err(_) => false,
        };
        prop_assert_eq!(allows::<Amount>(&text), readable, "{}", text);
    }

    #[test]
    fn names(text in "[a-zA-Z0-9./_-]{0,6}|[a-z0-9]{0,4}(\\.[a-z0-9-]{1,4}){0,2}(/[A-Za-z0-9._-]{1,4})?|[a-z]{61,65}") {
        prop_assert_eq!(allows::<Name>(&text), is_name(&text), "{}", text);
        prop_assert_eq!(allows::<Label>(&text), is_label(&text), "{}", text);
        prop_assert_eq!(allows::<Key>(&text), is_key(&text), "{}", text);
        prop_assert_eq!(allows::<LabelValue>(&text), is_value(&text), "{}", text);
        let gpu = format!("{text}/gpu");
        prop_assert_eq!(allows::<GpuKey>(&gpu), is_key(&gpu), "{}", gpu);
    }

    #[test]
    fn instants(second in 0i64..4_102_444_800, ms in 0i64..1_000, hours in -12i8..=14) {
        let at = Timestamp::from_millisecond(second * 1_000 + ms).unwrap();
        let there = at.to_zoned(TimeZone::fixed(Offset::constant(hours)));
        let texts = [
            at.to_string(),
            there.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(),
            there.strftime("%Y-%m-%d %H:%M:%S%:z").to_string(),
        ];
        for text in texts {
            prop_assert!(allows::<Instant>(&text), "{}", text);
            prop_assert!(instant(&text).is_ok(), "{}", text);
        }
        // Timestamps that Muster writes are read back.
        let stamp = Stamp(Time(at.as_millisecond()));
        let text = serde_json::to_value(stamp).unwrap();
        prop_assert_eq!(serde_json::from_value::<Stamp>(text).unwrap(), stamp);
    }
}

#[test]
fn instant_without_an_offset_is_rejected_by_both() {
    for text in ["2026-12-01T08:00:00", "2026-12-01", "tomorrow", ""] {
        assert!(!allows::<Instant>(text) && instant(text).is_err(), "{text}");
    }
}
