//! Every error has the uniform format and a fitting status.

use crate::client::{gang, start};

#[tokio::test]
async fn every_refusal_has_a_status_and_a_code() {
    let server = start(|_| {}).await;
    for (line, status, code) in [
        ("GET /nowhere", 404, "notFound"),
        ("GET /v1", 404, "notFound"),
        ("PUT /v1/gangs", 405, "methodNotAllowed"),
        ("POST /healthz", 405, "methodNotAllowed"),
        ("GET /v1/gangs?colour=red", 400, "badRequest"),
        ("GET /v1/gangs?limit=0", 400, "badRequest"),
        ("GET /v1/gangs?limit=1001", 400, "badRequest"),
        ("GET /v1/gangs?limit=ten", 400, "badRequest"),
        ("GET /v1/gangs?limit=1&limit=2", 400, "badRequest"),
        ("GET /v1/gangs?queue=", 400, "badRequest"),
        ("GET /v1/gangs?continue=xyz", 400, "badRequest"),
        ("GET /healthz?deep=true", 400, "badRequest"),
        ("GET /v1/usage?by=colour", 400, "badRequest"),
        ("GET /v1/usage?from=yesterday", 400, "badRequest"),
        ("GET /v1/usage?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", 422, "invalid"),
        ("GET /v1/events?kind=Gong", 400, "badRequest"),
        ("GET /v1/queues/nobody", 404, "notFound"),
        ("GET /v1/queues/%ff", 400, "badRequest"),
        ("GET /v1/namespaces/research/gangs/nobody", 404, "notFound"),
        ("GET /v1/namespaces/research/gangs/nobody/why", 404, "notFound"),
        ("GET /v1/namespaces/research/gangs/nobody/logs", 404, "notFound"),
        ("DELETE /v1/namespaces/research/gangs/nobody", 404, "notFound"),
        ("DELETE /v1/queues/research", 409, "conflict"),
        ("DELETE /v1/orders/order-1", 501, "unsupported"),
        ("POST /v1/namespaces/research/gangs/bug/hold", 500, "internal"),
        ("POST /v1/namespaces/research/gangs/nobody/hold", 404, "notFound"),
        ("POST /v1/apply?dryRun=perhaps", 400, "badRequest"),
    ] {
        let answered = server.ask(line).send().await;
        assert_eq!((answered.status, &*answered.code()), (status, code), "{line}");
    }
}

#[tokio::test]
async fn unknown_method_is_refused_with_the_allowed_ones() {
    let server = start(|_| {}).await;
    let answered = server.ask("PUT /v1/namespaces/research/gangs/a").send().await;
    let mut known: Vec<_> = answered.header("allow").split(',').map(str::trim).collect();
    known.sort_unstable();
    assert_eq!(known, ["DELETE", "GET", "HEAD"]);
}

#[tokio::test]
async fn findings_have_positions() {
    let server = start(|_| {}).await;
    let text = gang("a").replace("min: 2", "min: two");
    let answered = server.apply(&text).await;
    assert_eq!((answered.status, &*answered.code()), (422, "invalid"));
    let finding = &answered.json()["error"]["findings"][0];
    assert_eq!(
        (finding["line"].as_u64(), finding["field"].as_str()),
        (Some(3), Some("spec.roles[0].min"))
    );
}

#[tokio::test]
async fn bodies_are_parsed_by_content_type() {
    let server = start(|_| {}).await;
    let apply = |kind: &'static str, body: &'static str| {
        server.ask("POST /v1/apply?dryRun=true").body(kind, body).send()
    };
    let queue = r#"{"kind":"Queue","metadata":{"name":"q"},"spec":{}}"#;
    let two = r#"[{"kind":"Queue","metadata":{"name":"q"},"spec":{}},{"kind":"Queue","metadata":{"name":"r"},"spec":{}}]"#;
    for (kind, body, status) in [
        ("application/yaml", queue, 200),
        ("text/yaml; charset=utf-8", queue, 200),
        ("application/json", queue, 200),
        ("application/json", two, 200),
        ("application/json", "kind: Queue", 400),
        ("application/json", "", 400),
        ("application/yaml", "", 422),
        ("text/html", queue, 415),
    ] {
        assert_eq!(apply(kind, body).await.status, status, "{kind} {body}");
    }
    assert_eq!(apply("application/json", two).await.json()["items"][1]["name"], "r");
    assert_eq!(server.get("/v1/queues/q").await.status, 404, "a dry run keeps nothing");
}

#[tokio::test]
async fn scale_requires_a_valid_body() {
    let server = start(|_| {}).await;
    let scale = |body: &'static str| {
        let ask = server.ask("POST /v1/namespaces/research/gangs/a/scale");
        ask.body("application/json", body).send()
    };
    assert_eq!(scale(r#"{"min": 2, "max": 4}"#).await.json()["spec"]["scaled"][1], 4);
    for (body, status) in [
        ("{}", 400),
        (r#"{"role": "worker"}"#, 400),
        (r#"{"min": -1}"#, 400),
        (r#"{"min": 1.5}"#, 400),
        (r#"{"min": 2.0}"#, 200),
        (r#"{"min": null}"#, 400),
        (r#"{"min": 1, "colour": 1}"#, 400),
        (r#"{"min": 3, "max": 2}"#, 422),
    ] {
        assert_eq!(scale(body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn panic_in_one_request_leaves_others_alone() {
    let server = start(|_| {}).await;
    for _ in 0..3 {
        let answered = server.ask("POST /v1/namespaces/research/gangs/bug/hold").send().await;
        assert_eq!(answered.status, 500);
        assert_eq!(server.get("/healthz").await.status, 200);
    }
    let keyed = server.ask("POST /v1/namespaces/research/gangs/bug/hold");
    assert_eq!(keyed.header("idempotency-key", "k").send().await.code(), "internal");
}

#[tokio::test]
async fn unready_host_reports_the_reason() {
    let server = start(|_| {}).await;
    assert_eq!(server.get("/readyz").await.text, "ready\n");
    assert_eq!(server.ask("DELETE /v1/pools/gpus").send().await.status, 204);
    let answered = server.get("/readyz").await;
    assert_eq!((answered.status, &*answered.code()), (503, "unavailable"));
    assert!(answered.text.contains("there is no pool yet"));
}
