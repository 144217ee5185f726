//! A request that is sent twice with one key is executed once.

use std::sync::atomic::Ordering;

use crate::client::{Answered, Ask, Started, gang, start, tokens};

fn apply(server: &Started, key: &str, body: &str) -> Ask {
    let ask = server.ask("POST /v1/apply").body("application/yaml", body.to_owned());
    ask.header("idempotency-key", key)
}

fn asked(server: &Started) -> usize {
    server.host.asked.load(Ordering::SeqCst)
}

fn is_replay(answered: &Answered) -> bool {
    answered.header("idempotent-replayed") == "true"
}

#[tokio::test]
async fn repeated_key_replays_the_answer_without_the_host() {
    let server = start(|_| {}).await;
    let first = apply(&server, "k1", &gang("b")).send().await;
    let second = apply(&server, "k1", &gang("b")).send().await;
    assert_eq!((first.status, &first.text), (second.status, &second.text));
    assert!(first.text.contains("created") && !is_replay(&first) && is_replay(&second));
    assert_eq!(second.header("content-type"), "application/json");
    assert_eq!(asked(&server), 1);
    let other = apply(&server, "k2", &gang("b")).send().await;
    assert!(other.text.contains("unchanged"));
    let removed =
        || server.ask("DELETE /v1/namespaces/research/gangs/b").header("idempotency-key", "k3");
    assert_eq!(removed().send().await.status, 204);
    assert_eq!(removed().send().await.status, 204, "the second time as well");
    assert_eq!(asked(&server), 3);
}

#[tokio::test]
async fn key_with_another_request_is_refused() {
    let server = start(|_| {}).await;
    apply(&server, "k", &gang("b")).send().await;
    let other = apply(&server, "k", &gang("c")).send().await;
    assert_eq!((other.status, &*other.code()), (422, "keyReused"));
    let path = server.ask("DELETE /v1/namespaces/research/gangs/b").header("idempotency-key", "k");
    assert_eq!(path.send().await.code(), "keyReused");
    for key in ["", "two words", &"x".repeat(129)] {
        assert_eq!(apply(&server, key, &gang("b")).send().await.status, 400, "`{key}`");
    }
}

#[tokio::test]
async fn keys_of_different_callers_are_independent() {
    let server = start(|config| config.tokens = tokens()).await;
    for token in ["token-of-rosa-research", "token-of-adam-admin"] {
        let answered = apply(&server, "k", &gang("b")).token(token).send().await;
        assert!(answered.status == 200 && !is_replay(&answered));
    }
    assert_eq!(asked(&server), 2);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_wait_for_the_first() {
    let server = start(|_| {}).await;
    let all = (0..8).map(|_| tokio::spawn(apply(&server, "k", &gang("slow")).send()));
    let all: Vec<_> = all.collect();
    while asked(&server) == 0 {
        tokio::task::yield_now().await;
    }
    server.host.go_on.notify_one();
    let mut replays = 0;
    for one in all {
        let answered = one.await.unwrap();
        assert!(answered.status == 200 && answered.text.contains("created"), "{answered:?}");
        replays += usize::from(is_replay(&answered));
    }
    assert_eq!((asked(&server), replays), (1, 7));
}

#[tokio::test]
async fn disconnected_client_finds_its_answer_later() {
    let server = start(|_| {}).await;
    let gone = tokio::spawn(apply(&server, "k", &gang("slow")).send());
    while asked(&server) == 0 {
        tokio::task::yield_now().await;
    }
    gone.abort();
    let _ = gone.await;
    server.host.go_on.notify_one();
    let answered = apply(&server, "k", &gang("slow")).send().await;
    assert!(is_replay(&answered) && answered.text.contains("created"), "{answered:?}");
    assert_eq!(asked(&server), 1);
}

#[tokio::test]
async fn retriable_answer_is_not_stored() {
    let server = start(|_| {}).await;
    let bug = || server.ask("DELETE /v1/orders/order-1").header("idempotency-key", "k").send();
    assert_eq!(bug().await.status, 501);
    assert!(!is_replay(&bug().await));
    let refused = || apply(&server, "f", "kind: Gong").send();
    assert_eq!(refused().await.status, 422);
    assert!(is_replay(&refused().await), "what is wrong stays wrong");
}
