//! Writes JSON values as readable YAML: blocks, and quotes only where they are needed.

use serde_json::Value;

/// One document, with a line end.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// A value that begins on its own line, indented by `depth`.
fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                indent(depth, out);
                out.push_str(&scalar(key));
                out.push(':');
                after_key(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(depth, out);
                out.push('-');
                after_dash(item, depth, out);
            }
        }
        other => {
            indent(depth, out);
            out.push_str(&inline(other));
            out.push('\n');
        }
    }
}

/// Lists are written below their key without indentation, mappings with one step of it, scalars beside the key.
fn after_key(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(value, depth + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, depth, out);
        }
        other => {
            out.push(' ');
            out.push_str(&inline(other));
            out.push('\n');
        }
    }
}

/// The first line of an item is written beside its dash.
fn after_dash(item: &Value, depth: usize, out: &mut String) {
    let mut text = String::new();
    block(item, depth + 2, &mut text);
    out.push(' ');
    out.push_str(&text[depth + 2..]);
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth));
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text without quotes where it is unambiguous. A quoted one is written as in JSON, which every YAML parser accepts.
fn scalar(text: &str) -> String {
    let begins =
        text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '$' | '/'));
    let ends = text.ends_with(|c: char| c != ':' && c != ' ');
    let plain = |c: char| c == ' ' || c.is_ascii_graphic();
    let quiet = !text.contains(": ") && !text.contains(" #") && text.chars().all(plain);
    let number = text.parse::<f64>().is_ok() || text.starts_with('.') && text.len() < 6;
    if begins && ends && quiet && !number && !is_word(text) {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

/// Whether a YAML parser may read it as a boolean or null.
fn is_word(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mappings_lists_and_quotes() {
        let value = json!({
            "empty": {}, "list": [1, [true, null], {"a": "b", "c": []}], "text": "it is: quoted",
        });
        let expected = "\
empty: {}
list:
- 1
- - true
  - null
- a: b
  c: []
text: \"it is: quoted\"
";
        assert_eq!(document(&value), expected);
    }

    #[test]
    fn ambiguous_scalars_are_quoted() {
        for plain in
            ["Gang", "a b, c.", ".spec.queue", "x-kubernetes", "int64", "self.max >= self.min"]
        {
            assert_eq!(scalar(plain), plain);
        }
        for odd in [
            "", "true", "No", "8", "1e3", ".inf", "- a", "a: b", "a:", "a #b", "!x", "{a}", "^a$",
            "ü", "a\nb", " a",
        ] {
            assert_eq!(scalar(odd), json!(odd).to_string());
        }
    }
}
