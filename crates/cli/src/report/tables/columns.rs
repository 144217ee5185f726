//! Columns of figures, with the best value of each marked.

use muster_sim::report::Figures;

use crate::report::markup::Markup;
use crate::report::numbers;
use crate::report::numbers::{amount, span, whole};

/// Which value of a column is the best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Best {
    Least,
    Most,
    /// No value is better than another.
    None,
}

/// One figure of many rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<T> {
    pub(crate) title: &'static str,
    /// The description, shown as a tooltip of the title.
    pub(crate) meaning: &'static str,
    pub(crate) value: fn(&T) -> Option<f64>,
    pub(crate) show: fn(f64) -> String,
    pub(crate) best: Best,
    /// Whether the change against the first row is worth showing.
    pub(crate) compare: bool,
}

impl<T> Column<T> {
    /// The title as the head of the column.
    pub(crate) fn head(&self, html: &mut Markup) {
        let head = html.tag("th").attr("scope", "col").attr("title", self.meaning);
        head.text(self.title);
    }

    /// The best value among rows that are compared, unless all are the same.
    pub(crate) fn best_of(&self, rows: &[&T]) -> Option<f64> {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| (self.value)(row)).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        match self.best {
            _ if (self.show)(least) == (self.show)(most) => None,
            Best::Least => Some(least),
            Best::Most => Some(most),
            Best::None => None,
        }
    }

    /// The value of a row; marked if no other is better, and compared with that of `base`.
    pub(crate) fn cell(&self, html: &mut Markup, row: &T, best: Option<f64>, base: Option<&T>) {
        let Some(value) = (self.value)(row) else {
            html.tag("td").text("\u{2013}");
            return;
        };
        let shown = (self.show)(value);
        // Values that look the same are marked the same.
        let is_best = best.is_some_and(|best| (self.show)(best) == shown);
        html.classed("td", if is_best { "best" } else { "" }).with(|html| {
            html.classed("span", "value").text(shown);
            if is_best {
                html.classed("span", "unseen").text(" (best)");
            }
            if self.compare
                && let Some(base) = base.and_then(self.value)
            {
                let change = numbers::change(base, value).unwrap_or_default();
                html.classed("span", "change").text(change);
            }
        });
    }
}

/// The figures of jobs: of a whole run, or of one queue.
pub(crate) const JOBS: [Column<Figures>; 8] = [
    Column {
        title: "jobs",
        meaning: "jobs submitted",
        value: |figures| Some(figures.jobs as f64),
        show: whole,
        best: Best::None,
        compare: false,
    },
    Column {
        title: "done",
        meaning: "jobs that ended",
        value: |figures| Some(figures.ended as f64),
        show: whole,
        best: Best::Most,
        compare: false,
    },
    Column {
        title: "mean wait",
        meaning: "from submission to start, mean over jobs that ended",
        value: |figures| Some(figures.mean_wait_s),
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "p50 wait",
        meaning: "half of the jobs waited no longer",
        value: |figures| Some(figures.p50_wait_s),
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "p95 wait",
        meaning: "95 of 100 jobs waited no longer",
        value: |figures| Some(figures.p95_wait_s),
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "p99 wait",
        meaning: "99 of 100 jobs waited no longer",
        value: |figures| Some(figures.p99_wait_s),
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "longest wait",
        meaning: "the longest wait",
        value: |figures| Some(figures.max_wait_s),
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "mean bounded slowdown",
        meaning: "average bounded slowdown: max(1, (wait + run) / max(run, 10 s)) over jobs that ended",
        value: |figures| Some(figures.avg_bsld),
        show: amount,
        best: Best::Least,
        compare: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Column<f64> = Column {
        title: "wait",
        meaning: "",
        value: |wait| Some(*wait),
        show: span,
        best: Best::Least,
        compare: true,
    };

    #[test]
    fn best_value_is_marked_unless_all_are_equal() {
        assert_eq!(WAIT.best_of(&[&60.0, &30.0]), Some(30.0));
        assert_eq!(WAIT.best_of(&[&60.1, &60.2]), None);
        assert_eq!(WAIT.best_of(&[]), None);
        let mut html = Markup::default();
        WAIT.cell(&mut html, &30.0, Some(30.0), Some(&60.0));
        let html = html.into_string();
        assert!(html.contains("best") && html.contains("\u{2212} 50 %"), "{html}");
    }
}
