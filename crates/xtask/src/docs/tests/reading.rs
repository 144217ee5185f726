//! What only tests read of a page: headings and fenced blocks.

use super::super::page::{Page, ticks};

/// A fenced block: what it is marked as, its first line, and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) mark: String,
    pub(super) text: String,
}

impl Page {
    /// Ids of its headings, as mdBook and GitHub make them.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (_, line) in self.prose() {
            let title = line.trim_start_matches('#');
            if title.len() == line.len() || !title.starts_with(' ') {
                continue;
            }
            let id = id_of(title.trim());
            let same = found.iter().filter(|one| **one == id || is_numbered(one, &id)).count();
            found.push(if same == 0 { id } else { format!("{id}-{same}") });
        }
        found
    }

    /// Every fenced block, without the indentation of its fence.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut open: Option<(usize, usize)> = None;
        for (at, line) in self.text.lines().enumerate() {
            match (open, ticks(line)) {
                (None, Some(ticks)) => {
                    let indent = line.len() - line.trim_start().len();
                    open = Some((ticks, indent));
                    let mark = line.trim_start().trim_start_matches('`').trim().to_owned();
                    blocks.push(Block { line: at + 1, mark, text: String::new() });
                }
                (Some((opened, _)), Some(ticks)) if ticks >= opened => open = None,
                (Some((_, indent)), _) => {
                    let block = blocks.last_mut().expect("an open block");
                    block.text.push_str(line.get(indent..).unwrap_or_default());
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        blocks
    }
}

/// The id of a heading: letters, digits, `-` and `_` in lower case, a hyphen for each space.
fn id_of(title: &str) -> String {
    let mut title = title.to_owned();
    // Of a link in a heading only its text counts.
    while let Some((open, close)) =
        title.find("](").and_then(|at| Some((at, at + title[at..].find(')')?)))
    {
        title.replace_range(open..=close, "");
    }
    title
        .to_lowercase()
        .chars()
        .filter_map(|one| match one {
            one if one.is_alphanumeric() || one == '-' || one == '_' => Some(one),
            ' ' => Some('-'),
            _ => None,
        })
        .collect()
}

fn is_numbered(id: &str, base: &str) -> bool {
    id.strip_prefix(base)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|rest| rest.parse::<u32>().is_ok())
}

fn page_of(text: &str) -> Page {
    Page { path: "docs/x.md".into(), text: text.into() }
}

#[test]
fn ids_of_headings_are_those_of_mdbook() {
    let page = page_of(
        "# Exit codes\n## `muster why`, in short\n## Exit codes\n```\n# no heading\n```\n### [Two](a.md) words\n",
    );
    assert_eq!(page.anchors(), ["exit-codes", "muster-why-in-short", "exit-codes-1", "two-words"]);
}

#[test]
fn blocks_lose_the_indentation_of_their_fence() {
    let page =
        page_of("1. First\n\n   ```sh run\n   muster check x\n   ```\n\n```yaml\na: 1\n```\n");
    let blocks: Vec<_> =
        page.blocks().into_iter().map(|one| (one.line, one.mark, one.text)).collect();
    assert_eq!(
        blocks,
        [(3, "sh run".into(), "muster check x\n".into()), (7, "yaml".into(), "a: 1\n".to_owned())]
    );
}
