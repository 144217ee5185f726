//! Formats figures for the page.

use std::fmt;

use muster_sim::report::Measure;

use crate::figures::grouped;

/// A coordinate, rounded to one decimal: finer than the eye, and the page stays small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Px(pub(crate) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 {
            write!(f, "{}", tenths / 10)
        } else {
            write!(f, "{:.1}", tenths as f64 / 10.0)
        }
    }
}

/// A whole number with separated thousands.
pub(crate) fn whole(number: f64) -> String {
    grouped(number.max(0.0).round() as u64)
}

/// Three significant digits with separated thousands: `1,234`, `56.7`, `8.90`.
pub(crate) fn amount(number: f64) -> String {
    match number {
        n if n >= 99.95 || n == 0.0 => whole(n),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// The same without zeros at the end: `2`, `0.5`, `1,200`.
pub(crate) fn tick(number: f64) -> String {
    let text = amount(number);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A fraction of one, in per cent.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent == 0.0 || percent >= 99.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// An amount with two decimals.
pub(crate) fn money(units: f64) -> String {
    let cents = (units.max(0.0) * 100.0).round() as u64;
    format!("{}.{:02}", grouped(cents / 100), cents % 100)
}

/// `12 s`, `3m 20s`, `1h 05m`, `2d 03h`, `120 d`: two units at most.
pub(crate) fn span(secs: f64) -> String {
    if secs > 0.0 && secs < 9.95 {
        let tenths = (secs * 10.0).round().max(1.0) / 10.0;
        return format!("{tenths} s");
    }
    let s = secs.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{}m {:02}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h {:02}m", s / 3_600, s % 3_600 / 60),
        86_400..8_640_000 => format!("{}d {:02}h", s / 86_400, s % 86_400 / 3_600),
        _ => format!("{} d", grouped(s / 86_400)),
    }
}

/// The difference of `new` from `old`, in per cent; `None` where it is undefined.
pub(crate) fn change(old: f64, new: f64) -> Option<String> {
    if old == new || old <= 0.0 {
        return None;
    }
    let percent = (new / old - 1.0) * 100.0;
    match percent {
        p if p >= 999.5 => Some(format!("\u{d7} {}", tick(new / old))),
        p if p.abs() < 0.05 => Some("\u{b1} 0 %".into()),
        // A change of nearly 100 % must not read as 100 %.
        p if p.abs() < 9.95 || (p < -99.0 && new > 0.0) => {
            Some(format!("{} {:.1} %", sign(p), p.abs()))
        }
        p => Some(format!("{} {:.0} %", sign(p), p.abs())),
    }
}

fn sign(number: f64) -> char {
    if number < 0.0 { '\u{2212}' } else { '+' }
}

/// The unit of capacity, in the plural.
pub(crate) fn units(measure: Measure) -> &'static str {
    match measure {
        Measure::Gpu => "GPUs",
        Measure::Cpu => "cores",
    }
}

/// The unit of work.
pub(crate) fn unit_hours(measure: Measure) -> &'static str {
    match measure {
        Measure::Gpu => "GPU-hours",
        Measure::Cpu => "core-hours",
    }
}

/// A word with a capital letter, for titles.
pub(crate) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The name of a user or a queue; a placeholder for an empty one.
pub(crate) fn name(name: &str) -> &str {
    if name.is_empty() { "(none)" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        assert_eq!([0.0, 0.456, 12.34, 1234.5].map(amount), ["0", "0.46", "12.3", "1,235"]);
        assert_eq!([0.5, 2.0, 1_000.0, 0.05].map(tick), ["0.5", "2", "1,000", "0.05"]);
        assert_eq!([0.0, 0.1234, 1.0].map(percent), ["0 %", "12.3 %", "100 %"]);
        assert_eq!(money(1_234.5), "1,234.50");
        assert_eq!([1.0, 1.25, -3.04].map(|px| Px(px).to_string()), ["1", "1.3", "-3"]);
    }

    #[test]
    fn spans_have_two_units_at_most() {
        let spans = [0.0, 0.25, 42.0, 200.0, 3_900.0, 183_600.0, 28_000_000.0].map(span);
        assert_eq!(spans, ["0 s", "0.3 s", "42 s", "3m 20s", "1h 05m", "2d 03h", "324 d"]);
    }

    #[test]
    fn changes_are_given_in_per_cent() {
        let shown = |old, new| change(old, new).unwrap_or_default();
        assert_eq!(shown(100.0, 65.0), "\u{2212} 35 %");
        assert_eq!(shown(100.0, 103.2), "+ 3.2 %");
        assert_eq!(shown(1_000.0, 3.0), "\u{2212} 99.7 %");
        assert_eq!(shown(1.0, 20.0), "\u{d7} 20");
        assert_eq!((change(5.0, 5.0), change(0.0, 5.0)), (None, None));
    }
}
