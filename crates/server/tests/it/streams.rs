//! Logs, metrics, and queries that the host answers.

use serde_json::Value;

use crate::client::{gang, start};

#[tokio::test]
async fn logs_are_json_lines_or_prefixed_text() {
    let server = start(|_| {}).await;
    let logs =
        |query: &str| server.ask(&format!("GET /v1/namespaces/research/gangs/a/logs{query}"));
    let answered = logs("").send().await;
    assert_eq!(answered.header("content-type"), "application/x-ndjson");
    let parts: Vec<Value> =
        answered.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parts.len(), 2);
    assert_eq!(
        (parts[1]["member"].as_u64(), parts[1]["text"].as_str()),
        (Some(1), Some("hello\nworld\n"))
    );
    let answered = logs("?member=1&tail=5").header("accept", "text/plain").send().await;
    assert_eq!(answered.text, "[worker 1] hello\n[worker 1] world\n");
    assert!(answered.header("content-type").starts_with("text/plain"));
}

#[tokio::test]
async fn queries_reach_the_host_with_their_parameters() {
    let server = start(|_| {}).await;
    let why = server.get("/v1/namespaces/research/gangs/a/why").await.json();
    assert_eq!(
        (&why["name"], &why["expectedStart"]),
        (&"research/a".into(), &"2027-01-15T08:00:00Z".into())
    );
    let asked = server.ask("POST /v1/what-if").body("application/yaml", gang("b")).send().await;
    assert_eq!(asked.json()["items"][0]["name"], "research/b");
    assert_eq!(server.get("/v1/namespaces/research/gangs/b").await.status, 404);
    let query = "by=user&from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:01%2B00:00";
    let usage = server.get(&format!("/v1/usage?{query}")).await.json();
    assert_eq!(
        (&usage["items"][0]["key"], &usage["items"][0]["waitedSeconds"]),
        (&"User".into(), &1000.0.into())
    );
    let held = server.ask("POST /v1/namespaces/research/gangs/a/hold").send().await;
    assert_eq!(held.json()["spec"]["held"], true);
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_include_the_hosts() {
    let server = start(|_| {}).await;
    for name in ["a", "b", "c"] {
        server.get(&format!("/v1/queues/{name}")).await;
    }
    server.get("/nowhere").await;
    let text = server.get("/metrics").await.text;
    for line in [
        "muster_http_requests_total{route=\"/v1/queues/{name}\",method=\"GET\",code=\"404\"} 3",
        "muster_http_requests_total{route=\"none\",method=\"GET\",code=\"404\"} 1",
        "muster_gangs 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
