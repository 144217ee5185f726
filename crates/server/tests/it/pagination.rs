//! Pages and filters of lists.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::{Started, start};

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn pages(server: &Started, query: &str, between: impl Fn(usize)) -> Vec<String> {
    let (mut all, mut go_on, mut turned) = (Vec::new(), String::new(), 0);
    loop {
        let page = server.get(&format!("/v1/gangs?{query}{go_on}")).await.json();
        all.extend(names(&page));
        match page["continue"].as_str() {
            Some(token) => go_on = format!("&continue={token}"),
            None => return all,
        }
        turned += 1;
        between(turned);
    }
}

#[tokio::test]
async fn every_gang_is_on_exactly_one_page_for_any_page_size() {
    let server = start(|_| {}).await;
    for at in 0..23 {
        server.host.gang("n", &format!("g-{at:02}"), "research", "Waiting");
    }
    let wanted: Vec<_> = (0..23).map(|at| format!("g-{at:02}")).collect();
    for limit in [1, 2, 22, 23, 24, 1000] {
        let found = pages(&server, &format!("namespace=n&limit={limit}"), |_| {}).await;
        assert_eq!(found, wanted, "limit {limit}");
    }
    assert_eq!(pages(&server, "namespace=n", |_| {}).await, wanted);
}

#[tokio::test]
async fn stable_objects_are_listed_once_while_others_come_and_go() {
    let server = start(|_| {}).await;
    for at in 0..20 {
        server.host.gang("n", &format!("stays-{at:02}"), "research", "Waiting");
        server.host.gang("n", &format!("goes-{at:02}"), "research", "Waiting");
    }
    let found = pages(&server, "namespace=n&limit=3", |turned| {
        server.host.gang("n", &format!("comes-{turned}"), "research", "Waiting");
        let gone = format!("n/goes-{turned:02}").into();
        server.host.board.remove(crate::host::AT, muster_server::Kind::Gang, &gone);
    })
    .await;
    let stays: Vec<_> = found.iter().filter(|name| name.starts_with("stays")).collect();
    assert_eq!(stays.len(), 20);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "twice: {found:?}");
}

#[tokio::test]
async fn all_filters_apply_to_a_gang() {
    let server = start(|_| {}).await;
    server.host.gang("n", "r-run", "research", "Running");
    server.host.gang("n", "r-wait", "research", "Waiting");
    server.host.gang("n", "s-run", "sales", "Running");
    for (query, wanted) in [
        ("namespace=n", vec!["r-run", "r-wait", "s-run"]),
        ("namespace=n&queue=research", vec!["r-run", "r-wait"]),
        ("namespace=n&phase=running", vec!["r-run", "s-run"]),
        ("queue=sales&phase=Running&user=alice", vec!["s-run"]),
        ("user=bob", vec![]),
        ("namespace=elsewhere", vec![]),
    ] {
        assert_eq!(
            names(&server.get(&format!("/v1/gangs?{query}")).await.json()),
            wanted,
            "{query}"
        );
    }
    let orders = |query: &str| {
        let path = format!("/v1/orders?{query}");
        let server = &server;
        async move { server.get(&path).await }
    };
    assert_eq!(names(&orders("namespace=research&phase=complete").await.json()), ["order-1"]);
    assert!(names(&orders("namespace=sales").await.json()).is_empty());
    assert!(names(&orders("phase=assembling").await.json()).is_empty());
}

#[tokio::test]
async fn list_names_the_event_to_follow_after() {
    let server = start(|_| {}).await;
    let newest = || async { server.get("/v1/gangs").await.json()["newest"].as_u64().unwrap() };
    let before = newest().await;
    server.host.say("research/a", "hello");
    assert_eq!(newest().await, before + 1);
}

#[tokio::test]
async fn single_object_is_returned_whole() {
    let server = start(|_| {}).await;
    for (path, kind) in [
        ("/v1/namespaces/research/gangs/a", "Gang"),
        ("/v1/queues/research", "Queue"),
        ("/v1/pools/gpus", "Pool"),
        ("/v1/nodes/node-1", "Node"),
        ("/v1/orders/order-1", "Order"),
    ] {
        let answered = server.get(path).await;
        assert_eq!(
            (answered.status, answered.json()["kind"].as_str()),
            (200, Some(kind)),
            "{path}"
        );
    }
}
