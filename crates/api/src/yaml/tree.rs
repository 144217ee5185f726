//! Parses YAML documents into trees in which every node has its position.
//!
//! Values are stored as written: the field that reads `8` determines whether it is a number. Aliases are rejected: they
//! make a small file expand to gigabytes, and no manifest needs them.

use std::borrow::Cow;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use crate::read::finding::Position;

/// The deepest nesting of collections; manifests need about ten.
const MAX_DEPTH: usize = 64;

/// One value of a document.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    /// Where it begins.
    pub(crate) at: Position,
    /// What it is.
    pub(crate) content: Content<'t>,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum Content<'t> {
    /// An empty value, `~` or `null`.
    Null,
    /// An unquoted scalar, which may be a number or a boolean.
    Plain(Cow<'t, str>),
    /// A quoted scalar, which is always text.
    Quoted(Cow<'t, str>),
    /// A sequence.
    List(Vec<Node<'t>>),
    /// A mapping, in the order written; keys may repeat.
    Map(Vec<Entry<'t>>),
}

/// One key of a mapping and its value.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    /// The key.
    pub(crate) key: Cow<'t, str>,
    /// Where the key begins.
    pub(crate) at: Position,
    /// Its value.
    pub(crate) value: Node<'t>,
}

/// Why a document cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// Not YAML.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// `*name`.
    #[error("aliases (`*name`) are not read: write the value out")]
    Alias,
    /// A key that is a list or a mapping.
    #[error("a key must be text, not a list or a mapping")]
    Key,
    /// A tag `!name` that is not one of YAML's own.
    #[error("the tag `{0}` is not read: leave it out")]
    Tag(String),
}

/// The documents of a file, one at a time, continuing after an invalid one.
pub(crate) struct Documents<'t> {
    parser: Parser<'t, StrInput<'t>>,
    over: bool,
}

impl<'t> Documents<'t> {
    /// The documents of this text.
    pub(crate) fn new(text: &'t str) -> Self {
        let mut options = granit_parser::options! {
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        options.set_emit_comments(false);
        Self { parser: Parser::new_from_str_with_options(text, options), over: false }
    }

    /// Reads events up to the end of the next document; `None` at the end of the file.
    fn next_document(&mut self) -> Result<Option<Node<'t>>, (Position, TreeError)> {
        let mut tree = Builder::default();
        while let Some(next) = self.parser.next_event() {
            let (event, span) = next.map_err(|error| syntax(&error))?;
            if matches!(event, Event::DocumentEnd) {
                let empty = Node { at: position(span.start), content: Content::Null };
                return Ok(Some(tree.root.unwrap_or(empty)));
            }
            let at = position(span.start);
            tree.take(event, at).map_err(|error| (at, error))?;
        }
        Ok(None)
    }
}

impl<'t> Iterator for Documents<'t> {
    type Item = Result<Node<'t>, (Position, TreeError)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let document = self.next_document();
        match &document {
            Ok(Some(_)) => {}
            Ok(None) => self.over = true,
            Err(_) => self.over = !self.parser.proceed_next_document().unwrap_or(false),
        }
        document.transpose()
    }
}

/// Counts the values of a text (keys, scalars, lists and mappings) without storing them. Counting stops above `most`,
/// and at the first syntax error, which the reader will report.
pub fn count_values(text: &str, most: usize) -> usize {
    let mut documents = Documents::new(text);
    let mut count = 0;
    while count <= most {
        match documents.parser.next_event() {
            Some(Ok((event, _))) => count += usize::from(is_value(&event)),
            _ => break,
        }
    }
    count
}

fn is_value(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..))
}

/// Builds a tree from events with an explicit stack, since the input determines the depth and recursion could overflow.
#[derive(Default)]
struct Builder<'t> {
    open: Vec<Open<'t>>,
    root: Option<Node<'t>>,
}

/// A collection whose end has not been seen, and the key that still lacks its value.
struct Open<'t> {
    node: Node<'t>,
    key: Option<(Cow<'t, str>, Position)>,
}

impl<'t> Builder<'t> {
    fn take(&mut self, event: Event<'t>, at: Position) -> Result<(), TreeError> {
        match event {
            Event::Scalar(text, style, _, tag) => {
                let quoted = style != ScalarStyle::Plain || is_text(tag.as_deref())?;
                self.add(Node { at, content: scalar(text, quoted) })
            }
            Event::SequenceStart(_, _, tag) => {
                is_text(tag.as_deref())?;
                self.open(Node { at, content: Content::List(Vec::new()) })
            }
            Event::MappingStart(_, _, tag) => {
                is_text(tag.as_deref())?;
                self.open(Node { at, content: Content::Map(Vec::new()) })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(done) => self.add(done.node),
                None => Ok(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(TreeError::Alias),
            _ => Ok(()),
        }
    }

    fn open(&mut self, node: Node<'t>) -> Result<(), TreeError> {
        if let Some(Open { node: Node { content: Content::Map(_), .. }, key: None }) =
            self.open.last()
        {
            return Err(TreeError::Key);
        }
        self.open.push(Open { node, key: None });
        Ok(())
    }

    fn add(&mut self, node: Node<'t>) -> Result<(), TreeError> {
        let Some(Open { node: Node { content, .. }, key }) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (content, key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some((key, at))) => {
                entries.push(Entry { key, at, value: node });
            }
            _ => *key = Some((key_text(node.content)?, node.at)),
        }
        Ok(())
    }
}

fn key_text(content: Content<'_>) -> Result<Cow<'_, str>, TreeError> {
    match content {
        Content::Plain(text) | Content::Quoted(text) => Ok(text),
        Content::Null => Ok("null".into()),
        Content::List(_) | Content::Map(_) => Err(TreeError::Key),
    }
}

fn scalar(text: Cow<'_, str>, quoted: bool) -> Content<'_> {
    match &*text {
        _ if quoted => Content::Quoted(text),
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        _ => Content::Plain(text),
    }
}

/// Whether a tag marks text; an error for an application's own tag.
fn is_text(tag: Option<&Tag>) -> Result<bool, TreeError> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() => Ok(tag.is_yaml_core_schema_tag("str")),
        Some(tag) if tag.original() != "!" => Err(TreeError::Tag(tag.original())),
        other => Ok(other.is_some()),
    }
}

fn syntax(error: &ScanError) -> (Position, TreeError) {
    (position(*error.marker()), TreeError::Syntax(error.info()))
}

fn position(marker: Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}
