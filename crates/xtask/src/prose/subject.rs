//! The rule for a mannered comment line: its subject is an indefinite person.
//!
//! A comment line begins with `//`, `///` or `//!` and has text. It is a hit when it contains one of [`PERSONS`] as a whole word
//! in any case (`Nobody has asked`, `those who wait`, `whoever leads next`). Two exceptions:
//!
//! - words between backticks, which are code;
//! - `who` directly after a noun for people ([`PEOPLE`]: `the user who`, `operators, who`), on the same line or with the
//!   noun at the end of the comment line before. In good prose `who` is for people.
//!
//! The grammar of a sentence is not parsed: the words count as an object too (`waits for nobody`), because the rule for
//! comments names the thing there as well. `Whose` does not count; it has no other word in English.

/// Pronouns for a person that is not named.
const PERSONS: [&str; 10] = [
    "who",
    "whom",
    "whoever",
    "somebody",
    "someone",
    "nobody",
    "everybody",
    "everyone",
    "anybody",
    "anyone",
];

/// Nouns after which `who` is right, each also in the plural.
const PEOPLE: [&str; 15] = [
    "account",
    "administrator",
    "author",
    "caller",
    "contributor",
    "developer",
    "engineer",
    "maintainer",
    "operator",
    "owner",
    "person",
    "reader",
    "tenant",
    "user",
    "viewer",
];

/// Comment lines of a source file: how many, and the hits as (line number from one, text).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) lines: usize,
    pub(super) hits: Vec<(usize, String)>,
}

/// Counts the comment lines and the hits of one source file.
pub(super) fn count(source: &str) -> Counted {
    let mut counted = Counted::default();
    let mut before = String::new();
    for (at, line) in source.lines().enumerate() {
        let Some(text) = comment(line) else {
            before.clear();
            continue;
        };
        let words = words(text);
        counted.lines += 1;
        if is_hit(&before, &words) {
            counted.hits.push((at + 1, line.trim().to_owned()));
        }
        before = words.into_iter().next_back().unwrap_or_default();
    }
    counted
}

/// The text of a comment line, if the line is one and has text.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim().strip_prefix("//")?;
    let text = text.strip_prefix(['/', '!']).unwrap_or(text).trim();
    (!text.is_empty()).then_some(text)
}

/// The words of a comment in lower case, without those between backticks.
fn words(text: &str) -> Vec<String> {
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    let words = prose.join(" code ").to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words
        .map(|word| word.trim_end_matches("'s").to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether a line with these words is a hit; `before` is the last word of the comment line before it.
fn is_hit(before: &str, words: &[String]) -> bool {
    let previous = std::iter::once(before).chain(words.iter().map(String::as_str));
    previous.zip(words).any(|(previous, word)| match word.as_str() {
        "who" | "whom" => !is_people(previous),
        "one" => previous == "no",
        word => PERSONS.contains(&word),
    })
}

fn is_people(noun: &str) -> bool {
    noun == "people" || PEOPLE.contains(&noun.strip_suffix('s').unwrap_or(noun))
}
