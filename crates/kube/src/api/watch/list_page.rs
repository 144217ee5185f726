//! Splits the body of a list into its items while it arrives, so that a page is never in memory as a whole.
//!
//! An item is passed on as the bytes between its braces and is not parsed here, so that one that cannot be decoded later is
//! one item. The envelope around the items has the resource version and the continue token.

use serde::Deserialize;

/// Where in the body the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// In the envelope, around the items.
    Envelope,
    /// Between items.
    Between,
    /// In an item, this many levels deep.
    Item(u32),
}

/// A list that is being split.
#[derive(Debug)]
pub(crate) struct Items {
    at: At,
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    item: Vec<u8>,
    envelope: Vec<u8>,
}

/// The body is not that of a list.
#[derive(Debug, thiserror::Error)]
#[error("the answer is not a list: {0}")]
pub(crate) struct NotAList(&'static str);

/// The metadata of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: String,
    #[serde(rename = "continue")]
    pub(crate) continue_token: String,
}

/// The most bytes of the envelope, which has a version and a token.
const ENVELOPE_MAX: usize = 1 << 20;

impl Items {
    pub(crate) fn new() -> Self {
        Self {
            at: At::Envelope,
            depth: 0,
            in_string: false,
            is_escaped: false,
            item: Vec::new(),
            envelope: Vec::new(),
        }
    }

    /// Reads the next bytes, and returns the items that they complete.
    ///
    /// # Errors
    /// When the bytes are not those of a list.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, NotAList> {
        let mut complete = Vec::new();
        for byte in bytes {
            match self.at {
                At::Envelope => self.envelope(*byte)?,
                At::Between => self.between(*byte)?,
                At::Item(depth) => {
                    self.item.push(*byte);
                    match self.step(*byte, depth) {
                        0 => {
                            complete.push(std::mem::take(&mut self.item));
                            self.at = At::Between;
                        }
                        depth => self.at = At::Item(depth),
                    }
                }
            }
        }
        Ok(complete)
    }

    /// The depth after one more byte.
    fn step(&mut self, byte: u8, depth: u32) -> u32 {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => return depth.saturating_add(1),
            b'}' | b']' if !self.in_string => return depth.saturating_sub(1),
            _ => {}
        }
        depth
    }

    fn envelope(&mut self, byte: u8) -> Result<(), NotAList> {
        let begins = byte == b'[' && self.depth == 1 && !self.in_string && self.is_items();
        self.depth = self.step(byte, self.depth);
        self.envelope.push(byte);
        if begins {
            self.at = At::Between;
        }
        match self.envelope.len() > ENVELOPE_MAX {
            true => Err(NotAList("there is too much beside its items")),
            false => Ok(()),
        }
    }

    /// Whether the next byte begins the value of the field `items`.
    fn is_items(&self) -> bool {
        let mut last = self.envelope.iter().rev().filter(|byte| !byte.is_ascii_whitespace());
        last.next() == Some(&b':') && last.take(7).eq(b"\"items\"".iter().rev())
    }

    fn between(&mut self, byte: u8) -> Result<(), NotAList> {
        match byte {
            b'{' => {
                self.item.push(byte);
                self.at = At::Item(1);
            }
            b']' => {
                self.depth = self.step(byte, self.depth);
                self.envelope.push(byte);
                self.at = At::Envelope;
            }
            b',' => {}
            byte if byte.is_ascii_whitespace() => {}
            _ => return Err(NotAList("an item is not an object")),
        }
        Ok(())
    }

    /// The metadata of the list, once all of it has arrived.
    ///
    /// # Errors
    /// When the body ends too early.
    pub(crate) fn end(self) -> Result<ListMeta, NotAList> {
        #[derive(Deserialize)]
        struct Envelope {
            #[serde(default)]
            metadata: ListMeta,
        }
        let read: Result<Envelope, _> = serde_json::from_slice(&self.envelope);
        read.map(|envelope| envelope.metadata).map_err(|_| NotAList("it ends too early"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::watch::list_page::*;

    fn split(body: &str, chunk: usize) -> Result<(Vec<Value>, ListMeta), NotAList> {
        let mut items = Items::new();
        let mut all = Vec::new();
        for bytes in body.as_bytes().chunks(chunk) {
            all.extend(items.feed(bytes)?);
        }
        let read = |item: &Vec<u8>| serde_json::from_slice(item).expect("JSON");
        Ok((all.iter().map(read).collect(), items.end()?))
    }

    #[test]
    fn items_are_whole_however_the_body_is_chunked() {
        let odd = [
            json!({}),
            json!({"items": [{"items": []}], "a": "\"}]{[,\\"}),
            json!({"metadata": {"name": "ü\u{1F980}\n"}, "list": [[], [{}], "]"]}),
        ];
        let list = json!({
            "apiVersion": "v1", "kind": "\"items\":[", "odd": {"items": [7]}, "items": odd,
            "metadata": {"resourceVersion": "7", "continue": "on"},
        });
        for body in [list.to_string(), serde_json::to_string_pretty(&list).expect("JSON")] {
            for chunk in 1..body.len() {
                let (items, metadata) = split(&body, chunk).expect("a list");
                assert_eq!(items, odd, "cut every {chunk} bytes");
                assert_eq!((&*metadata.resource_version, &*metadata.continue_token), ("7", "on"));
            }
        }
    }

    #[test]
    fn empty_lists_are_lists() {
        for body in [r#"{"items":null,"metadata":{}}"#, r#"{"items":[],"metadata":{}}"#, "{}"] {
            assert!(split(body, 3).expect("a list").0.is_empty(), "{body}");
        }
    }

    #[test]
    fn body_that_is_not_a_list_is_an_error() {
        for body in
            [r#"{"items":[7]}"#, r#"{"items":[{},"#, "", "[]]", r#"{"items":[{}"#, "nonsense"]
        {
            assert!(split(body, 2).is_err(), "{body}");
        }
    }

    #[test]
    fn item_of_any_depth_is_split_off() {
        let deep = format!("{}{}", "{\"a\":".repeat(5_000), "1".to_owned() + &"}".repeat(5_000));
        let body = format!("{{\"items\":[{deep},{{\"b\":2}}],\"metadata\":{{}}}}");
        let mut items = Items::new();
        let all = items.feed(body.as_bytes()).expect("a list");
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], deep.as_bytes());
    }
}
