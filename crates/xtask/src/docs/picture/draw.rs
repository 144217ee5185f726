//! Two runs as bars over time, as SVG that reads on light and on dark pages.

use std::fmt::Write as _;

use super::facts::{Facts, Machine};
use super::runs::{Barriers, job_of};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 26.0;
const RIGHT: f64 = 874.0;
const ROW: f64 = 10.0;
const BAR: f64 = 7.0;
/// GPUs of one node of the example.
const GPUS: f64 = 8.0;

/// One run, ready to be drawn.
pub(super) struct Panel {
    title: &'static str,
    rows: Vec<Vec<Bar>>,
    end: f64,
    cost: f64,
    /// GPU-seconds that started members spent waiting.
    wasted: f64,
}

/// A bar of a row.
struct Bar {
    class: &'static str,
    from: f64,
    to: f64,
    says: String,
}

/// Colours of jobs, by their first letters in the example's order.
const JOBS: [(&str, &str); 2] = [("llama-ddp", "one"), ("mixtral-ft", "two")];

impl Panel {
    /// A run. Members of a job that has a barrier only wait before it.
    pub(super) fn new(title: &'static str, facts: &Facts, barriers: &Barriers) -> Self {
        let mut machines: Vec<&Machine> = facts.machines.iter().collect();
        // Nodes in the order in which they were of use.
        let first = |machine: &Machine| machine.uses.first().map_or(f64::INFINITY, |one| one.1);
        machines.sort_by(|a, b| {
            (a.requested, first(a)).partial_cmp(&(b.requested, first(b))).expect("numbers")
        });
        let rows: Vec<Vec<Bar>> =
            machines.iter().map(|machine| bars(machine, facts.end, barriers)).collect();
        let waits = rows.iter().flatten().filter(|bar| bar.class == "waits");
        let wasted = waits.map(|bar| (bar.to - bar.from) * GPUS).fold(0.0, |sum, one| sum + one);
        Self { title, rows, end: facts.end, cost: facts.cost, wasted }
    }

    fn height(&self) -> f64 {
        58.0 + self.rows.len() as f64 * ROW
    }
}

fn bars(machine: &Machine, end: f64, barriers: &Barriers) -> Vec<Bar> {
    let ended = machine.ended.unwrap_or(end).min(end);
    let ready = machine.ready.unwrap_or(ended).min(ended);
    let mut bars = Vec::new();
    let mut bar = |class, from: f64, to: f64, says: &str| {
        if to > from {
            let says = format!("{says}, {} to {}", clock(from), clock(to));
            bars.push(Bar { class, from, to, says });
        }
    };
    let boots = if machine.failed { "fails" } else { "boots" };
    bar(boots, machine.requested, ready, if machine.failed { "fails" } else { "boots" });
    let mut free = ready;
    for (gang, from, to) in &machine.uses {
        let to = to.min(ended);
        bar("free", free, *from, "ready and free");
        let job = barriers.get(job_of(gang)).map_or(gang.as_str(), |_| job_of(gang));
        let class = JOBS.iter().find(|(name, _)| *name == job).map_or("other", |(_, class)| class);
        let starts = barriers.get(job).copied().unwrap_or(*from).min(to);
        bar("waits", *from, starts, &format!("started, waits for the others of {job}"));
        bar(class, starts, to, &format!("runs {job}"));
        free = to;
    }
    bar("free", free, ended, "ready and free");
    bars
}

/// The whole picture.
pub(super) fn picture(panels: &[Panel]) -> String {
    let height = 64.0 + panels.iter().map(Panel::height).sum::<f64>();
    let end = panels.iter().map(|panel| panel.end).fold(0.0, f64::max);
    let x = |at: f64| LEFT + (RIGHT - LEFT) * at / end;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, -apple-system, \
         'Segoe UI', Roboto, sans-serif\" role=\"img\">\n<title>Nodes of the quick start over time: with Muster all workers of a \
         job start together; one pod at a time they wait for each other</title>\n<style>{STYLE}</style>\n{PATTERN}\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
        WIDTH - 1.0,
        height - 1.0
    );
    let bottom = height - 52.0;
    axis(&mut out, end, bottom, x);
    let mut top = 12.0;
    for panel in panels {
        panel_at(&mut out, panel, top, x);
        top += panel.height();
    }
    legend(&mut out, height - 14.0);
    out.push_str("</svg>\n");
    out
}

fn panel_at(out: &mut String, panel: &Panel, top: f64, x: impl Fn(f64) -> f64) {
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{LEFT}\" y=\"{}\">{}</text>",
        top + 20.0,
        panel.title
    );
    let _ = writeln!(
        out,
        "<text class=\"numbers\" x=\"{LEFT}\" y=\"{}\">{} GPU-seconds spent waiting for the rest of a job; \
         all done after {}; cost {:.0}</text>",
        top + 37.0,
        grouped(panel.wasted),
        clock(panel.end),
        panel.cost
    );
    for (at, row) in panel.rows.iter().enumerate() {
        let y = top + 48.0 + at as f64 * ROW;
        for bar in row {
            let (from, to) = (x(bar.from), x(bar.to));
            let _ = writeln!(
                out,
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"1\"><title>{}</title></rect>",
                bar.class,
                to - from,
                bar.says
            );
        }
    }
}

/// Minutes below the panels, and lines behind them.
fn axis(out: &mut String, end: f64, bottom: f64, x: impl Fn(f64) -> f64) {
    let mut at = 0.0;
    while at <= end {
        let place = x(at);
        let _ = writeln!(
            out,
            "<line class=\"line\" x1=\"{place:.1}\" y1=\"56\" x2=\"{place:.1}\" y2=\"{bottom:.1}\"/><text class=\"tick\" \
             x=\"{place:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 14.0,
            clock(at)
        );
        at += 120.0;
    }
}

fn legend(out: &mut String, y: f64) {
    const WORDS: [(&str, &str, f64); 6] = [
        ("boots", "node boots", 0.0),
        ("fails", "fails", 100.0),
        ("free", "ready and free", 160.0),
        ("waits", "started, waits for the others", 280.0),
        ("one", "runs job 1 (8 workers)", 490.0),
        ("two", "runs job 2 (10 workers)", 670.0),
    ];
    for (class, words, x) in WORDS {
        let x = LEFT + x;
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"14\" height=\"9\" rx=\"1\"/><text class=\"key\" x=\"{}\" y=\"{y}\">{words}</text>",
            y - 8.5,
            x + 19.0
        );
    }
}

/// Minutes and seconds.
fn clock(at: f64) -> String {
    let seconds = at.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

const PATTERN: &str = "<defs><pattern id=\"stripes\" width=\"5\" height=\"5\" patternTransform=\"rotate(45)\" patternUnits=\"userSpaceOnUse\">\
<rect class=\"ground\" width=\"5\" height=\"5\"/><rect class=\"stripe\" width=\"2\" height=\"5\"/></pattern></defs>";

const STYLE: &str = "\
.page{fill:#fff;stroke:#d0d7de}.title{font-size:15px;font-weight:600;fill:#1f2328}.numbers,.key,.tick{font-size:11.5px;fill:#59636e}\
.tick{text-anchor:middle}.line{stroke:#d0d7de;stroke-width:.6;stroke-dasharray:2 3}.boots{fill:#afb8c1}.fails{fill:#cf222e}\
.free{fill:#eaeef2;stroke:#c8d1da;stroke-width:.5}.waits{fill:url(#stripes)}.ground{fill:#ffd8a8}.stripe{fill:#e8590c}\
.one{fill:#0969da}.two{fill:#2da44e}.other{fill:#8250df}\
@media(prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#30363d}.title{fill:#e6edf3}.numbers,.key,.tick{fill:#9198a1}\
.line{stroke:#30363d}.boots{fill:#57606a}.fails{fill:#f85149}.free{fill:#21262d;stroke:#3d444d}.ground{fill:#7a3e10}.stripe{fill:#ff9d4d}\
.one{fill:#4493f8}.two{fill:#3fb950}.other{fill:#ab7df8}}";
