//! The heading of the page: inputs, sizes and command line.

use muster_sim::report::{Measure, Report};

use crate::figures::count;
use crate::report::markup::Markup;
use crate::report::numbers::{percent, span, unit_hours, units, whole};

/// The invocation of the command.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The command line.
    pub(crate) command: String,
    /// The names of the input files and generators.
    pub(crate) inputs: Vec<String>,
    /// The random seed.
    pub(crate) seed: u64,
}

impl Invocation {
    /// Inputs and seed, and the command line of this process.
    pub(crate) fn new(inputs: Vec<String>, seed: u64) -> Self {
        let args = std::env::args_os().skip(1).map(|arg| quoted(&arg.to_string_lossy()));
        let words: Vec<String> = std::iter::once("muster".to_owned()).chain(args).collect();
        Self { command: words.join(" "), inputs, seed }
    }
}

/// An argument, quoted for a shell.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

/// The head of the page.
pub(crate) fn heading(html: &mut Markup, report: &Report, invocation: &Invocation) {
    html.tag("header").with(|html| {
        html.classed("p", "brand").with(|html| {
            html.classed("strong", "name").text("Muster");
            html.text(concat!(" ", env!("CARGO_PKG_VERSION"), ", simulation report"));
        });
        html.tag("h1").text(title(report));
        html.classed("dl", "facts").with(|html| {
            for (term, words) in facts(report, invocation) {
                html.tag("div").with(|html| {
                    html.tag("dt").text(term);
                    html.tag("dd").text(words);
                });
            }
        });
        html.classed("pre", "command").with(|html| html.tag("code").text(&invocation.command));
    });
}

/// The title of the page, in one line.
pub(crate) fn title(report: &Report) -> String {
    let names: Vec<&str> = report.runs.iter().map(|run| run.summary.policy.as_str()).collect();
    let policies = match names.as_slice() {
        [] => String::new(),
        [one] => format!(" under {one}"),
        [most @ .., last] => format!(" under {} and {last}", most.join(", ")),
    };
    let stage = &report.stage;
    let jobs = count(stage.jobs, "job");
    let (units, capacity) = (units(report.measure), whole(stage.capacity));
    let supply = match (stage.capacity > 0.0, stage.pools > 0) {
        (true, false) => format!(" on {capacity} {units}"),
        (true, true) => format!(" on {capacity} {units} and what pools add"),
        (false, _) => format!(" on {}", count(stage.pools, "pool")),
    };
    format!("{jobs}{supply}{policies}")
}

fn facts(report: &Report, invocation: &Invocation) -> Vec<(&'static str, String)> {
    let stage = &report.stage;
    let mut demand = vec![
        count(stage.jobs, "job"),
        format!("{} {}", whole(stage.asked_hours), unit_hours(report.measure)),
    ];
    let queues = match report.queues.named.as_slice() {
        [one] => format!("queue {one}"),
        _ => count(stage.queues, "queue"),
    };
    demand.push(queues);
    if stage.users > 1 {
        demand.push(count(stage.users, "user"));
    }
    let mut supply = Vec::new();
    if stage.nodes > 0 {
        let (nodes, units) = (count(stage.nodes, "node"), units(report.measure));
        supply.push(match stage.capacity {
            0.0 => format!("{nodes} without {units}"),
            capacity => format!("{nodes} with {} {units}", whole(capacity)),
        });
    }
    if stage.pools > 0 {
        supply.push(count(stage.pools, "pool"));
    }
    let longest = report.runs.iter().map(|run| run.span).max().unwrap_or_default();
    let mut time = format!("{} from first submission to last end", span(longest.as_secs_f64()));
    if report.runs.len() > 1 {
        time += ", at the longest";
    }
    let mut facts = vec![
        ("inputs", invocation.inputs.join(", ")),
        ("demand", demand.join(", ")),
        ("supply", supply.join(", ")),
        ("simulated time", time),
    ];
    if let Some(load) = load(report) {
        facts.push(("offered load", load));
    }
    facts.push(("seed", invocation.seed.to_string()));
    facts
}

/// The offered load: submitted work divided by the capacity of the nodes during the submissions.
fn load(report: &Report) -> Option<String> {
    let stage = &report.stage;
    let there = stage.capacity * stage.submitting.as_secs_f64() / 3_600.0;
    if there <= 0.0 || stage.pools > 0 {
        return None;
    }
    let of = if report.measure == Measure::Gpu { "GPUs" } else { "cores" };
    let while_submitting = span(stage.submitting.as_secs_f64());
    Some(format!(
        "{} of the {of}, over {while_submitting} of submissions",
        percent(stage.asked_hours / there)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--swf=log.swf.gz"), "--swf=log.swf.gz");
        assert_eq!(quoted("my jobs.csv"), "'my jobs.csv'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
