//! Reading ends with findings or manifests for any input, never with a panic.

use std::panic::catch_unwind;

use muster_api::read_texts;
use proptest::prelude::*;

const GOOD: &str = include_str!("design.yaml");

/// Findings must point into the text.
fn check(text: &[u8]) {
    let result = read_texts(&[("a.yaml", text)]);
    let findings = result.map_or_else(|findings| findings, |manifests| manifests.warnings);
    let lines = text.split(|byte| *byte == b'\n').count();
    for finding in findings {
        assert!(finding.line >= 1 && finding.line <= lines + 1, "{finding}");
        assert!(!finding.reason.is_empty() && !finding.field.is_empty(), "{finding}");
    }
}

#[test]
fn every_prefix_of_a_valid_manifest_is_read_without_a_panic() {
    for end in 0..GOOD.len() {
        assert!(catch_unwind(|| check(&GOOD.as_bytes()[..end])).is_ok(), "prefix of {end} bytes");
    }
}

/// A careless edit: a cut, a repetition, or foreign characters at some position.
fn mutation() -> impl Strategy<Value = (usize, usize, String)> {
    let piece = prop_oneof![
        "[-:{}\\[\\],&*!|>'\"%@`#?~ \n\t0-9a-z]{0,6}",
        prop::sample::select(vec![
            "-1",
            "0",
            "null",
            "~",
            "1e400",
            ".nan",
            "99999999999999999999",
            "{}",
            "[]",
            "\"\"",
            "---",
            "...",
            "*a",
            "&a",
            "!!str",
            "!x",
            "<<: ",
            "\u{feff}",
            "\r",
            "\u{85}",
            "0x10",
            "1500m",
            "1Ei",
            "userLimit: {cpu: 1}",
            "guaranteed: {nvidia.com/gpu: 9E}",
            "limit: {nvidia.com/gpu: 0}",
            "halfLife: 0s",
            "checkpoint: {}",
            "efficiency: 0.5",
            "evictionsPerHour: -1",
            "deadline: 2026-12-01T08:00:00",
            "9999-12-31T23:59:59Z",
            "-009999-01-01T00:00:00Z",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    (0..GOOD.len(), 0..12usize, piece)
}

proptest! {
    // Eight times the default, so that PROPTEST_CASES still scales it.
    #![proptest_config(ProptestConfig {
        cases: 8 * ProptestConfig::default().cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn mutated_manifests_never_panic(mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut text = GOOD.as_bytes().to_vec();
        for (start, len, piece) in mutations {
            let start = start.min(text.len());
            let end = (start + len).min(text.len());
            text.splice(start..end, piece.bytes());
        }
        check(&text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        check(text.as_bytes());
    }
}
