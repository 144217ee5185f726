//! Kubernetes quantities: parse, print and parse again give an equal value, and comparisons hold.

use muster_core::quantity::Quantity;
use muster_core::resource::{base_units, display_amount};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "quantities",
    run,
    words: &[
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e",
        "E+",
        "e-",
        "9999",
        "-",
        "+",
        ".",
        "0",
        "00000000000000000000",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "0.000000001",
        "\n",
        "é",
        "\u{662}",
    ],
    rounds: 120_000,
};

/// Two quantities, on two lines.
fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(2, '\n');
    let first = lines.next().and_then(check);
    let second = lines.next().and_then(check);
    if let (Some(a), Some(b)) = (first, second) {
        assert_eq!(a == b, a.cmp(&b).is_eq());
        if a <= b {
            let (a, b) = (a.ceil_milli(), b.ceil_milli());
            assert!(a.is_none() || b.is_none() || a <= b, "rounding turns an order around");
        }
    }
}

fn check(text: &str) -> Option<Quantity> {
    let quantity: Quantity = text.parse().ok()?;
    let written = quantity.to_string();
    let again: Quantity =
        written.parse().unwrap_or_else(|error| panic!("{text} is written {written}: {error}"));
    assert_eq!(again, quantity, "{text} is written {written}");
    assert_eq!(again.to_string(), written, "{text} is written in two ways");
    for name in ["cpu", "memory", "nvidia.com/gpu", "pods"] {
        if let Some(units) = base_units(name, quantity) {
            let shown = display_amount(name, units);
            assert_eq!(
                base_units(name, shown),
                Some(units),
                "{text} of {name} is shown as {shown}"
            );
        }
    }
    Some(quantity)
}
