//! The list of all operations, and the router made of it.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;

use crate::auth::access::RequiredRole;
use crate::auth::rights::route;
use crate::auth::sessions::login;
use crate::config::Server;
use crate::error::{ApiError, ErrorCode, typed};
use crate::handlers::{events, gangs, health, logs, objects, queries};
use crate::openapi::document;
use crate::routing::middleware::observe;
use crate::routing::operation::{Operation, Stream, delete, get, post};
use crate::{Change, Config, Host, Kind, Verb, Why};

/// All operations, in the order of the documentation.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all = vec![
        get("/v1/gangs", "listGangs", "Gangs, by namespace and name", |s, by, a| {
            objects::list::<objects::Gangs>(Kind::Gang, s, by, a)
        })
        .query::<objects::Gangs>()
        .answers::<document::PageOf>(),
        get(GANG, "getGang", "One gang", objects::get_gang).answers::<document::Object>(),
        delete(GANG, "removeGang", "Stops a gang and deletes it", objects::remove_gang),
        change(CANCEL, "cancelGang", "Stops a gang; its record is kept", Change::Cancel),
        change(HOLD, "holdGang", "Holds a gang: it does not start", Change::Hold),
        change(RELEASE, "releaseGang", "Releases a held gang", Change::Release),
        post(SCALE, "scaleGang", "Sets new bounds of a role", gangs::scale)
            .takes::<gangs::Scale>()
            .answers::<document::Object>(),
        get(WHY, "why", "Why a gang waits, and what would start it", gangs::why).answers::<Why>(),
        get(LOGS, "logs", "Output of a gang's members", logs::logs)
            .query::<logs::LogsParams>()
            .stream(Stream::Logs)
            .text(&[logs::NDJSON, logs::PLAIN]),
    ];
    all.extend(kind(Kind::Queue, ["/v1/queues", "/v1/queues/{name}"], QUEUE_WORDS));
    all.extend(kind(Kind::Pool, ["/v1/pools", "/v1/pools/{name}"], POOL_WORDS));
    all.extend(kind(Kind::Node, ["/v1/nodes", "/v1/nodes/{name}"], NODE_WORDS));
    all.extend(kind(Kind::Order, ["/v1/orders", "/v1/orders/{name}"], ORDER_WORDS));
    all.extend(whole());
    all
}

const LOGIN: &str = "/login";
const GANG: &str = "/v1/namespaces/{namespace}/gangs/{name}";
const CANCEL: &str = "/v1/namespaces/{namespace}/gangs/{name}/cancel";
const HOLD: &str = "/v1/namespaces/{namespace}/gangs/{name}/hold";
const RELEASE: &str = "/v1/namespaces/{namespace}/gangs/{name}/release";
const SCALE: &str = "/v1/namespaces/{namespace}/gangs/{name}/scale";
const WHY: &str = "/v1/namespaces/{namespace}/gangs/{name}/why";
const LOGS: &str = "/v1/namespaces/{namespace}/gangs/{name}/logs";

fn change(path: &'static str, id: &'static str, summary: &'static str, to: Change) -> Operation {
    post(path, id, summary, move |server, by, gang| gangs::change(to.clone(), server, by, gang))
        .answers::<document::Object>()
}

/// Identifiers and summaries of list, get and remove.
type Words = [(&'static str, &'static str); 3];

const QUEUE_WORDS: Words = [
    ("listQueues", "Queues, by name"),
    ("getQueue", "One queue"),
    ("removeQueue", "Removes a queue"),
];
const POOL_WORDS: Words =
    [("listPools", "Pools, by name"), ("getPool", "One pool"), ("removePool", "Removes a pool")];
const NODE_WORDS: Words =
    [("listNodes", "Nodes, by name"), ("getNode", "One node"), ("removeNode", "Removes a node")];
const ORDER_WORDS: Words = [
    ("listOrders", "Orders, by name"),
    ("getOrder", "One order"),
    ("removeOrder", "Removes an order"),
];

/// Operations of a kind without namespaces.
fn kind(
    kind: Kind,
    [all, one]: [&'static str; 2],
    [list, single, remove]: Words,
) -> [Operation; 3] {
    let list = match kind {
        Kind::Order => get(all, list.0, list.1, move |s, by, a| {
            objects::list::<objects::Orders>(kind, s, by, a)
        })
        .query::<objects::Orders>(),
        _ => get(all, list.0, list.1, move |s, by, a| {
            objects::list::<objects::Others>(kind, s, by, a)
        })
        .query::<objects::Others>(),
    };
    [
        list.answers::<document::PageOf>(),
        get(one, single.0, single.1, move |s, by, n| objects::get(kind, s, by, n))
            .answers::<document::Object>(),
        delete(one, remove.0, remove.1, move |s, by, n| objects::remove(kind, s, by, n))
            .role(route(Verb::Remove, kind)),
    ]
}

/// Operations that are not about one object.
fn whole() -> [Operation; 10] {
    [
        post("/v1/apply", "apply", "Applies manifests, all or none", queries::apply)
            .query::<queries::Apply>()
            .manifests()
            .answers::<queries::AppliedItems>(),
        post(
            "/v1/what-if",
            "whatIf",
            "Forecasts when gangs would start, and at what cost",
            queries::what_if,
        )
        .role(RequiredRole::Viewer)
        .read_only()
        .manifests()
        .answers::<queries::WhatIfItems>(),
        get("/v1/usage", "usage", "Usage by queue, user, gang or day", queries::usage)
            .query::<queries::UsageParams>()
            .answers::<queries::UsageItems>(),
        get("/v1/events", "events", "The change feed, as server-sent events", events::events)
            .query::<events::Events>()
            .stream(Stream::Events)
            .text(&["text/event-stream"]),
        get("/v1/whoami", "whoami", "The caller and its role", queries::whoami)
            .answers::<queries::WhoAmI>(),
        get("/v1/audit", "audit", "Records of the audit log", queries::audit)
            .role(RequiredRole::Admin)
            .query::<queries::AuditQuery>()
            .answers::<queries::AuditItems>(),
        get("/healthz", "alive", "Liveness", health::alive)
            .role(RequiredRole::Anyone)
            .text(&[health::TEXT]),
        get("/readyz", "ready", "Readiness", health::ready)
            .role(RequiredRole::Anyone)
            .text(&[health::TEXT]),
        get("/metrics", "metrics", "Metrics in the Prometheus text format", health::metrics)
            .text(&[health::METRICS]),
        get("/openapi.json", "openapi", "This document", document)
            .role(RequiredRole::Anyone)
            .answers::<document::Document>(),
    ]
}

async fn document() -> Response {
    // The document never changes while the process runs.
    static TEXT: OnceLock<String> = OnceLock::new();
    typed(StatusCode::OK, "application/json", TEXT.get_or_init(document::text).as_str())
}

/// All routes of a host, to be served or mounted in another router.
pub fn router(host: Arc<dyn Host>, config: &Config) -> Router {
    let server = Arc::new(Server::new(host, config));
    let mount = |router, operation: Operation| operation.mount(router, &server);
    operations()
        .into_iter()
        .fold(Router::new(), mount)
        // For browsers; not in the document.
        .route(LOGIN, axum::routing::get(login))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        // The middleware has its own limit, with a proper error response.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(server.clone(), observe))
        .with_state(server)
}

async fn no_path(uri: Uri) -> ApiError {
    let path = uri.path();
    ApiError::new(
        ErrorCode::NotFound,
        format!("there is no path {path}; /openapi.json lists all paths"),
    )
}

async fn no_method(method: Method, uri: Uri) -> ApiError {
    let path = uri.path();
    ApiError::new(ErrorCode::MethodNotAllowed, format!("{path} does not support {method}"))
}
