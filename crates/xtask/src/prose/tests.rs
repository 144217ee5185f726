//! Planted comments, files and folders, each just inside or outside a bound.

use std::path::{Path, PathBuf};

use super::run::{Found, broken};
use super::tree::Entry;
use super::{layout, subject};

fn hits(source: &str) -> Vec<usize> {
    subject::count(source).hits.into_iter().map(|(line, _)| line).collect()
}

#[test]
fn indefinite_persons_are_hits_in_every_kind_of_comment() {
    for source in [
        "// Nobody has asked for it.",
        "/// Keeps those who wait.",
        "    //! whoever leads next",
        "/// That is somebody's order.",
        "// a node that no one uses",
        "/// by whom it was made",
        "/// (anyone may read it)",
    ] {
        assert_eq!(hits(source), [1], "{source}");
    }
}

#[test]
fn code_people_and_other_words_are_no_hits() {
    for source in [
        "let who = nobody(); // trailing comments are not comment lines",
        "/// The file is owned by `nobody`.",
        "/// The user who sent it, and operators, who may read it.",
        "/// The request of a user\n/// who is not known.",
        "// whose turn it is; no other one, not one",
        "let text = \"nobody\";",
    ] {
        assert_eq!(hits(source), [0; 0], "{source}");
    }
}

#[test]
fn people_before_code_do_not_excuse_the_next_comment() {
    assert_eq!(hits("/// a user\nfn x() {}\n/// who waits"), [3]);
    assert_eq!(hits("/// a user of `x` who waits"), [1]);
}

#[test]
fn comment_lines_without_text_are_not_counted() {
    assert_eq!(subject::count("//! A.\n//!\n//!   \n\nfn x() {} // b\n/// C.\n// D.").lines, 3);
}

#[test]
fn crate_fails_at_two_percent_and_not_below() {
    let found = |lines, hits| Found {
        name: "x".to_owned(),
        lines,
        hits: vec![String::new(); hits],
        broken: Vec::new(),
    };
    assert_eq!(broken(&[found(101, 2)]), [""; 0]);
    let sentences = broken(&[found(100, 2), found(0, 0)]);
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].starts_with("crates/x: 2 of 100 comment lines (2.0%)"), "{sentences:?}");
}

#[test]
fn files_over_600_lines_and_names_over_70_characters_break_the_bounds() {
    let of = |source: &str| layout::of_file(Path::new("a.rs"), source);
    assert_eq!(of(&"\n".repeat(600)), [""; 0]);
    assert_eq!(of(&"\n".repeat(601)), ["a.rs: 601 lines, more than 600"]);
    let (short, long) = ("x".repeat(70), "x".repeat(71));
    assert_eq!(of(&format!("fn {short}() {{\n// fn {long}()\nlet a = \"fn {long}\";")), [""; 0]);
    for before in ["", "async ", "pub(crate) async ", "    pub const unsafe extern \"C\" "] {
        let sentences = of(&format!("{before}fn {long}<T>(a: T) {{"));
        assert_eq!(sentences, [format!("a.rs:1: a name of 71 characters, more than 70: {long}")]);
    }
}

#[test]
fn vague_names_and_crowded_folders_break_the_bounds() {
    let entry = |path: &str, is_folder| Entry { path: PathBuf::from(path), is_folder };
    let mut entries = vec![
        entry("crates/a/src/uncommon.rs", false),
        entry("crates/a/src/common", true),
        entry("crates/a/tests/utils.rs", false),
    ];
    let vague = [
        "crates/a/src/common: the name does not say what is inside",
        "crates/a/tests/utils.rs: the name does not say what is inside",
    ];
    assert_eq!(layout::of_entries(&entries), vague);
    let fill = |folder: &str, entries: &mut Vec<Entry>, many: usize| {
        entries.extend((0..many).map(|n| entry(&format!("{folder}/{n}.rs"), false)));
    };
    fill("crates/b/src", &mut entries, 16);
    fill("crates/b/tests/it", &mut entries, 17);
    assert_eq!(layout::of_entries(&entries), vague);
    fill("crates/b/src/deep", &mut entries, 17);
    let crowded = "crates/b/src/deep: 17 entries, more than 16";
    assert_eq!(layout::of_entries(&entries), [vague[0], vague[1], crowded]);
}
