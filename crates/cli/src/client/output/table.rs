//! Tables that stay readable when piped: aligned columns without rules.

use console::{measure_text_width, pad_str, style};
use muster_core::time::Time;
use muster_server::Kind;
use serde_json::Value;

use crate::client::output::columns::{Column, NAMESPACE, of};
use crate::stdout;

/// The gap between two columns.
const GAP: &str = "   ";

/// The columns of a table, and their current widths.
pub(crate) struct Table {
    columns: Vec<&'static Column>,
    widths: Vec<usize>,
    headed: bool,
}

impl Table {
    /// A table of a kind.
    pub(crate) fn new(kind: Kind, wide: bool, namespaces: bool) -> Self {
        let namespace = (kind == Kind::Gang && namespaces).then_some(&NAMESPACE);
        let shown = of(kind).iter().filter(|column| wide || !column.wide);
        let columns: Vec<_> = namespace.into_iter().chain(shown).collect();
        let widths = columns.iter().map(|column| column.title.len()).collect();
        Self { columns, widths, headed: false }
    }

    /// The lines for these objects, after the heading if it was not printed yet. Columns never get narrower, so that
    /// later rows align with earlier ones.
    pub(crate) fn lines<'a>(
        &mut self,
        objects: impl IntoIterator<Item = &'a Value>,
        now: Time,
    ) -> Vec<String> {
        let cell =
            |column: &&Column, object| stdout::cell(first(&(column.cell)(object, now))).into();
        let row = |object| self.columns.iter().map(|column| cell(column, object)).collect();
        let rows: Vec<Vec<String>> = objects.into_iter().map(row).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = measure_text_width(cell).max(*width);
            }
        }
        let heading = (!std::mem::replace(&mut self.headed, true))
            .then(|| self.columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>());
        let heading = heading.map(|titles| self.line(&titles, true));
        let rows: Vec<String> = rows.iter().map(|row| self.line(row, false)).collect();
        heading.into_iter().chain(rows).collect()
    }

    fn line(&self, cells: &[String], heading: bool) -> String {
        let padded =
            cells.iter().zip(&self.widths).zip(&self.columns).map(|((cell, width), column)| {
                let cell = if cell.is_empty() { "-" } else { cell };
                let padded = pad_str(cell, *width, console::Alignment::Left, None).into_owned();
                match column.title {
                    _ if heading => style(padded).bold().to_string(),
                    "PHASE" => coloured(cell, &padded),
                    _ => padded,
                }
            });
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

/// The first line of a message: more would break the table.
fn first(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A phase in its colour: green for good, red for failed. Without a terminal there are no colours.
pub(crate) fn coloured(phase: &str, text: &str) -> String {
    let text = style(text);
    let text = match phase {
        "Running" | "Succeeded" | "Complete" => text.green(),
        "Provisioning" | "Admitted" | "Assembling" => text.cyan(),
        "Failed" | "Infeasible" | "RolledBack" => text.red(),
        "Stopping" | "Held" | "Cancelled" => text.yellow(),
        _ => text,
    };
    text.to_string()
}

/// Cells under titles, for answers that are not objects. Columns of figures are aligned to the right.
pub(crate) fn plain(titles: &[&str], figures: usize, rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| stdout::cell(cell).into()).collect()).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| measure_text_width(&row[at]));
        cells.max().unwrap_or(0).max(titles[at].len())
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            let right = at >= titles.len() - figures;
            let side = if right { console::Alignment::Right } else { console::Alignment::Left };
            pad_str(cell, *width, side, None).into_owned()
        });
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    let heading = std::iter::once(line(titles.to_vec()));
    heading.chain(rows.iter().map(|row| line(row.iter().map(|cell| &**cell).collect()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn later_rows_align_with_earlier_ones() {
        let order = |name: &str, gang: &str| {
            json!({"metadata": {"name": name}, "spec": {"gang": gang, "nodes": 8},
                   "status": {"phase": "Assembling", "ready": 3}})
        };
        let mut table = Table::new(Kind::Order, false, false);
        let first = table.lines([&order("order-1", "research/llama")], Time::ZERO);
        let later = table.lines([&order("order-12", "a/b")], Time::ZERO);
        let plain = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| console::strip_ansi_codes(line).into_owned()).collect()
        };
        let expected = [
            "NAME      GANG             PHASE        READY   DEADLINE",
            "order-1   research/llama   Assembling   3/8     -",
        ];
        assert_eq!(plain(first), expected);
        assert_eq!(plain(later), ["order-12   a/b              Assembling   3/8     -"]);
    }

    #[test]
    fn figures_are_aligned_right() {
        let rows =
            [vec!["research".to_owned(), "7".to_owned()], vec!["a".to_owned(), "1,200".to_owned()]];
        assert_eq!(
            plain(&["QUEUE", "GANGS"], 1, &rows),
            ["QUEUE      GANGS", "research       7", "a          1,200",]
        );
    }
}
