//! One value of a manifest, read with the type of its field.
//!
//! Every reader returns `None` after recording a finding with the field, its line and what was expected. Types are as
//! strict as an API server's: `name: 5` and `min: "5"` are errors.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::str::FromStr;

use muster_core::money::Money;

use crate::read::finding::{Mark, Position, Sink, shortened};
use crate::yaml::fields::Fields;
use crate::yaml::hint::{did_you_mean, listed};
use crate::yaml::opaque;
use crate::yaml::tree::{Content, Node};

/// The last step of the path to a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// The document itself.
    Root,
    /// A key of a mapping.
    Key(&'a str),
    /// A place in a list.
    Index(usize),
}

/// A value, its path, and the sink of its findings.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    node: &'a Node<'a>,
    at: Position,
    parent: Rc<str>,
    step: Step<'a>,
    sink: &'a Sink,
}

impl<'a> Value<'a> {
    /// A document.
    pub(crate) fn root(node: &'a Node<'a>, sink: &'a Sink) -> Self {
        Self { node, at: node.at, parent: "".into(), step: Step::Root, sink }
    }
    /// The value of a key. A value that is missing or is not a scalar is reported at the key.
    pub(crate) fn of_key(
        node: &'a Node<'a>,
        key: (&'a str, Position),
        parent: Rc<str>,
        sink: &'a Sink,
    ) -> Self {
        let scalar = matches!(node.content, Content::Plain(_) | Content::Quoted(_));
        let at = if scalar { node.at } else { key.1 };
        Self { node, at, parent, step: Step::Key(key.0), sink }
    }

    /// The path from the document to this value.
    pub(crate) fn path(&self) -> String {
        match self.step {
            Step::Root => "(document)".into(),
            Step::Key(key) => join(&self.parent, key),
            Step::Index(index) => format!("{}[{index}]", self.parent),
        }
    }
    /// This field, for findings recorded after its document is gone.
    pub(crate) fn mark(&self) -> Mark {
        self.sink.mark(self.at, self.path())
    }
    /// Records an error about this value.
    pub(crate) fn error(&self, reason: impl Into<String>) {
        self.sink.push(self.mark().error(reason));
    }
    /// Records a warning about this value.
    pub(crate) fn warn(&self, reason: impl Into<String>) {
        self.sink.push(self.mark().warning(reason));
    }
    /// Records that the field is valid but has no effect yet.
    pub(crate) fn not_acted_on(&self) {
        self.warn("accepted, not acted on yet");
    }

    /// Text that is not empty.
    pub(crate) fn text(&self) -> Option<&'a str> {
        let text = self.any_text()?;
        if text.is_empty() {
            self.error("must not be empty");
            return None;
        }
        Some(text)
    }
    /// Text, which may be empty.
    pub(crate) fn any_text(&self) -> Option<&'a str> {
        match &self.node.content {
            Content::Quoted(text) => Some(text),
            Content::Plain(text) => match kind_of(text) {
                "text" => Some(text),
                kind => {
                    self.error(format!(
                        "must be text, and YAML reads `{text}` as a {kind}: write \"{text}\""
                    ));
                    None
                }
            },
            other => self.expected("text", other),
        }
    }
    /// Text that obeys a rule; otherwise the rule is the reason.
    pub(crate) fn text_with(&self, obeys: fn(&str) -> bool, rule: &str) -> Option<&'a str> {
        let text = self.any_text()?;
        if !obeys(text) {
            self.error(format!("`{text}` {rule}"));
            return None;
        }
        Some(text)
    }
    /// A quantity, a duration or another type that is parsed from text, quoted or not.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, what: &str) -> Option<T> {
        match &self.node.content {
            Content::Plain(text) | Content::Quoted(text) => {
                text.parse().map_err(|error: T::Err| self.error(error.to_string())).ok()
            }
            other => self.expected(what, other),
        }
    }
    /// One of a few words.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.any_text()?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names = || choices.iter().map(|(name, _)| *name);
            let hint = did_you_mean(text, names());
            self.error(format!("`{text}` is none of {}{hint}", listed(names())));
        }
        found.map(|(_, choice)| *choice)
    }
    /// `true` or `false`.
    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.node.content {
            Content::Plain(text) if matches!(&**text, "true" | "True" | "TRUE") => Some(true),
            Content::Plain(text) if matches!(&**text, "false" | "False" | "FALSE") => Some(false),
            other => self.expected("true or false", other),
        }
    }
    /// A whole number in a range.
    pub(crate) fn whole(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let number = match &self.node.content {
            Content::Plain(text) if kind_of(text) == "number" => match text.parse::<i128>() {
                Ok(number) => number,
                Err(_) => return self.expected("a whole number", &self.node.content),
            },
            other => return self.expected("a whole number", other),
        };
        if number < i128::from(*range.start()) {
            self.error(format!("must be at least {}, not {number}", range.start()));
        } else if number > i128::from(*range.end()) {
            self.error(format!("must be at most {}, not {number}", range.end()));
        }
        i64::try_from(number).ok().filter(|number| range.contains(number))
    }
    /// A count in a range.
    pub(crate) fn count(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        self.whole(range).and_then(|number| u32::try_from(number).ok())
    }
    /// A finite number in a range.
    pub(crate) fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = match &self.node.content {
            Content::Plain(text) if kind_of(text) == "number" => text.parse::<f64>().ok(),
            other => return self.expected("a number", other),
        };
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return self.expected("a finite number", &self.node.content);
        };
        if !range.contains(&number) {
            let (low, high) = (range.start(), range.end());
            let bounds = if *high == f64::MAX {
                format!("at least {low}")
            } else {
                format!("from {low} to {high}")
            };
            self.error(format!("must be {bounds}, not {number}"));
            return None;
        }
        Some(number)
    }
    /// An amount of money, not negative.
    pub(crate) fn money(&self) -> Option<Money> {
        let money = Money::from_units(self.number(0.0..=f64::MAX)?);
        if money.is_none() {
            self.error("is too large an amount");
        }
        money
    }
    /// A list.
    pub(crate) fn list(&self) -> Option<Vec<Value<'a>>> {
        let Content::List(items) = &self.node.content else {
            return self.expected("a list", &self.node.content);
        };
        let parent: Rc<str> = self.path().into();
        let item = |(index, node): (usize, &'a Node<'a>)| Value {
            node,
            at: node.at,
            parent: parent.clone(),
            step: Step::Index(index),
            sink: self.sink,
        };
        Some(items.iter().enumerate().map(item).collect())
    }
    /// A list with at least one item.
    pub(crate) fn items(&self, what: &str) -> Option<Vec<Value<'a>>> {
        let items = self.list()?;
        if items.is_empty() {
            self.error(format!("must name at least one {what}"));
        }
        Some(items)
    }
    /// A mapping with known fields.
    pub(crate) fn fields(&self) -> Option<Fields<'a>> {
        let Content::Map(entries) = &self.node.content else {
            return self.expected("a mapping", &self.node.content);
        };
        let path = if matches!(self.step, Step::Root) { String::new() } else { self.path() };
        Some(Fields::new(entries, path.into(), self.at, self.sink))
    }
    /// A mapping with known fields, or null.
    pub(crate) fn optional_fields(&self) -> Option<Fields<'a>> {
        if matches!(self.node.content, Content::Null) { None } else { self.fields() }
    }
    /// A mapping whose keys the user chooses.
    pub(crate) fn pairs(&self) -> Option<Vec<(&'a str, Value<'a>)>> {
        Some(self.fields()?.into_pairs())
    }

    /// The value as written, of any type.
    pub(crate) fn opaque(&self) -> serde_json::Value {
        opaque::json(self.node)
    }

    fn expected<T>(&self, what: &str, got: &Content<'_>) -> Option<T> {
        let got = match got {
            Content::Null => "nothing".into(),
            Content::Plain(text) => format!("`{}`", shortened(text, 60)),
            Content::Quoted(text) => format!("the text \"{}\"", shortened(text, 60)),
            Content::List(_) => "a list".into(),
            Content::Map(_) => "a mapping".into(),
        };
        self.error(format!("must be {what}, not {got}"));
        None
    }
}

/// A path with one more key. Keys with dots or slashes are put in brackets, as Kubernetes prints them.
pub(crate) fn join(parent: &str, key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let simple = !key.is_empty() && key.bytes().all(plain);
    match (parent, simple) {
        ("", true) => key.into(),
        (_, true) => format!("{parent}.{key}"),
        (_, false) => format!("{parent}[{key}]"),
    }
}

/// The type of an unquoted scalar in YAML's core schema.
pub(crate) fn kind_of(text: &str) -> &'static str {
    if matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") {
        return "boolean";
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let begins =
        unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c: char| c.is_ascii_digit());
    let special = matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan");
    if special || (begins && text.parse::<f64>().is_ok()) { "number" } else { "text" }
}
