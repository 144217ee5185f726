//! Sections of pages that are written from the product, between two marks.

use std::path::Path;
use std::{fmt, fs};

use anyhow::Context;
use muster_api::crd::{self, Definition};

use super::{fields, help};

/// What a section is written from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// Names and columns of a kind.
    Names(&'static str),
    /// All fields of a kind.
    Fields(&'static str),
    /// All fields of a manifest's Node.
    NodeFields,
    /// The help of every subcommand of `muster`.
    Commands,
    /// The help of `muster-controller`.
    Controller,
    /// The values of the chart.
    Values,
}

/// Every generated section: its page and its source.
pub(super) const SECTIONS: [(&str, Source); 14] = [
    ("docs/reference/gang.md", Source::Names("Gang")),
    ("docs/reference/gang.md", Source::Fields("Gang")),
    ("docs/reference/queue.md", Source::Names("Queue")),
    ("docs/reference/queue.md", Source::Fields("Queue")),
    ("docs/reference/pool.md", Source::Names("Pool")),
    ("docs/reference/pool.md", Source::Fields("Pool")),
    ("docs/reference/topology.md", Source::Names("Topology")),
    ("docs/reference/topology.md", Source::Fields("Topology")),
    ("docs/reference/order.md", Source::Names("Order")),
    ("docs/reference/order.md", Source::Fields("Order")),
    ("docs/reference/node.md", Source::NodeFields),
    ("docs/reference/commands.md", Source::Commands),
    ("docs/reference/controller.md", Source::Controller),
    ("docs/reference/chart.md", Source::Values),
];

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(kind) => write!(f, "names of {kind}"),
            Self::Fields(kind) => write!(f, "fields of {kind}"),
            Self::NodeFields => f.write_str("fields of Node"),
            Self::Commands => f.write_str("help of muster"),
            Self::Controller => f.write_str("help of muster-controller"),
            Self::Values => f.write_str("values of the chart"),
        }
    }
}

impl Source {
    fn begin(self) -> String {
        format!("<!-- {self}: written by `make reference` -->\n")
    }

    fn end(self) -> String {
        format!("<!-- end of {self} -->\n")
    }

    fn text(self, workspace: &Path) -> anyhow::Result<String> {
        match self {
            Self::Names(kind) => Ok(fields::names_of(&definition(kind)?)),
            Self::Fields(kind) => Ok(fields::of(&definition(kind)?)),
            Self::NodeFields => Ok(fields::of_node()),
            Self::Commands => help::commands(),
            Self::Controller => help::controller(),
            Self::Values => {
                let values = fs::read_to_string(workspace.join("charts/muster/values.yaml"))?;
                Ok(format!("```yaml\n{values}```\n"))
            }
        }
    }
}

fn definition(kind: &str) -> anyhow::Result<Definition> {
    crd::definitions()
        .into_iter()
        .find(|one| one.kind == kind)
        .with_context(|| format!("no kind {kind}"))
}

/// Writes every section anew.
pub(super) fn write(workspace: &Path) -> anyhow::Result<()> {
    for (page, source) in SECTIONS {
        let path = workspace.join(page);
        let text = fs::read_to_string(&path).with_context(|| format!("no {page}"))?;
        fs::write(&path, with_section(&text, source, &source.text(workspace)?).context(page)?)?;
    }
    Ok(())
}

/// A page with another text in one of its sections.
fn with_section(page: &str, source: Source, text: &str) -> anyhow::Result<String> {
    let (begin, end) = (source.begin(), source.end());
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no line {end}"))?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_testkit::testbed;

    #[test]
    fn generated_sections_are_up_to_date() {
        let workspace = testbed::workspace();
        for (page, source) in SECTIONS {
            let written = fs::read_to_string(workspace.join(page)).expect(page);
            let expected =
                with_section(&written, source, &source.text(workspace).expect(page)).expect(page);
            assert!(written == expected, "{page}, {source}, is out of date: run `make reference`");
        }
    }

    #[test]
    fn every_kind_has_a_page_with_its_names_and_fields() {
        for definition in crd::definitions() {
            for source in [Source::Names(definition.kind), Source::Fields(definition.kind)] {
                assert!(SECTIONS.iter().any(|(_, one)| *one == source), "no section {source}");
            }
        }
    }

    #[test]
    fn section_is_replaced_and_the_rest_of_the_page_stays() {
        let page = "# A\n<!-- values of the chart: written by `make reference` -->\nold\n<!-- end of values of the chart -->\nB\n";
        let written = with_section(page, Source::Values, "new\n").expect("a section");
        assert!(written.starts_with("# A\n<!--") && written.ends_with("-->\nB\n"), "{written}");
        assert!(written.contains("\n\nnew\n\n") && !written.contains("old"), "{written}");
        assert!(with_section("# A\n", Source::Values, "new").is_err());
    }
}
