//! Everything that happens, to everybody at their own pace.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::client::{Event, Events, Started, start};

async fn follow(server: &Started, query: &str) -> Events {
    let mut events = Events::open(server.ask(&format!("GET /v1/events{query}"))).await;
    // From here on it is heard.
    events.block().await.unwrap();
    events
}

fn seq(event: &Event) -> u64 {
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(data["seq"].to_string(), event.id);
    data["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was() {
    let server = start(|_| {}).await;
    let mut first = follow(&server, "").await;
    for round in 0..10 {
        server.host.say("research/a", &format!("{round}"));
    }
    let mut last = first.next().await.unwrap();
    for _ in 0..3 {
        last = first.next().await.unwrap();
    }
    drop(first);
    let again = server.ask("GET /v1/events?after=1").header("last-event-id", &last.id);
    let mut again = Events::open(again).await;
    for round in 4..10 {
        let event = again.next().await.unwrap();
        assert!(event.data.contains(&format!("\"message\":\"{round}\"")), "{event:?}");
        assert_eq!(event.event, "said");
    }
    let after = follow(&server, &format!("?after={}&follow=false", last.id)).await.next().await;
    assert_eq!(seq(&after.unwrap()), seq(&last) + 1);
}

#[tokio::test]
async fn whoever_asks_for_what_is_too_old_or_not_yet_is_told_of_a_gap() {
    let server = start(|_| {}).await;
    let newest = server.get("/v1/gangs").await.json()["newest"].as_u64().unwrap();
    for after in [0, 99, 1_000_000] {
        let mut events = follow(&server, &format!("?after={after}")).await;
        let gap = events.next().await.unwrap();
        assert_eq!((&*gap.event, seq(&gap)), ("gap", newest), "after {after}");
    }
    let mut events = follow(&server, "?after=0").await;
    events.next().await.unwrap();
    server.host.say("research/a", "and on");
    assert_eq!(seq(&events.next().await.unwrap()), newest + 1);
}

#[tokio::test]
async fn only_what_is_asked_for_is_told() {
    let server = start(|_| {}).await;
    let after = server.get("/v1/gangs").await.json()["newest"].as_u64().unwrap();
    server.host.gang("n", "x", "sales", "Waiting");
    server.host.gang("n", "y", "research", "Waiting");
    server.host.say("n/x", "about x");
    server.host.say("research/a", "about a");
    let gone = "node-1".into();
    server.host.board.remove(crate::host::AT, muster_server::Kind::Node, &gone);
    for (query, wanted) in [
        ("", vec![1, 2, 3, 4, 5]),
        ("&kind=Node", vec![5]),
        ("&namespace=n", vec![1, 2, 3]),
        ("&name=a", vec![4]),
        ("&queue=sales", vec![1, 3]),
        ("&queue=research&namespace=n", vec![2]),
        ("&kind=Pool", vec![]),
    ] {
        let mut events = follow(&server, &format!("?follow=false&after={after}{query}")).await;
        let mut found = Vec::new();
        while let Some(event) = events.next().await {
            found.push(seq(&event) - after);
        }
        assert_eq!(found, wanted, "{query}");
    }
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_lives_and_how_far_it_is() {
    let server = start(|config| config.limits.heartbeat = Duration::from_millis(20)).await;
    let mut events = follow(&server, "?kind=Pool").await;
    server.host.say("research/a", "not about a pool");
    let newest = server.get("/v1/gangs").await.json()["newest"].to_string();
    loop {
        let sign = events.block().await.unwrap();
        assert_eq!(sign.data, "");
        if sign.id == newest {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_fifty_readers_that_never_reads_holds_nobody_back() {
    let server = start(|_| {}).await;
    let mut silent = Events::open(server.ask("GET /v1/events")).await;
    let mut readers = Vec::new();
    for _ in 0..49 {
        readers.push(follow(&server, "?name=a").await);
    }
    while !server.get("/metrics").await.text.contains("muster_http_streams{of=\"events\"} 50") {
        tokio::task::yield_now().await;
    }
    // More than the sockets' buffers hold, and more than the board keeps; every hundredth is for the readers.
    let (rounds, long) = (200, "x".repeat(1000));
    let writing = server.host.clone();
    let written = tokio::spawn(async move {
        for round in 0..rounds {
            writing.say("research/a", &round.to_string());
            for _ in 0..99 {
                writing.say("research/noise", &long);
                tokio::task::yield_now().await;
            }
        }
        writing.say("research/a", "done");
    });
    let each = readers.into_iter().map(|mut reader| async move {
        let (mut due, mut gaps) = (0, 0);
        loop {
            let event = reader.next().await.unwrap();
            let data: Value = serde_json::from_str(&event.data).unwrap();
            match data["message"].as_str() {
                Some("done") => return (due, gaps),
                Some(round) => {
                    let round: usize = round.parse().unwrap();
                    assert!(round == due || gaps > 0, "{due} is missing");
                    due = round + 1;
                }
                None => gaps += 1,
            }
        }
    });
    let all = timeout(Duration::from_secs(60), futures::future::join_all(each)).await.unwrap();
    written.await.unwrap();
    for (due, gaps) in all {
        assert!(due == rounds || gaps > 0);
    }
    // It reads at last: first what its socket held, then that there is a gap, then what is new.
    while silent.next().await.unwrap().event != "gap" {}
    server.host.say("research/a", "new");
    assert!(silent.next().await.unwrap().data.contains("\"message\":\"new\""));
}
