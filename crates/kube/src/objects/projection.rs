//! Decodes one object through a field mask, within bounds.
//!
//! Fields that the mask drops are skipped without recursion and without allocation, however deep or large they are. Kept
//! fields are bounded in bytes, values and depth, so that no object exceeds its share of memory or breaks the decoding of
//! others.

use std::cell::{Cell, RefCell};
use std::fmt;

use kube::api::DynamicObject;
use kube::core::TypeMeta;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::objects::field_mask::Mask;
use crate::objects::metadata::is_read;

/// The deepest nesting of JSON that is kept. The deepest field that Kubernetes defines is some twenty levels down.
pub(crate) const DEPTH_MAX: usize = 64;
/// The most values of one object: a mapping with one entry takes some 600 bytes of memory for 8 of JSON.
const VALUES_MAX: usize = 8_192;
/// The largest status of an object of Muster's own: as much as an API server stores.
const STATUS_MAX: usize = 4 << 20;

/// The kept part of an object.
#[derive(Debug)]
pub(crate) struct Decoded<K> {
    pub(crate) object: K,
    /// The estimated memory in bytes, without fields that Muster itself has written.
    pub(crate) cost: usize,
}

/// Decodes the fields of an object that a mask names.
///
/// # Errors
/// With the field and what is wrong with it.
pub(crate) fn project(
    json: &str,
    mask: &Mask,
    bytes: usize,
) -> Result<Decoded<DynamicObject>, String> {
    let meter = Meter { bound: bytes, ..Meter::default() };
    let mut reader = serde_json::Deserializer::from_str(json);
    let seed = Seed { mask, meter: &meter, depth: 0 };
    let read = seed.deserialize(&mut reader).map_err(|error| meter.explain(&error))?;
    let Value::Object(mut fields) = read else { return Err("must be an object".to_owned()) };
    let metadata = fields.remove("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    let metadata = serde_json::from_value(metadata);
    let metadata = metadata.map_err(|error| format!("metadata: {error}"))?;
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let types = text("apiVersion")
        .zip(text("kind"))
        .map(|(api_version, kind)| TypeMeta { api_version, kind });
    let object = DynamicObject { types, metadata, data: Value::Object(fields) };
    Ok(Decoded { object, cost: meter.heap.get() })
}

/// Counts what has been kept so far.
#[derive(Default)]
struct Meter {
    bound: usize,
    bytes: Cell<usize>,
    values: Cell<usize>,
    heap: Cell<usize>,
    is_uncounted: Cell<bool>,
    uncounted: Cell<usize>,
    refusal: RefCell<Option<String>>,
    /// The path of the refused field, the innermost name first.
    path: RefCell<Vec<String>>,
}

impl Meter {
    /// Counts one more value with this many bytes of text, and this many bytes of memory besides.
    fn add<E: Error>(&self, text: usize, more: usize) -> Result<(), E> {
        if self.is_uncounted.get() {
            self.uncounted.set(self.uncounted.get() + text + 4);
            return match self.uncounted.get() > STATUS_MAX {
                true => self.refuse(format!("is larger than {STATUS_MAX} bytes")),
                false => Ok(()),
            };
        }
        self.heap.set(self.heap.get() + text + more);
        self.values.set(self.values.get() + 1);
        self.bytes.set(self.bytes.get() + text + 4);
        if self.bytes.get() > self.bound {
            let bound = self.bound;
            return self.refuse(format!(
                "the fields that are read are larger than {bound} bytes, which is the most that is kept of one object"
            ));
        }
        match self.values.get() > VALUES_MAX {
            true => {
                self.refuse(format!("the fields that are read hold more than {VALUES_MAX} values"))
            }
            false => Ok(()),
        }
    }

    fn refuse<T, E: Error>(&self, why: String) -> Result<T, E> {
        self.refusal.borrow_mut().get_or_insert(why);
        Err(E::custom("refused"))
    }

    /// The path of the refused field and the reason. Values are not repeated: they may be secrets.
    fn explain(&self, error: &serde_json::Error) -> String {
        let path: Vec<String> = self.path.borrow_mut().drain(..).rev().collect();
        let (line, column) = (error.line(), error.column());
        let refusal = self.refusal.borrow_mut().take();
        let refusal = refusal.unwrap_or_else(|| format!("cannot be read at {line}:{column}"));
        format!("{}: {refusal}", path.join("."))
    }
}

/// A value that is about to be read.
struct Seed<'a> {
    mask: &'a Mask,
    meter: &'a Meter,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.mask {
            Mask::Nothing => {
                let is_there = Option::<IgnoredAny>::deserialize(deserializer)?.is_some();
                Ok(if is_there { Value::Object(Map::new()) } else { Value::Null })
            }
            Mask::Text => {
                let raw = <&RawValue>::deserialize(deserializer)?;
                if is_deeper(raw.get(), DEPTH_MAX) {
                    return self.meter.refuse(format!("is nested deeper than {DEPTH_MAX} levels"));
                }
                self.meter.add(raw.get().len(), STRING)?;
                Ok(Value::String(raw.get().to_owned()))
            }
            Mask::Uncounted => {
                let was = self.meter.is_uncounted.replace(true);
                let seed = Seed { mask: &Mask::Whole, ..self };
                let read = seed.meter;
                let value = seed.deserialize(deserializer);
                read.is_uncounted.set(was);
                value
            }
            Mask::Whole | Mask::Annotations | Mask::Fields(_) => deserializer.deserialize_any(self),
        }
    }
}

/// The memory of a value besides its text: an allocation, and its entry in a list.
const STRING: usize = 48;
const SCALAR: usize = 32;
/// The memory of a B-tree node of a mapping: it holds eleven entries, of which at least half are used.
const NODE: usize = 648;
const PER_NODE: usize = 6;

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.meter.add(4, SCALAR)?;
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.meter.add(8, SCALAR)?;
        Ok(value.into())
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.meter.add(8, SCALAR)?;
        Ok(value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.meter.add(8, SCALAR)?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.meter.add(value.len(), STRING)?;
        Ok(Value::String(value.to_owned()))
    }
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.meter.add(4, SCALAR)?;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let depth = self.deeper()?;
        let mut items = Vec::new();
        loop {
            let seed = Seed { mask: self.mask, meter: self.meter, depth };
            match list.next_element_seed(seed) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => return Err(self.below(format!("[{}]", items.len()), error)),
            }
        }
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let depth = self.deeper()?;
        let mut kept = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let mask = match self.mask {
                Mask::Fields(fields) => fields.of(&name),
                Mask::Annotations => is_read(&name).then_some(&Mask::Whole),
                _ => Some(&Mask::Whole),
            };
            let Some(mask) = mask else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let node = if kept.len().is_multiple_of(PER_NODE) { NODE } else { 0 };
            self.meter.add(name.len(), STRING + node)?;
            match map.next_value_seed(Seed { mask, meter: self.meter, depth }) {
                Ok(value) => drop(kept.insert(name, value)),
                Err(error) => return Err(self.below(name, error)),
            }
        }
        Ok(Value::Object(kept))
    }
}

impl Seed<'_> {
    fn deeper<E: Error>(&self) -> Result<usize, E> {
        self.meter.add(2, SCALAR)?;
        match self.depth >= DEPTH_MAX {
            true => self.meter.refuse(format!("is nested deeper than {DEPTH_MAX} levels")),
            false => Ok(self.depth + 1),
        }
    }

    /// Adds a name to the path of the refused field; of a deep path only the ends are kept.
    fn below<E: de::Error>(&self, name: String, error: E) -> E {
        let mut path = self.meter.path.borrow_mut();
        if path.len() < 2 || self.depth < 6 {
            path.push(shortened(name));
        }
        error
    }
}

/// Shortens a field name, which a tenant may have chosen, for messages.
fn shortened(name: String) -> String {
    let clean: String = name.chars().filter(|one| !one.is_control()).take(64).collect();
    if clean.len() == name.len() { name } else { clean + "…" }
}

/// Whether well-formed JSON is nested deeper than this many levels.
fn is_deeper(json: &str, than: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > than {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::objects::projection::*;

    const BYTES: usize = 128 << 10;

    fn gang() -> Mask {
        Mask::of(&["spec", "spec.roles", "spec.roles.template.@text", "status.@uncounted"])
    }

    fn deep(levels: usize) -> String {
        format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn dropped_fields_may_be_of_any_depth_and_size() {
        let json = format!(
            r#"{{"metadata":{{"name":"a","junk":{0}}},"junk":{0},"spec":{{}}}}"#,
            deep(9_000)
        );
        let decoded = project(&json, &Mask::of(&["spec.size"]), BYTES).expect("it can be read");
        assert_eq!(decoded.object.metadata.name.as_deref(), Some("a"));
        assert_eq!(decoded.object.data, json!({"spec": {}}));
        assert!(decoded.cost < 4_096, "{}", decoded.cost);
    }

    #[test]
    fn kept_fields_are_bounded_and_the_error_names_the_field() {
        let refusal = |spec: &str| {
            let json = format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#);
            project(&json, &gang(), BYTES).expect_err("refused")
        };
        let why = refusal(&format!(r#"{{"roles":[{{"template":{}}}]}}"#, deep(200)));
        assert!(
            why.starts_with("spec.roles.[0].template: is nested deeper than 64 levels"),
            "{why}"
        );
        let why = refusal(&deep(200));
        assert!(why.starts_with("spec.a.a.a.a") && why.contains("deeper than 64"), "{why}");
        let why = refusal(&format!(r#"{{"roles":[{{"template":"{}"}}]}}"#, "x".repeat(BYTES)));
        assert!(why.contains("larger than 131072 bytes") && why.contains("template"), "{why}");
        let why = refusal(&format!("[{}1]", "{},".repeat(VALUES_MAX)));
        assert!(why.contains("more than 8192 values"), "{why}");
        let why = refusal(r#"{"secret":1e999}"#);
        assert!(why.starts_with("spec.secret: cannot be read at"), "{why}");
    }

    #[test]
    fn fields_that_muster_wrote_are_not_counted() {
        let status = "x".repeat(2 * BYTES);
        let json = format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{}},"status":{{"message":"{status}"}}}}"#
        );
        let decoded = project(&json, &gang(), BYTES).expect("it can be read");
        assert!(decoded.cost < 4_096, "{}", decoded.cost);
        assert_eq!(decoded.object.data["status"]["message"], status);
    }

    #[test]
    fn unusual_values_are_kept_unchanged() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"size":null,"size":[1,-2,3.5,true,"\u0000"],"more":7}}"#;
        let decoded =
            project(json, &Mask::of(&["spec.size.below"]), BYTES).expect("it can be read");
        assert_eq!(decoded.object.data, json!({"spec": {"size": [1, -2, 3.5, true, "\0"]}}));
        for json in ["[]", "7", "", "{\"metadata\":7}"] {
            assert!(project(json, &gang(), BYTES).is_err(), "{json}");
        }
    }
}
