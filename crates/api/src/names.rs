//! What may be a name, a label key and a label value: the same rules as in Kubernetes, so that a manifest
//! which works on a laptop also works on a cluster.

/// A name of one part, such as a namespace or a role: it becomes part of host names.
pub(crate) const LABEL_RULE: &str = "must be lower-case letters, digits and `-`, begin and end with a letter or digit, and be at most 63 long";
/// A name of an object: parts joined by dots.
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

/// Whether every byte is `inner`, and the first and the last are letters or digits.
fn framed(text: &str, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(|b| inner(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_kubernetes_calls_names() {
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
}
