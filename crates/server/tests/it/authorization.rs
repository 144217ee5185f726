//! Every operation with every role.

use muster_server::openapi;

use crate::client::{gang, start, tokens};

/// Statuses for: no token, a viewer, a user of another queue, a user of the queue, an admin.
const MATRIX: &str = "
    listGangs    401 200 200 200 200
    getGang      401 200 200 200 200
    removeGang   401 403 403 204 204
    cancelGang   401 403 403 200 200
    holdGang     401 403 403 200 200
    releaseGang  401 403 403 200 200
    scaleGang    401 403 403 200 200
    why          401 200 200 200 200
    logs         401 403 403 200 200
    listQueues   401 200 200 200 200
    getQueue     401 200 200 200 200
    removeQueue  401 403 403 403 409
    listPools    401 200 200 200 200
    getPool      401 200 200 200 200
    removePool   401 403 403 403 204
    listNodes    401 200 200 200 200
    getNode      401 200 200 200 200
    removeNode   401 403 403 403 204
    listOrders   401 200 200 200 200
    getOrder     401 200 200 200 200
    removeOrder  401 403 403 403 501
    apply        401 403 403 200 200
    whatIf       401 200 200 200 200
    usage        401 200 200 200 200
    events       401 200 200 200 200
    whoami       401 200 200 200 200
    audit        401 403 403 403 501
    alive        200 200 200 200 200
    ready        200 200 200 200 200
    metrics      401 200 200 200 200
    openapi      200 200 200 200 200
";

const CALLERS: [&str; 5] = [
    "",
    "token-of-vera-viewer",
    "token-of-otto-sales",
    "token-of-rosa-research",
    "token-of-adam-admin",
];

/// The object name in an operation's path.
fn name(path: &str) -> &str {
    match path.split('/').nth(2) {
        Some("queues") => "research",
        Some("pools") => "gpus",
        Some("nodes") => "node-1",
        Some("orders") => "order-1",
        _ => "a",
    }
}

#[tokio::test]
async fn every_operation_requires_its_role() {
    let server = start(|config| config.tokens = tokens()).await;
    let mut left: Vec<_> = MATRIX.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let document = openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let row = left.iter().position(|row| row.split_whitespace().next() == Some(id));
            let row = left.remove(row.unwrap_or_else(|| panic!("{id} is not in the matrix")));
            for (token, wanted) in CALLERS.iter().zip(row.split_whitespace().skip(1)) {
                server.host.seed();
                let path = path.replace("{namespace}", "research").replace("{name}", name(path));
                let query = if id == "events" { "?follow=false" } else { "" };
                let mut ask = server.ask(&format!("{} {path}{query}", method.to_uppercase()));
                if !token.is_empty() {
                    ask = ask.token(token);
                }
                ask = match id {
                    "apply" | "whatIf" => ask.body("application/yaml", gang("b")),
                    "scaleGang" => ask.body("application/json", r#"{"min": 1}"#),
                    _ => ask,
                };
                let answered = ask.send().await;
                assert_eq!(answered.status.to_string(), wanted, "{id} by `{token}`: {answered:?}");
            }
        }
    }
    assert!(left.is_empty(), "there is no such thing to ask: {left:?}");
}

#[tokio::test]
async fn viewer_is_refused_before_the_host_is_called() {
    let server = start(|config| config.tokens = tokens()).await;
    for line in
        ["POST /v1/apply", "DELETE /v1/namespaces/research/gangs/a", "DELETE /v1/pools/gpus"]
    {
        let answered = server.ask(line).token("token-of-vera-viewer").send().await;
        assert_eq!(answered.code(), "forbidden", "{line}");
    }
    assert_eq!(server.host.asked.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn whoami_returns_name_and_role() {
    let server = start(|config| config.tokens = tokens()).await;
    let answered = server.ask("GET /v1/whoami").token("token-of-rosa-research").send().await;
    let wanted = serde_json::json!({"name": "rosa", "role": "user", "queues": ["research"]});
    assert_eq!(answered.json(), wanted);
    for header in ["Bearer token-of-nobody-here", "Basic dmVyYQ==", "Bearer", "Bearer  "] {
        let answered = server.ask("GET /v1/whoami").header("authorization", header).send().await;
        assert_eq!(
            (answered.status, answered.header("www-authenticate")),
            (401, "Bearer"),
            "{header}"
        );
    }
    let open = start(|_| {}).await;
    assert_eq!(open.get("/v1/whoami").await.json()["role"], "admin");
    let page = open.ask("GET /v1/whoami").header("origin", "https://evil.example").send().await;
    assert_eq!(page.code(), "forbidden");
}
