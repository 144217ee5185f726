//! Formats figures for people.

use muster_core::time::Span;

/// A duration such as `3m20s` or `1h05m`, to two units.
pub fn span(span: Span) -> String {
    let secs = (span.0 + 500) / 1_000;
    match secs {
        0..60 => format!("{secs}s"),
        60..3_600 => format!("{}m{:02}s", secs / 60, secs % 60),
        _ => format!("{}h{:02}m", secs / 3_600, secs % 3_600 / 60),
    }
}

/// `1 node`, `12 nodes`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// A number with separated thousands: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::words::figures::*;

    #[test]
    fn figures_are_short_and_readable() {
        assert_eq!(span(Span::secs(200)), "3m20s");
        assert_eq!(span(Span::secs(3_900)), "1h05m");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(count(1, "node"), "1 node");
        assert_eq!(count(1_200, "node"), "1,200 nodes");
    }
}
