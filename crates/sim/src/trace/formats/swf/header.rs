//! The header of a workload log: comment lines `; Key: value`.

/// The comment lines of a log, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Keys and values. Some keys, such as `Note` and `Queue`, are there many times.
    pub fields: Vec<(String, String)>,
}

impl Header {
    /// The first value of a key; the case of the key does not matter.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key))?;
        Some(value)
    }
    /// How many processors the machine had, when the log says so.
    pub fn max_procs(&self) -> Option<u32> {
        self.size("MaxProcs")
    }
    /// How many nodes the machine had, when the log says so.
    pub fn max_nodes(&self) -> Option<u32> {
        self.size("MaxNodes")
    }

    /// Logs write `-1` for unknown, and some add a remark in words after the number.
    fn size(&self, key: &str) -> Option<u32> {
        self.get(key)?.split_ascii_whitespace().next()?.parse().ok().filter(|size| *size > 0)
    }

    /// Takes in one comment, its `;` already gone. A line without a key continues the value above it: keys
    /// are single words, so a colon inside a sentence starts nothing new.
    pub(crate) fn add(&mut self, comment: &str) {
        let comment = comment.trim_start_matches(';').trim();
        match comment.split_once(':') {
            Some((key, value)) if !key.is_empty() && !key.contains(char::is_whitespace) => {
                self.fields.push((key.to_owned(), value.trim().to_owned()));
            }
            _ if comment.is_empty() => {}
            _ => match self.fields.last_mut() {
                Some((_, value)) => {
                    value.push('\n');
                    value.push_str(comment);
                }
                None => self.fields.push((String::new(), comment.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Header {
        let mut header = Header::default();
        text.lines().for_each(|line| header.add(line));
        header
    }

    #[test]
    fn keys_are_kept_and_sentences_continue_the_value_above() {
        let header = header(
            " Computer: SP2\n Note: one thing\n   and see also: this\n\n Note: another\n MaxProcs: 338",
        );
        assert_eq!(header.get("computer"), Some("SP2"));
        assert_eq!(header.get("Note"), Some("one thing\nand see also: this"));
        assert_eq!(header.fields.len(), 4);
        assert_eq!(header.max_procs(), Some(338));
    }

    #[test]
    fn unknown_size_is_none() {
        assert_eq!(header(" MaxNodes: -1").max_nodes(), None);
        assert_eq!(header(" MaxNodes: 128 (batch)").max_nodes(), Some(128));
        assert_eq!(header("").max_nodes(), None);
    }
}
