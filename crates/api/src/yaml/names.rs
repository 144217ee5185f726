//! Rules for names, label keys and label values: those of Kubernetes, so that a manifest which works on a laptop also
//! works on a cluster.

use std::borrow::Cow;

/// A name of one part, such as a namespace or a role: it becomes part of host names.
pub(crate) const LABEL_RULE: &str = "must be lower-case letters, digits and `-`, begin and end with a letter or digit, and be at most 63 long";
/// A name of an object: parts separated by dots.
pub(crate) const NAME_RULE: &str = "must be lower-case letters, digits, `-` and `.`, begin and end with a letter or digit, and be at most 253 long";
/// The key of a label, a taint or a resource.
pub(crate) const KEY_RULE: &str = "must be letters, digits, `-`, `_` and `.`, at most 63 long, with an optional `domain/` before it";
/// The value of a label or a taint.
pub(crate) const VALUE_RULE: &str = "must be letters, digits, `-`, `_` and `.`, begin and end with a letter or digit, and be at most 63 long";

/// Whether it obeys [`LABEL_RULE`].
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 63 && framed(text, inner)
}

/// Whether it obeys [`NAME_RULE`].
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 253 && text.split('.').all(|part| framed(part, inner))
}

/// Why a text cannot be the name of an object; `None` if it can.
pub fn name_fault(text: &str) -> Option<&'static str> {
    (!is_name(text)).then_some(NAME_RULE)
}

/// Why a text cannot be a namespace, or another name of one part; `None` if it can.
pub fn label_fault(text: &str) -> Option<&'static str> {
    (!is_label(text)).then_some(LABEL_RULE)
}

/// Why a text cannot be the role name of another system; `None` if it can. Those may have capitals.
pub fn role_fault(text: &str) -> Option<&'static str> {
    (text.is_empty() || !is_value(text)).then_some(VALUE_RULE)
}

/// Whether it obeys [`KEY_RULE`].
pub(crate) fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_name(domain) && is_value(name) && !name.is_empty(),
        None => is_value(text) && !text.is_empty(),
    }
}

/// Whether it obeys [`VALUE_RULE`]; the empty value does.
pub(crate) fn is_value(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.is_empty() || (text.len() <= 63 && framed(text, inner))
}

/// A name that obeys [`LABEL_RULE`]: the text itself, or its valid characters with a number that tells it from other
/// texts with the same valid characters. The same text always gives the same name.
pub fn spell_label(text: &str) -> Cow<'_, str> {
    if is_label(text) { text.into() } else { spelled(text, 63, |c| c == '-').into() }
}

/// The same for the name of an object, which may have dots.
pub fn spell_name(text: &str) -> Cow<'_, str> {
    if is_name(text) { text.into() } else { spelled(text, 253, |c| matches!(c, '-' | '.')).into() }
}

/// A number that tells a text from others, as part of a name.
pub fn number_of(text: &str) -> String {
    format!("{:08x}", digest(text))
}

/// Lower-case letters, digits and separators, never two separators in a row; then the number.
fn spelled(text: &str, longest: usize, joins: impl Fn(char) -> bool) -> String {
    let tail = format!("-{}", number_of(text));
    let mut name = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_alphanumeric() || joins(c) { c } else { '-' };
        let begins = name.is_empty() || name.ends_with(['-', '.']);
        if name.len() + tail.len() < longest && (c.is_ascii_alphanumeric() || !begins) {
            name.push(c);
        }
    }
    let stem = name.trim_end_matches(['-', '.']);
    if stem.is_empty() { tail.trim_start_matches('-').to_owned() } else { format!("{stem}{tail}") }
}

/// FNV-1a: it tells names apart by chance, and does not prevent deliberate collisions.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Whether every byte is `inner`, and the first and the last are letters or digits.
fn framed(text: &str, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(|b| inner(*b))
}

#[cfg(test)]
mod tests {
    use crate::yaml::names::*;

    #[test]
    fn names_follow_the_rules_of_kubernetes() {
        for good in ["a", "gpu-pool-1", "ip-10-0-0-1.ec2.internal"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a..b", "a/b", "a b", "grün", &"a".repeat(254)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_key("nvidia.com/gpu") && is_key("cpu") && is_key("app_v2"));
        assert!(!is_key("/gpu") && !is_key("a/b/c") && !is_key("nvidia.com/"));
        assert!(is_value("") && is_value("us-east-1a") && !is_value("-x"));
    }

    #[test]
    fn any_text_gets_a_valid_name_and_no_two_the_same() {
        let long = "x".repeat(300);
        let odd = ["Worker", "worker_1", "WORKER", "", "-", "grün", "a..b", "a/b", "_a_", &long];
        let mut labels: Vec<String> = odd.iter().map(|text| spell_label(text).into()).collect();
        let mut names: Vec<String> = odd.iter().map(|text| spell_name(text).into()).collect();
        for (label, name) in labels.iter().zip(&names) {
            assert!(is_label(label), "{label}");
            assert!(is_name(name), "{name}");
        }
        assert_eq!(labels[0], "worker-de5c1a77");
        for good in ["worker", "a-b", "0"] {
            assert_eq!((&*spell_label(good), &*spell_name(good)), (good, good));
        }
        for all in [&mut labels, &mut names] {
            all.sort();
            all.dedup();
            assert_eq!(all.len(), odd.len());
        }
    }
}
