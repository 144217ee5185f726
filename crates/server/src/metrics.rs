//! Metrics of the server, in the Prometheus text format.
//!
//! Three families, written by hand: the host delivers its own metrics as text, and two registries would have to agree.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the duration buckets, in seconds. Answers from the board take less than a millisecond; answers of
/// the host wait for its next cycle.
const BUCKETS: [f64; 9] = [0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answered: Mutex<BTreeMap<RequestLabels, Histogram>>,
    pub(crate) events: AtomicUsize,
    pub(crate) logs: AtomicUsize,
}

/// Labels of a request. Routes and methods form a closed set, so the map is bounded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct RequestLabels {
    route: String,
    method: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    within: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

fn known(method: &str) -> &'static str {
    const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"];
    METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn answered(&self, route: &str, method: &str, code: u16, took: Duration) {
        let of = RequestLabels { route: route.to_owned(), method: known(method), code };
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = answered.entry(of).or_default();
        let seconds = took.as_secs_f64();
        histogram.count += 1;
        histogram.seconds += seconds;
        for (within, _) in
            histogram.within.iter_mut().zip(BUCKETS).filter(|(_, end)| seconds <= *end)
        {
            *within += 1;
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = "muster_http_requests_total";
        head(
            text,
            name,
            "counter",
            "Requests that were answered, by route, method and status code.",
        )?;
        for (RequestLabels { route, method, code }, histogram) in &answered {
            let labels = format!("route=\"{route}\",method=\"{method}\",code=\"{code}\"");
            writeln!(text, "{name}{{{labels}}} {}", histogram.count)?;
        }
        let name = "muster_http_request_duration_seconds";
        head(text, name, "histogram", "From the head of a request to the head of its answer.")?;
        for (RequestLabels { route, method, code }, histogram) in &answered {
            let labels = format!("route=\"{route}\",method=\"{method}\",code=\"{code}\"");
            for (end, within) in BUCKETS.iter().zip(histogram.within) {
                writeln!(text, "{name}_bucket{{{labels},le=\"{end}\"}} {within}")?;
            }
            writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", histogram.count)?;
            writeln!(text, "{name}_sum{{{labels}}} {}", histogram.seconds)?;
            writeln!(text, "{name}_count{{{labels}}} {}", histogram.count)?;
        }
        let name = "muster_http_streams";
        head(text, name, "gauge", "Streams that are open, by what they carry.")?;
        for (of, open) in [("events", &self.events), ("logs", &self.logs)] {
            writeln!(text, "{name}{{of=\"{of}\"}} {}", open.load(Ordering::Relaxed))?;
        }
        Ok(())
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_durations_fall_into_cumulative_buckets() {
        let metrics = Metrics::default();
        metrics.answered("/v1/gangs", "GET", 200, Duration::from_millis(2));
        metrics.answered("/v1/gangs", "GET", 200, Duration::from_millis(20));
        metrics.answered("/v1/gangs", "BREW", 405, Duration::from_secs(60));
        let text = metrics.text();
        for line in [
            "muster_http_requests_total{route=\"/v1/gangs\",method=\"GET\",code=\"200\"} 2",
            "muster_http_requests_total{route=\"/v1/gangs\",method=\"other\",code=\"405\"} 1",
            "method=\"GET\",code=\"200\",le=\"0.001\"} 0",
            "method=\"GET\",code=\"200\",le=\"0.01\"} 1",
            "method=\"GET\",code=\"200\",le=\"0.025\"} 2",
            "method=\"other\",code=\"405\",le=\"30\"} 0",
            "method=\"other\",code=\"405\",le=\"+Inf\"} 1",
            "muster_http_streams{of=\"events\"} 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
