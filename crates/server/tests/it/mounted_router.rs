//! The router mounted in another router.

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use muster_server::{Config, router};
use serde_json::Value;

use crate::host::Toy;

#[tokio::test]
async fn mounted_router_answers_and_ends_streams_on_shutdown() {
    let config = Config::default();
    let outer = Router::new().nest("/muster", router(Toy::new(), &config));
    let service = TowerToHyperService::new(outer);
    let ask = |path: &str| service.call(Request::get(path).body(Body::empty()).unwrap());

    let gang = ask("/muster/v1/namespaces/research/gangs/a").await.unwrap();
    assert_eq!(gang.status(), 200);
    let nowhere = ask("/muster/nowhere").await.unwrap();
    assert_eq!(nowhere.status(), 404);
    let text = nowhere.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap()["error"]["code"], "notFound");

    let events = ask("/muster/v1/events").await.unwrap();
    config.shutdown.begin();
    let text = events.into_body().collect().await.unwrap().to_bytes();
    assert!(text.starts_with(b"retry: "), "{text:?}");
}
