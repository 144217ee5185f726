//! Resource usage of a measured period: requests that the API server answered, and CPU time by process. Unlike elapsed
//! time these hardly vary with the load of the machine.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::{Value, json};

/// Ticks per second of CPU time in `/proc`: the same on every supported Linux.
const TICKS: f64 = 100.0;

/// Usage up to one instant.
pub(crate) struct Usage {
    /// By process.
    ticks: BTreeMap<String, u64>,
    /// By verb and resource.
    requests: BTreeMap<String, u64>,
    /// Events sent to watchers, by kind.
    watch_events: BTreeMap<String, u64>,
}

impl Usage {
    pub(crate) async fn so_far(client: &Client, processes: &[(String, u32)]) -> Self {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        let metrics = client.request_text(request).await.unwrap_or_default();
        let (mut requests, mut watch_events) = (BTreeMap::new(), BTreeMap::new());
        for (name, labels, count) in metrics.lines().filter_map(sample) {
            let label = |of: &str| labels.get(of).copied().unwrap_or_default();
            let (into, key) = match name {
                "apiserver_request_total" => {
                    let what = match label("subresource") {
                        "" => label("resource").to_owned(),
                        sub => format!("{}/{sub}", label("resource")),
                    };
                    (&mut requests, format!("{} {what} {}", label("verb"), label("code")))
                }
                "apiserver_watch_events_total" => {
                    let kind = [label("resource"), label("kind")].concat();
                    (&mut watch_events, kind)
                }
                _ => continue,
            };
            *into.entry(key).or_default() += count;
        }
        let ticks = processes.iter().map(|(name, id)| (name.clone(), ticks(*id))).collect();
        Self { ticks, requests, watch_events }
    }

    /// Usage since then.
    pub(crate) fn since(&self, then: &Self) -> Value {
        let more = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            let more = now.iter().map(|(key, count)| {
                (key.clone(), count.saturating_sub(then.get(key).copied().unwrap_or(0)))
            });
            more.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>()
        };
        let cpu: BTreeMap<String, f64> = more(&self.ticks, &then.ticks)
            .into_iter()
            .map(|(name, ticks)| (name, ticks as f64 / TICKS))
            .collect();
        json!({
            "cpu_s": cpu,
            "requests": more(&self.requests, &then.requests),
            "watch_events": more(&self.watch_events, &then.watch_events),
        })
    }
}

/// One line of metrics: name, labels and count.
fn sample(line: &str) -> Option<(&str, BTreeMap<&str, &str>, u64)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, count) = rest.rsplit_once("} ")?;
    let labels = labels.split("\",").filter_map(|label| {
        let (name, value) = label.split_once("=\"")?;
        Some((name, value.trim_end_matches('"')))
    });
    Some((name, labels.collect(), count.trim().parse::<f64>().ok()? as u64))
}

/// CPU time of a process, in ticks.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name is in brackets and may contain spaces; fields are counted after it.
    let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
    let fields: Vec<&str> = after.split_whitespace().collect();
    [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum()
}
